"""Networks: the bundled encoder with an adapter, or a transformers model from a folder or hub.

In: a job and a source. Out: a `Model`: a network ready to run, with its tokenizer and special tokens.
Not here: what it is used for (`context` and its neighbours), and how adapters are merged (`adapters`).
"""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn

from textveil.errors import ConfigError, ModelError
from textveil.models import adapters
from textveil.table import fast, fetch, minilm, quiet

Job = Literal["masked-lm", "causal-lm", "tagger", "reader", "classifier"]

AUTO: dict[Job, str] = {
    "masked-lm": "AutoModelForMaskedLM",
    "causal-lm": "AutoModelForCausalLM",
    "tagger": "AutoModelForTokenClassification",
    "reader": "AutoModelForQuestionAnswering",
    "classifier": "AutoModelForSequenceClassification",
}
BUNDLED: dict[Job, str] = {
    "masked-lm": "BertForMaskedLM",
    "tagger": "BertForTokenClassification",
    "reader": "BertForQuestionAnswering",
}
SHORTEST: dict[Job, int] = {"masked-lm": 8, "causal-lm": 8, "tagger": 8, "reader": 32, "classifier": 8}
"""Smallest number of pieces that a network must take at once."""

FIRST_LAYERS = re.compile(r"bundled:([1-9][0-9]?)")
"""A source that stands for the first n layers of the bundled encoder."""

ENCODER = "all-MiniLM-L6-v2"
"""What rows and statements call the small encoder."""

SPACES = "\u2581", "\u0120"
"""How tokenizers mark the space before a word."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A network with its tokenizer.

    Attributes:
        name: what rows and statements call it.
        network: in evaluation mode on its device, without gradients.
        tokenizer: splits words or texts into pieces; no truncation, no padding.
        before: pieces that begin every sequence.
        after: pieces that end it.
        mask: the piece for a hidden word; None if the model has none.
        unknown: the piece for a word that the tokenizer drops.
        longest: most pieces per sequence, special tokens included.
        segments: number of token types (1: none).
        spaces: what happens to the space before a word: "none", pieces do not show it; "given", they show it if it is
            there; "added", the tokenizer puts one before everything it splits.
        bundled: whether it is the package's small encoder.
    """

    name: str
    network: Any = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    before: tuple[int, ...]
    after: tuple[int, ...]
    mask: int | None
    unknown: int
    longest: int
    segments: int
    spaces: Literal["none", "given", "added"]
    bundled: bool

    @property
    def device(self) -> torch.device:
        """The network's device."""
        found: torch.device = next(self.network.parameters()).device
        return found


def load(job: Job, source: str | Path | None = None, *, device: str = "cpu") -> Model:
    """The model for a job.

    Args:
        job: what its head is for.
        source: a local folder or a hub id (owner/name) of a transformers model with a fast tokenizer; None for the
            bundled encoder, "bundled:3" for its first three layers.
        device: a torch device ("cpu", "cuda").

    Raises:
        ConfigError: the device is not available.
        ModelError: there is no such model, or it has no head for the job.
    """
    check_device(device)
    first = FIRST_LAYERS.fullmatch(str(source))
    own = source is None or first is not None
    model = _bundled(job, int(first[1]) if first else None) if own else _foreign(job, str(source))
    if model.longest < SHORTEST[job]:
        raise ModelError(f"{model.name} takes {model.longest} pieces at once; {job} needs {SHORTEST[job]}")
    model.network.eval().requires_grad_(False).to(device)
    return model


def untrained(source: str | Path | None, labels: int, *, device: str = "cpu") -> tuple[Model, tuple[str, ...]]:
    """A sequence classifier that has yet to be trained.

    Args:
        source: a folder or hub id of a transformers model with a fast tokenizer; None is the bundled encoder.
        labels: number of labels.
        device: a torch device.

    Returns:
        the model, and the names of the parameters missing in the source, which transformers initialized at random.

    Raises:
        ConfigError: the device is not available.
        ModelError: there is no such model.
    """
    check_device(device)
    where = bundled_folder() if source is None else str(source)
    model, missing = _transformers("classifier", where, num_labels=labels, ignore_mismatched_sizes=True)
    if source is None:
        model = replace(model, name=ENCODER)
    model.network.eval().requires_grad_(True).to(device)
    return model, missing


def check_device(device: str) -> None:
    """Checks that a torch device exists and can be read from.

    Raises:
        ConfigError: it does not, or cannot.
    """
    try:
        torch.empty(0, device=device).cpu()
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"the device {device!r} is not available here; try cpu") from error


# ---- the bundled encoder -----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def bundled_folder() -> Path:
    """The small encoder's folder, after verifying its checksum."""
    folder = minilm.locate()
    minilm.checked(folder)
    return folder


def backbone(job: Job, tensors: dict[str, torch.Tensor] | None, **config: Any) -> nn.Module:
    """The small encoder with a head, from its own weights and an adapter's.

    Args:
        job: what the head is for.
        tensors: the adapter's; None leaves the head randomly initialized, for training.
        config: settings of the network on top of the encoder's.

    Raises:
        ModelError: the adapter lacks a tensor, or has one that does not fit.
    """
    import transformers

    folder = bundled_folder()
    kind = getattr(transformers, BUNDLED[job])
    settings = transformers.BertConfig.from_pretrained(folder, **{"attn_implementation": "sdpa", **config})
    base = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    types = "bert.embeddings.token_type_embeddings.weight"
    if len(base[types]) < settings.type_vocab_size:  # a new type starts as a copy of the known one
        base[types] = base[types][:1].repeat(settings.type_vocab_size, 1)
    with quiet():
        network: nn.Module = kind(settings)
        missing, surplus = network.load_state_dict(adapters.merge(base, tensors or {}), strict=False)
    every = dict(network.named_parameters(remove_duplicate=False))
    filled = {id(parameter) for name, parameter in every.items() if name not in missing}  # some have two names
    wrong = [name for name in missing if name in every and id(every[name]) not in filled] if tensors else []
    wrong += [name for name in surplus if ".pooler." not in name and not name.endswith("position_ids")]
    if wrong:
        raise ModelError(f"the adapter {job!r} does not fit the encoder at {wrong[0]}; reinstall textveil")
    return network


def _bundled(job: Job, layers: int | None = None) -> Model:
    """The encoder with its adapter. With fewer layers, the head reads the output of the last one kept."""
    if job not in BUNDLED:
        raise ConfigError(f"no model for {job} is bundled; give a folder or a hub id")
    network: Any = backbone(job, adapters.tensors(job), **adapters.manifest(job)["config"])
    name, all_layers = ENCODER, network.bert.encoder.layer
    if layers is not None:
        if layers > len(all_layers):
            raise ConfigError(f"the bundled encoder has {len(all_layers)} layers, got bundled:{layers}")
        name = f"{name} ({layers} of {len(all_layers)} layers)"
        network.bert.encoder.layer = all_layers[:layers]
        network.config.num_hidden_layers = layers
    tokenizer = minilm.read_tokenizer(bundled_folder())
    mask, unknown = map(tokenizer.token_to_id, ("[MASK]", "[UNK]"))
    return _frame(f"{name} + {job}", network, tokenizer, mask=mask, unknown=unknown, bundled=True)


# ---- other models ------------------------------------------------------------------------------------------


def _foreign(job: Job, source: str | Path) -> Model:
    model, missing = _transformers(job, source)
    lost = [key for key in missing if "pooler" not in key and "position_ids" not in key]
    if lost:
        raise ModelError(f"{model.name!r} is not trained for {job}: it has no weights for {lost[0]}")
    return model


def _transformers(job: Job, source: str | Path, **config: Any) -> tuple[Model, tuple[str, ...]]:
    """A model of transformers, and the names of the parameters it has no weights for."""
    import transformers

    def load(where: str, local: bool) -> tuple[Any, Any, dict[str, Any]]:
        options: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **options)
        kind = getattr(transformers, AUTO[job])
        network, loading = kind.from_pretrained(
            where, output_loading_info=True, dtype=torch.float32, **options, **config
        )
        return tokenizer, network, loading

    name, (tokenizer, network, loading) = fetch(source, f"transformers model for {job}", load)
    lost = {*loading["missing_keys"], *(key for key, *_ in loading["mismatched_keys"])}
    backend = fast(name, tokenizer)
    backend.no_truncation()
    backend.no_padding()
    unknown = tokenizer.eos_token_id if tokenizer.unk_token_id is None else tokenizer.unk_token_id
    model = _frame(
        name, network, backend, mask=tokenizer.mask_token_id, unknown=unknown, limit=tokenizer.model_max_length
    )
    return model, tuple(sorted(lost))


def _frame(
    name: str,
    network: Any,
    tokenizer: Tokenizer,
    *,
    mask: int | None,
    unknown: int | None,
    limit: int | None = None,
    bundled: bool = False,
) -> Model:
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is just these letters
    try:
        bare, spaced = (tokenizer.encode(text, add_special_tokens=False) for text in ("a", " a"))
        framed = tokenizer.encode("a").ids
        at = next(i for i in range(len(framed)) if framed[i : i + len(bare.ids)] == bare.ids != [])
    except Exception as error:  # the Rust side raises bare Exception
        raise ModelError(f"the tokenizer of {name} failed on a word; give it an unknown token") from error
    rows = network.get_input_embeddings().num_embeddings
    if (largest := max(tokenizer.get_vocab().values())) >= rows:
        raise ModelError(f"{name} has no embedding for piece {largest} of its tokenizer; they do not belong together")
    added = bare.tokens[0].startswith(SPACES)
    return Model(
        name=name,
        network=network,
        tokenizer=tokenizer,
        before=tuple(framed[:at]),
        after=tuple(framed[at + len(bare.ids) :]),
        mask=mask,
        unknown=bare.ids[0] if unknown is None else unknown,
        longest=min(places(network), places(network) if limit is None else limit),
        segments=int(getattr(network.config, "type_vocab_size", 1) or 1),
        spaces="added" if added else "given" if bare.ids != spaced.ids else "none",
        bundled=bundled,
    )


def places(network: nn.Module) -> int:
    """Number of positions of the network; some families lose the first rows to padding."""
    config: Any = network.config
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            return module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
    found = (getattr(config, name, None) or 0 for name in ("max_position_embeddings", "n_positions"))
    return next((int(number) for number in found if number > 0), 512)  # XLNet says -1
