"""Language models: the bundled encoder with an adapter, a local folder, or a hub's model.

In: a job and a source. Out: a `Model`, a network that is ready to run with its tokenizer and what frames a sequence.
Not here: what is asked of it (`context`, `entities`, `reading`, `sentences`), and how adapters are merged (`adapters`).
"""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from logging import CRITICAL
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn

from textveil import minilm
from textveil.encoder import adapters
from textveil.errors import ConfigError, ModelError, TableError
from textveil.hub import download

Job = Literal["masked-lm", "causal-lm", "tagger", "reader"]

AUTO: dict[Job, str] = {
    "masked-lm": "AutoModelForMaskedLM",
    "causal-lm": "AutoModelForCausalLM",
    "tagger": "AutoModelForTokenClassification",
    "reader": "AutoModelForQuestionAnswering",
}
BUNDLED: dict[Job, str] = {
    "masked-lm": "BertForMaskedLM",
    "tagger": "BertForTokenClassification",
    "reader": "BertForQuestionAnswering",
}
ENDLESS = 1 << 20
"""A tokenizer that claims to take more pieces than this knows no limit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A network with its tokenizer.

    Attributes:
        name: what rows and statements call it.
        network: in evaluation mode on its device; its parameters ask for no gradients.
        tokenizer: cuts words or texts into pieces; no truncation, no padding.
        before: pieces that begin every sequence.
        after: pieces that end it.
        mask: the piece that stands for a hidden word; None where the model has none.
        unknown: stands for a word that the tokenizer drops.
        longest: pieces in a sequence at most, the frame included.
        segments: how many token types the network tells apart (1: none).
        bundled: whether it is the small encoder of the package.
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
    bundled: bool

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        found: torch.device = next(self.network.parameters()).device
        return found

    @property
    def spaced(self) -> bool:
        """Whether its pieces carry the space before a word, as byte-level ones do."""
        return type(self.tokenizer.decoder).__name__ in ("ByteLevel", "Metaspace", "Sequence")


def load(job: Job, source: str | Path | None = None, *, device: str = "cpu") -> Model:
    """The model for a job.

    Args:
        job: what its head is for.
        source: a local folder or a hub id (owner/name) of a transformers model with a fast tokenizer; None is the
            bundled encoder.
        device: a torch device ("cpu", "cuda").

    Raises:
        ConfigError: the device is not there.
        ModelError: there is no such model, or it has no head for the job.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"the device {device!r} is not available here") from error
    model = _bundled(job) if source is None else _foreign(job, str(source))
    model.network.eval().requires_grad_(False).to(device)
    return model


# ---- the bundled encoder -----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def bundled_folder() -> Path:
    """The small encoder's folder, after its file was found to be the right one."""
    folder = minilm.locate()
    minilm.checked(folder)
    return folder


def backbone(job: Job, tensors: dict[str, torch.Tensor] | None, **config: Any) -> nn.Module:
    """The small encoder with a head, from its own weights and those of an adapter.

    Args:
        job: what the head is for.
        tensors: of the adapter; None leaves the head as it is drawn at random, for training.
        config: settings of the network beside the encoder's own.

    Raises:
        ModelError: the adapter holds too little, or something that the network has no place for.
    """
    import transformers

    folder = bundled_folder()
    kind = getattr(transformers, BUNDLED[job])
    settings = transformers.BertConfig.from_pretrained(folder, **{"attn_implementation": "sdpa", **config})
    base = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    types = "bert.embeddings.token_type_embeddings.weight"
    if len(base[types]) < settings.type_vocab_size:  # a new type begins as the one that the encoder knows
        base[types] = base[types][:1].repeat(settings.type_vocab_size, 1)
    with quiet():
        network: nn.Module = kind(settings)
        missing, surplus = network.load_state_dict(adapters.merge(base, tensors or {}), strict=False)
    every = dict(network.named_parameters(remove_duplicate=False))
    filled = {id(parameter) for name, parameter in every.items() if name not in missing}  # some have two names
    wrong = [name for name in missing if name in every and id(every[name]) not in filled] if tensors else []
    wrong += [name for name in surplus if ".pooler." not in name and not name.endswith("position_ids")]
    if wrong:
        raise ModelError(f"the adapter {job!r} must fit the encoder, and does not at {wrong[0]}; reinstall textveil")
    return network


def _bundled(job: Job) -> Model:
    if job not in BUNDLED:
        raise ConfigError(f"the package brings no model for {job}; name a folder or a hub id")
    network = backbone(job, adapters.tensors(job), **adapters.manifest(job)["config"])
    return _frame(f"all-MiniLM-L6-v2 + {job}", network, minilm.read_tokenizer(bundled_folder()), bundled=True)


# ---- other models ------------------------------------------------------------------------------------------


def source_of(source: str | Path) -> tuple[str, str, bool]:
    """What a source is called, where it is, and whether it is a folder.

    Raises:
        ModelError: it can be neither a folder nor a hub id.
    """
    where = str(source)
    if Path(where).is_dir():
        return Path(where).resolve().name, where, True
    if Path(where).exists() or not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", where):
        raise ModelError(f"a model must be a folder or a hub id (owner/name); {where!r} is neither")
    return where, where, False


def _foreign(job: Job, source: str) -> Model:
    import transformers

    name, _, local = source_of(source)
    with quiet():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, local_files_only=local)
            kind = getattr(transformers, AUTO[job])
            network, loading = kind.from_pretrained(
                source, local_files_only=local, output_loading_info=True, dtype=torch.float32
            )
        except Exception as error:  # many kinds; none of them holds user text
            where = "in that folder" if local else "there, or the hub cannot be reached"
            raise ModelError(
                f"{source!r} must be a transformers model for {job}, and none could be loaded {where} "
                f"({type(error).__name__})"
            ) from error
    lost = [name for name in loading["missing_keys"] if "pooler" not in name and "position_ids" not in name]
    if lost:
        raise ModelError(f"{source!r} must be trained for {job}, and has no weights for {sorted(lost)[0]}")
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise ModelError(f"the tokenizer of {source!r} must be a fast one (tokenizer.json)")
    backend.no_truncation()
    backend.no_padding()
    limit = tokenizer.model_max_length if tokenizer.model_max_length < ENDLESS else None
    return _frame(name, network, backend, mask=tokenizer.mask_token_id, limit=limit)


def _frame(
    name: str,
    network: nn.Module,
    tokenizer: Tokenizer,
    *,
    mask: int | None = None,
    limit: int | None = None,
    bundled: bool = False,
) -> Model:
    config: Any = network.config
    tokenizer.encode_special_tokens = True  # a text may hold "[SEP]", and means those letters
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    framed = tokenizer.encode("a").ids
    at = next(i for i in range(len(framed)) if framed[i : i + len(bare)] == bare)
    before, after = tuple(framed[:at]), tuple(framed[at + len(bare) :])
    vocabulary = tokenizer.get_vocab()
    unknown = vocabulary.get(getattr(tokenizer.model, "unk_token", None) or "[UNK]")
    return Model(
        name=name,
        network=network,
        tokenizer=tokenizer,
        before=before,
        after=after,
        mask=vocabulary["[MASK]"] if bundled else mask,
        unknown=bare[0] if unknown is None else unknown,
        longest=min(limit or ENDLESS, _places(network)),
        segments=int(getattr(config, "type_vocab_size", 1) or 1),
        bundled=bundled,
    )


def _places(network: nn.Module) -> int:
    """How many pieces the network can tell the places of; some families lose the first rows to padding."""
    config: Any = network.config
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            return module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
    return int(getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or 512)


@contextmanager
def quiet() -> Iterator[None]:
    """transformers reports what it loads; that is no news to a user, and its warnings are answered by checks."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(CRITICAL)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


# ---- the input layer ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class InputLayer:
    """A model's input embeddings, one row per piece of its tokenizer.

    Attributes:
        pieces: the row of every piece that is not special.
        shape: rows and dimension; there may be more rows than pieces.
        rows: the rows from one number to another.
    """

    pieces: dict[str, int] = field(repr=False)
    shape: tuple[int, int]
    rows: Callable[[int, int], torch.Tensor] = field(repr=False)


def input_layer(source: str) -> InputLayer:
    """The input embeddings of a transformers model, read from its file where that is a safetensors one.

    Args:
        source: a local folder, or a hub id (owner/name).

    Raises:
        ModelError: there is no such model, or its tokenizer is not a fast one.
        TableError: the hub cannot be reached.
    """
    import transformers

    _, _, local = source_of(source)
    if not local:
        download(source, "config.json")  # says sooner than transformers that the hub cannot be reached
    with quiet():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, local_files_only=local)
            config = transformers.AutoConfig.from_pretrained(source, local_files_only=local)
            found = _stored_embeddings(source, config, local)
            if found is None:
                network = transformers.AutoModel.from_pretrained(source, local_files_only=local, dtype=torch.float32)
                found = network.get_input_embeddings().weight.detach()
        except Exception as error:  # many kinds; none of them holds user text
            where = "in that folder" if local else "there, or the hub cannot be reached"
            raise ModelError(
                f"{source!r} must be a transformers model with input embeddings, and none could be loaded {where} "
                f"({type(error).__name__})"
            ) from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise ModelError(f"the tokenizer of {source!r} must be a fast one (tokenizer.json)")
    special = {number for number, token in backend.get_added_tokens_decoder().items() if token.special}
    special |= set(tokenizer.all_special_ids)
    pieces = {piece: number for piece, number in backend.get_vocab().items() if number not in special}
    count, width = found.shape if isinstance(found, torch.Tensor) else found.get_shape()
    return InputLayer(pieces=pieces, shape=(count, width), rows=lambda start, stop: found[start:stop])


def _stored_embeddings(source: str, config: Any, local: bool) -> Any:
    """The tensor in its safetensors file, of which nothing else is read; None where it cannot be found there.

    The network is built without weights, to learn what its input embeddings are called.
    """
    import transformers

    with torch.device("meta"):
        network = transformers.AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    embeddings = network.get_input_embeddings()
    name = next(name for name, module in network.named_modules() if module is embeddings) + ".weight"
    whole, parts = "model.safetensors", "model.safetensors.index.json"
    if (file := _file(source, parts, local)) is not None:
        where = json.loads(file.read_text("utf-8"))["weight_map"]
    elif (file := _file(source, whole, local)) is not None:
        where = dict.fromkeys(_tensors(file).keys(), whole)
    else:
        return None
    # in the file of a larger network the name begins with the one of its encoder ("bert.")
    found = [each for each in where if each == name or each.endswith(f".{name}")]
    file = _file(source, where[found[0]], local) if len(found) == 1 else None
    return None if file is None else _tensors(file).get_slice(found[0])


def _file(source: str, name: str, local: bool) -> Path | None:
    """A file of a model, if it has one of that name."""
    if local:
        path = Path(source) / name
        return path if path.is_file() else None
    try:
        return download(source, name)
    except TableError:
        return None


def _tensors(file: Path) -> Any:
    return safe_open(file, framework="pt")
