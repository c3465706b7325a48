"""Networks with their tokenizers: the bundled encoder, or transformers models.

The encoder comes with an adapter, the others from a folder or hub.

In: a job and a source. Out: a `Model`: a network ready to run, with its tokenizer and special
tokens.
Not here: what it is used for (`context` and its neighbours), and how networks run (`bundled`,
`torch_networks`).
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from tokenizers import Tokenizer

from textveil.config.extras import require
from textveil.errors import ConfigError, ModelError
from textveil.models import bundled, e5
from textveil.randomness import Floats, Ints
from textveil.table import minilm

Job = Literal["masked-lm", "causal-lm", "tagger", "reader", "classifier"]

MIN_PIECES: dict[Job, int] = {
    "masked-lm": 8,
    "causal-lm": 8,
    "tagger": 8,
    "reader": 32,
    "classifier": 8,
}
"""The fewest pieces that a network must take at once."""

FIRST_LAYERS = re.compile(r"bundled:([1-9][0-9]?)")
"""The source name of the bundled encoder's first n layers."""

ENCODER_NAME = "all-MiniLM-L6-v2"
"""The small encoder's name in rows and statements.

It does all jobs but the tagger's.
"""

SPACE_MARKS = "\u2581", "\u0120"
"""The characters by which tokenizers mark a space before a word."""


class OutputHead(Protocol):
    """A language model's output layer over given words."""

    def read(self, ids: Ints, lengths: Ints, row: Ints, column: Ints) -> Any:
        """Returns the output layer's inputs [m, d] at places.

        At `row` and `column` of a batch; arrays as in `Network.run`.
        """
        ...

    def compute_logits(self, states: Any) -> Floats:
        """Computes logits float32 [m, V] from the output of `read`.

        Or from a part of it.
        """
        ...


class Network(Protocol):
    """A network, whatever it runs on.

    Attributes:
        device: where it runs.
        vocabulary: number of pieces it has embeddings for.
        max_pieces: most pieces per sequence.
        type_count: number of token types (1: none).
        padding_piece: the padding piece; None if the network cannot tell where a padded sequence
            ends.
        needs_equal_lengths: whether all sequences of a batch must have one length.
        labels: names of the labels, if it stores any.
        start_piece: what begins a text where the tokenizer adds nothing, if there is such a piece.
    """

    @property
    def device(self) -> str: ...  # noqa: D102
    @property
    def vocabulary(self) -> int: ...  # noqa: D102
    @property
    def max_pieces(self) -> int: ...  # noqa: D102
    @property
    def type_count(self) -> int: ...  # noqa: D102
    @property
    def padding_piece(self) -> int | None: ...  # noqa: D102
    @property
    def needs_equal_lengths(self) -> bool: ...  # noqa: D102
    @property
    def labels(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def start_piece(self) -> int | None: ...  # noqa: D102

    def run(self, ids: Ints, lengths: Ints, types: Ints | None = None) -> Floats:
        """Computes float32 logits of pieces or of sequences.

        [n, L, C] or [n, C], as the job has it.

        Args:
            ids: pieces [n, L]; what lies behind the end of a sequence is not read.
            lengths: int64 [n].
            types: token types [n, L]; None for the network's default.
        """
        ...

    def run_at(
        self, ids: Ints, lengths: Ints, types: Ints | None, row: Ints, column: Ints
    ) -> Floats:
        """Computes logits of pieces [m, C] at given places only.

        Args:
            ids: pieces [n, L], as for `run`.
            lengths: int64 [n].
            types: token types [n, L]; None for the network's default.
            row: int64 [m], the sequence of each place.
            column: int64 [m], the piece of each place.
        """
        ...

    def take_output(self) -> tuple[Floats, Floats | None]:
        """Returns the output layer: rows [P, d], and bias [P].

        Of a language model: a row for each piece; the bias is None if there is none.

        Raises:
            ModelError: the output layer is not linear, or not the last step.
        """
        ...

    def build_head(self, rows: Floats, bias: Floats) -> OutputHead:
        """Builds an output layer of other rows and bias.

        Rows [V, d] and bias [V]; call `take_output` before.
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A network with its tokenizer.

    Attributes:
        name: what rows and statements call it.
        network: a `Network`, ready to run.
        tokenizer: splits words or texts into pieces; no truncation, no padding. The tagger's splits
            words only.
        before: pieces that begin every sequence.
        after: pieces that end it.
        mask: the piece for a hidden word; None if the model has none.
        unknown: the piece for a word that the tokenizer drops.
        longest: most pieces per sequence, special tokens included.
        spaces: what happens to the space before a word: "none", pieces do not show it; "given",
            they show it if it is there; "added", the tokenizer puts one before everything it
            splits.
        bundled: whether it is one of the package's small encoders.
        max_characters: characters of a word that are read; None for all.
    """

    name: str
    network: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    before: tuple[int, ...]
    after: tuple[int, ...]
    mask: int | None
    unknown: int
    longest: int
    spaces: Literal["none", "given", "added"]
    bundled: bool
    max_characters: int | None = None


def load(job: Job, source: str | Path | None = None, *, device: str = "cpu") -> Model:
    """Loads the model for a job.

    Args:
        job: what its head is for.
        source: a local folder or a hub id (owner/name) of a transformers model with a fast
            tokenizer; None for the bundled encoder, "bundled:3" for its first three layers.
        device: "cpu", or a torch device ("cuda").

    Raises:
        ConfigError: the device is not available.
        MissingExtra: torch or transformers is not installed, and this is not the bundled encoder on
            the processor.
        ModelError: there is no such model, or it has no head for the job.
    """
    check_device(device)
    first = FIRST_LAYERS.fullmatch(str(source))
    if source is None or first is not None:
        model = _build_bundled(job, int(first[1]) if first else None, device)
    else:
        model = _load_foreign(job, str(source), device)
    if model.longest < MIN_PIECES[job]:
        raise ModelError(
            f"{model.name} takes {model.longest} pieces at once; {job} needs {MIN_PIECES[job]}"
        )
    return model


def load_untrained(
    source: str | Path | None, labels: int, *, device: str = "cpu"
) -> tuple[Model, tuple[str, ...]]:
    """Loads a sequence classifier that is not yet trained.

    Args:
        source: a folder or hub id of a transformers model with a fast tokenizer; None is the
            bundled encoder.
        labels: number of labels.
        device: a torch device.

    Returns:
        the model, and the names of the parameters missing in the source, which transformers
            initialized at random.

    Raises:
        ConfigError: the device is not available.
        MissingExtra: torch or transformers is not installed.
        ModelError: there is no such model.
    """
    check_device(device)
    if source is None:
        network = _import_torch().build_bundled_classifier(labels, device)
        network.module.requires_grad_(True)
        return _build_minilm(ENCODER_NAME, network), ("classifier.bias", "classifier.weight")
    source_model = _import_torch().load(
        "classifier", str(source), device, num_labels=labels, ignore_mismatched_sizes=True
    )
    source_model.network.module.requires_grad_(True)
    return _build_model(
        source_model.name, source_model.network, source_model.tokenizer, **source_model.special
    ), source_model.missing


def check_device(device: str) -> None:
    """Checks that a device exists and can be read from.

    Raises:
        ConfigError: it does not, or cannot.
        MissingExtra: it is not "cpu", and torch is not installed.
    """
    if device != "cpu":
        _import_torch().check_device(device)


def _import_torch() -> Any:
    """Imports the networks on torch, which need an extra."""
    require("torch", "transformers")
    from textveil.models import torch_networks

    return torch_networks


def load_bundled(job: bundled.BundledJob, layers: int | None, device: str) -> Network:
    """Loads the bundled encoder for a job.

    On torch, if the device is not "cpu".
    """
    if device == "cpu":
        return bundled.load(job, layers)
    network: Network = _import_torch().load_bundled_network(job, layers, device)
    return network


def _build_bundled(job: Job, layers: int | None, device: str) -> Model:
    """Builds the model of the bundled encoder with its adapter.

    With fewer layers, the head reads the output of the last one kept.
    """
    if job == "causal-lm" or job == "classifier":
        raise ConfigError(f"no model for {job} is bundled; give a folder or a hub id")
    network = load_bundled(job, layers, device)
    part = (
        ""
        if layers in (None, bundled.LAYERS[job])
        else f" ({layers} of {bundled.LAYERS[job]} layers)"
    )
    if job == "tagger":
        return Model(
            name=f"{e5.MODEL_NAME}{part} + {job}",
            network=network,
            tokenizer=e5.build_splitter(),
            before=(e5.START,),
            after=(e5.END,),
            mask=None,
            unknown=e5.UNKNOWN,
            longest=network.max_pieces,
            spaces="given",
            bundled=True,
            max_characters=e5.MAX_WORD_CHARACTERS,
        )
    return _build_minilm(f"{ENCODER_NAME}{part} + {job}", network, bundled=True)


def _build_minilm(name: str, network: Network, **options: Any) -> Model:
    """Builds a model that reads the small encoder's pieces."""
    tokenizer = minilm.read_tokenizer(bundled.find_encoder_folder())
    mask, unknown = map(tokenizer.token_to_id, ("[MASK]", "[UNK]"))
    return _build_model(name, network, tokenizer, mask=mask, unknown=unknown, **options)


def _load_foreign(job: Job, source: str, device: str) -> Model:
    source_model = _import_torch().load(job, source, device)
    missing = [
        key for key in source_model.missing if "pooler" not in key and "position_ids" not in key
    ]
    if missing:
        raise ModelError(
            f"{source_model.name!r} is not trained for {job}: it has no weights for {missing[0]}"
        )
    return _build_model(
        source_model.name, source_model.network, source_model.tokenizer, **source_model.special
    )


def _find_place(part: list[int], whole: list[int]) -> int:
    """Returns the index at which a non-empty list occurs within another."""
    return next(i for i in range(len(whole)) if whole[i : i + len(part)] == part != [])


def _build_model(
    name: str,
    network: Network,
    tokenizer: Tokenizer,
    *,
    mask: int | None,
    unknown: int | None,
    limit: int | None = None,
    bundled: bool = False,
    max_characters: int | None = None,
) -> Model:
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is just these letters
    try:
        bare_encoding, spaced_encoding = (
            tokenizer.encode(text, add_special_tokens=False) for text in ("a", " a")
        )
        framed_ids = tokenizer.encode("a").ids
        at = _find_place(bare_encoding.ids, framed_ids)
    except Exception as error:  # the Rust side raises bare Exception
        raise ModelError(
            f"the tokenizer of {name} failed on a word; give it an unknown token"
        ) from error
    # the bundled ones belong together, and asking for a whole vocabulary takes 50 ms
    if not bundled and (largest := max(tokenizer.get_vocab().values())) >= network.vocabulary:
        raise ModelError(
            f"{name} has no embedding for piece {largest} of its tokenizer; they do not belong "
            "together"
        )
    is_added = bare_encoding.tokens[0].startswith(SPACE_MARKS)
    return Model(
        name=name,
        network=network,
        tokenizer=tokenizer,
        before=tuple(framed_ids[:at]),
        after=tuple(framed_ids[at + len(bare_encoding.ids) :]),
        mask=mask,
        unknown=bare_encoding.ids[0] if unknown is None else unknown,
        longest=min(network.max_pieces, network.max_pieces if limit is None else limit),
        spaces="added"
        if is_added
        else "given"
        if bare_encoding.ids != spaced_encoding.ids
        else "none",
        bundled=bundled,
        max_characters=max_characters,
    )
