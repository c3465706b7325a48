"""Random streams of calls: a seed repeats identical calls only.

In: the parts of a privatizer, the words of a batch, the decision about each. Out: the `Randomness`
of one release.
Not here: streams and their keys (`randomness`), and the decisions (`plan`).

One noise under two budgets reveals a word: from y1 = x + r / eta1 and y2 = x + r / eta2 follows x =
(eta2 y2 - eta1 y1) / (eta2 - eta1). So the draws from a seed or key depend on a digest of all that
decides the law.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import blake2b
from typing import Literal

from textveil.mechanism import Layout
from textveil.pipeline.components import Parts
from textveil.protect import Protection
from textveil.randomness import Randomness, Values
from textveil.text import Tokens

DrawStep = Literal["labels", "words"]
"""Step of a release that draws: groups, or replacements of words."""


def derive_randomness(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    epsilon: Values | None,
    *,
    first: int,
    step: DrawStep,
) -> Randomness:
    """Derives the randomness of one release, or of its groups.

    Args:
        parts: parts of the privatizer.
        tokens: the words of a batch.
        protection: decisions about each before the draw.
        epsilon: their budgets [N]; None where nothing sets them word by word.
        first: the number of the first text in its run.
        step: the step that draws.
    """

    def compute_digests() -> list[bytes]:
        law = _serialize_law(parts, step)
        return [
            _hash_parts(law, *_serialize_decisions(text, span, tokens, protection, epsilon))
            for text, span in zip(tokens.texts, tokens.spans, strict=True)
        ]

    return parts.randomness.bind_texts(first, compute_digests)


def _serialize_law(parts: Parts, step: DrawStep) -> bytes:
    """Serializes what draws depend on except texts and decisions."""
    claim, parameter = parts.claim, parts.mechanism.parameters(parts.table, Layout.build(1))
    law = {
        "step": step,
        "mechanism": claim.mechanism,
        "parameter": None
        if parameter is None
        else parameter.tolist(),  # a third-party claim may lack it
        # re-ranking reads the draw only, and costs nothing for the same draws
        "options": {name: value for name, value in claim.options.items() if name != "rerank"},
        "table": [claim.table, parts.table.metric, parts.table.digest],
        # storing a draw does not change its law
        "words": {name: value for name, value in asdict(parts.words).items() if name != "lasting"},
        "names": None if parts.names is None else asdict(parts.names.options),
        "figures": None if parts.figures is None else asdict(parts.figures.options),
    }
    return json.dumps(law, sort_keys=True).encode()


def _serialize_decisions(
    text: str, span: slice, tokens: Tokens, protection: Protection, epsilon: Values | None
) -> Iterator[bytes]:
    """Yields a text, the offsets of its words, and their decisions."""
    yield text.encode(errors="surrogatepass")
    decided = (protection.public, protection.hidden, protection.named, protection.moved)
    for values in (tokens.starts, tokens.ends, *decided):
        yield values[span].tobytes()
    yield "\0".join(protection.labels[group] for group in protection.group[span].tolist()).encode()
    yield b"" if epsilon is None else epsilon[span].tobytes()


def _hash_parts(*parts: bytes) -> bytes:
    """Hashes parts to 32 bytes.

    Each part is prefixed with its length, so no two lists of parts are hashed alike.
    """
    digest = blake2b(digest_size=32, person=b"textveil/text")
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()
