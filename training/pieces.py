"""Chooses the pieces of multilingual-e5-small that the tagger reads: `make pieces`.

In: the model's tokenizer, wordfreq's frequencies, the lexicon's names. Out: `data/e5/kept.bin` of
the package, a bit for each piece; the build makes tokenizer and embeddings of them
(`hatch_build.py`).
Not here: how many there are of each language; that follows from how often words need them.

The model has 250,002 pieces for a hundred languages. Kept are those that text in the languages of
`LANGUAGES` needs most, and every single character, so that nothing that can be read before becomes
unreadable: a word whose pieces are gone is cut into smaller ones.
"""

import argparse
import gzip
import hashlib
import json
from collections import Counter

import hatch_build
import numpy as np
from tokenizers import Tokenizer
from wordfreq import available_languages, get_frequency_dict

from textveil.models import e5
from textveil.randomness import Values
from training import cli

LANGUAGES = [
    "ar",
    "de",
    "en",
    "es",
    "fr",
    "hi",
    "it",
    "ja",
    "ko",
    "nl",
    "pl",
    "pt",
    "ru",
    "tr",
    "vi",
    "zh",
]
"""Those in which recall is measured."""

MOST, WORDS = 100_000, 150_000
"""Pieces that are kept besides single characters, and words of each language that are looked at."""

OTHER, CAPITAL, CAPITALS = 0.05, 0.2, 0.02
"""How much a language counts that is not measured, and a word with a first capital and in capitals."""

NAME = 1e-6
"""How often each name counts as standing in a text, as a share of its words."""


def used(tokenizer: Tokenizer, count: int) -> Values:
    """How often words need each piece, as a share of the words of a language, summed over languages."""
    found = np.zeros(count)

    def add(words: list[str], shares: Values) -> None:
        spelled = [f" {word}" for word in words]
        for encoding, share in zip(
            tokenizer.encode_batch_fast(spelled, add_special_tokens=False), shares, strict=True
        ):
            np.add.at(found, encoding.ids, share)

    for language in available_languages("best"):
        words, shares = zip(*Counter(get_frequency_dict(language)).most_common(WORDS), strict=True)
        weight = np.array(shares) * (1 if language in LANGUAGES else OTHER)
        for turn, share in ((str, 1.0), (str.capitalize, CAPITAL), (str.upper, CAPITALS)):
            add([turn(word) for word in words], weight * share)
    names = (
        gzip.decompress((cli.DATA / "lexicon" / "names.txt.gz").read_bytes()).decode().splitlines()
    )
    names = [name for name in names if not name.startswith("#")]
    for turn, share in ((str.capitalize, 1.0), (str, CAPITAL)):
        add([turn(name) for name in names], np.full(len(names), NAME * share))
    return found


def main() -> None:
    """Writes which pieces are kept, and the files that the build makes of them."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    model = hatch_build.parsed(
        hatch_build.fetched(hatch_build.E5, [hatch_build.MODEL])[hatch_build.MODEL]
    )
    whole = hatch_build.tokenizer(list(zip(model.pieces, model.scores, strict=True)))
    use = used(Tokenizer.from_str(json.dumps(whole)), len(model.pieces))
    kept = np.array([len(piece.lstrip(e5.SPACE_MARK)) <= 1 for piece in model.pieces])
    kept[: hatch_build.SPECIAL] = True
    kept[np.argsort(-use, kind="stable")[:MOST]] = True
    folder = e5.locate()
    (folder / "kept.bin").write_bytes(np.packbits(kept).tobytes())
    for file, content in hatch_build.e5(folder).items():
        hatch_build.write(folder / file, content)
        print(
            f"{file} has SHA-256 {hashlib.sha256(content).hexdigest()}; textveil.models.e5 must "
            "say so"
        )
    print(
        f"kept {kept.sum():,} of {len(kept):,} pieces, {use[kept].sum() / use.sum():.1%} of what "
        "words need"
    )


if __name__ == "__main__":
    main()
