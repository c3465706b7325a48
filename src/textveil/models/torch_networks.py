"""Networks on torch: transformers models, and the bundled encoder.

The models come from a folder or hub; the bundled encoder is here for a GPU or for training.

In: a job, a source, a device. Out: networks with their tokenizers and special tokens.
Not here: what they are used for, and the bundled encoder on the processor (`bundled`). Torch and
transformers are an extra: only what needs them imports this module.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from textveil.errors import ConfigError, ModelError
from textveil.models import adapters, bundled
from textveil.models.bundled import BundledJob, find_encoder_folder
from textveil.randomness import Floats, Ints, Values
from textveil.table import fetch, get_fast_tokenizer, silence_reports

AUTO_CLASSES = {
    "masked-lm": "AutoModelForMaskedLM",
    "causal-lm": "AutoModelForCausalLM",
    "tagger": "AutoModelForTokenClassification",
    "reader": "AutoModelForQuestionAnswering",
    "classifier": "AutoModelForSequenceClassification",
    "encoder": "AutoModel",
}
BUNDLED_CLASSES = {
    "masked-lm": "BertForMaskedLM",
    "tagger": "BertForTokenClassification",
    "reader": "BertForQuestionAnswering",
    "classifier": "BertForSequenceClassification",
    "sentences": "BertModel",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class TorchNetwork:
    """A module of transformers as a `networks.Network`.

    Attributes:
        name: for messages.
        module: the network.
    """

    name: str
    module: Any = field(repr=False)

    needs_equal_lengths = False

    @property
    def device(self) -> str:
        """The device of the module."""
        return str(next(self.module.parameters()).device)

    @property
    def vocabulary(self) -> int:
        """The number of pieces it has embeddings for."""
        return int(self.module.get_input_embeddings().num_embeddings)

    @property
    def max_pieces(self) -> int:
        """The most pieces per sequence."""
        return count_positions(self.module)

    @property
    def type_count(self) -> int:
        """The number of token types."""
        return int(getattr(self.module.config, "type_vocab_size", 1) or 1)

    @property
    def padding_piece(self) -> int | None:
        """The padding piece."""
        piece: int | None = getattr(self.module.config, "pad_token_id", None)
        return piece

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels; "LABEL_0" and so on by default."""
        names = self.module.config.id2label
        return tuple(str(names[i]) for i in range(self.module.config.num_labels))

    @property
    def start_piece(self) -> int | None:
        """The piece that begins a text where the tokenizer adds none."""
        for name in ("bos_token_id", "eos_token_id"):
            piece = getattr(self.module.config, name, None)
            if isinstance(piece, int) and piece >= 0:
                return piece
        return None

    def build_inputs(
        self, ids: Ints, lengths: Ints, types: Ints | None = None
    ) -> dict[str, torch.Tensor]:
        """Converts sequences to the module's arguments, with the padding masked."""
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        arguments = {
            "input_ids": np.where(mask, ids, self.padding_piece or 0),
            "attention_mask": mask.astype(np.int64),
        }
        if types is not None:
            arguments["token_type_ids"] = types
        return {name: torch.from_numpy(array).to(self.device) for name, array in arguments.items()}

    def run(self, ids: Ints, lengths: Ints, types: Ints | None = None) -> Floats:
        """Computes logits; see `networks.Network`."""
        with torch.inference_mode():
            output = self.module(**self.build_inputs(ids, lengths, types))
            if hasattr(output, "start_logits"):
                return _convert_tensor(
                    torch.stack([output.start_logits, output.end_logits], dim=-1)
                )
            if hasattr(output, "last_hidden_state"):
                return _convert_tensor(output.last_hidden_state)
            return _convert_tensor(output.logits)

    def run_at(
        self, ids: Ints, lengths: Ints, types: Ints | None, row: Ints, column: Ints
    ) -> Floats:
        """Computes logits at given places; see `networks.Network`."""
        return self.run(ids, lengths, types)[row, column]

    @property
    def width(self) -> int:
        """The width of its states."""
        return int(self.module.config.hidden_size)

    @property
    def has_pooler(self) -> bool:
        """True if it has a layer that makes one vector of a sequence."""
        return getattr(self.module, "pooler", None) is not None

    def pool(self, ids: Ints, lengths: Ints, pooling: Literal["mean", "cls", "pooler"]) -> Floats:
        """Computes one vector of each sequence, float32 [n, d], of a network without a head."""
        with torch.inference_mode():
            inputs = self.build_inputs(ids, lengths)
            output = self.module(**inputs)
            if pooling == "pooler":
                return _convert_tensor(output.pooler_output)
            states, mask = output.last_hidden_state, inputs["attention_mask"]
            if pooling == "cls":
                return _convert_tensor(states[:, 0])
            return _convert_tensor((states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))

    def compute_saliency(self, ids: Ints, lengths: Ints, classes: Ints) -> Values:
        """Computes each piece's saliency for a class: float64 [n, L].

        The norm of input embedding times gradient of the logit of one class per sequence [n].
        """
        with torch.enable_grad(), _capture_embeddings(self.module.get_input_embeddings()) as inputs:
            logits = self.module(**self.build_inputs(ids, lengths)).logits
            class_logits = logits.gather(
                1, torch.from_numpy(classes).to(logits.device)[:, None]
            ).sum()
            (gradient,) = torch.autograd.grad(class_logits, inputs[0])
        norms: Values = (gradient.double() * inputs[0].detach().double()).norm(dim=-1).cpu().numpy()
        return norms

    def take_output(self) -> tuple[Floats, Floats | None]:
        """Removes and returns the output layer; see `networks.Network`.

        The module then returns what that layer would read.

        Raises:
            ModelError: the output layer cannot be removed.
        """
        ids = np.linspace(0, self.vocabulary - 1, 8).astype(np.int64)[None]  # a meaningless text
        lengths = np.array([8])
        try:
            layer = self.module.get_output_embeddings()
            logits = self.run(ids, lengths)
            self.module.set_output_embeddings(_PassThrough())
            with torch.inference_mode():
                replay_logits = layer(torch.from_numpy(self.run(ids, lengths)).to(self.device))
            is_last = isinstance(layer, nn.Linear) and np.allclose(
                _convert_tensor(replay_logits), logits, rtol=1e-4, atol=1e-4
            )
        except Exception as error:  # whatever a network does without its output layer
            raise ModelError(
                f"cannot remove the output layer of {self.name}; choose another model"
            ) from error
        if not is_last:
            raise ModelError(
                f"the output layer of {self.name} must be linear and the last step; choose "
                "another model"
            )
        return _convert_tensor(layer.weight), None if layer.bias is None else _convert_tensor(
            layer.bias
        )

    def build_head(self, rows: Floats, bias: Floats) -> "TorchHead":
        """Builds an output layer of other rows; see `networks.Network`."""
        return TorchHead(network=self, rows=rows, bias=bias)


@dataclass(frozen=True, kw_only=True, eq=False)
class TorchHead:
    """A `networks.OutputHead` on a network's device.

    Attributes:
        network: the network, without its output layer.
        rows: float32 [V, d].
        bias: float32 [V].
    """

    network: TorchNetwork
    rows: Floats = field(repr=False)
    bias: Floats = field(repr=False)

    def read(self, ids: Ints, lengths: Ints, row: Ints, column: Ints) -> torch.Tensor:
        """Returns the output layer's inputs [m, d], on the device."""
        with torch.inference_mode():
            states: torch.Tensor = self.network.module(
                **self.network.build_inputs(ids, lengths)
            ).logits
            return states[torch.from_numpy(row), torch.from_numpy(column)]

    def compute_logits(self, states: torch.Tensor) -> Floats:
        """Computes logits [m, V] in float32.

        Even if the caller lets the network use less.
        """
        with torch.inference_mode(), torch.autocast(states.device.type, enabled=False):
            rows, bias = self._device_tensors
            return _convert_tensor(torch.addmm(bias, states.float(), rows.T))

    @cached_property
    def _device_tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        rows, bias = (
            torch.from_numpy(array).to(self.network.device) for array in (self.rows, self.bias)
        )
        return rows, bias


class LoadedModel(NamedTuple):
    """A model loaded from a source, with its tokenizer.

    Args:
        name: what rows and statements call it.
        network: in evaluation mode on its device, without gradients.
        tokenizer: without truncation and padding.
        special: the pieces `mask` and `unknown`, and the tokenizer's `limit`.
        missing: parameters that it has no weights for.
    """

    name: str
    network: TorchNetwork
    tokenizer: Tokenizer
    special: dict[str, int | None]
    missing: tuple[str, ...]


def load(job: str, source: str | Path, device: str, **config: Any) -> LoadedModel:
    """Loads a model of transformers.

    Args:
        job: what its head is for.
        source: a folder or hub id.
        device: a torch device.
        config: settings on top of the stored ones.

    Raises:
        ModelError: there is no such model.
    """
    import transformers

    def read(where: str, local: bool) -> tuple[Any, Any, dict[str, Any]]:
        # Code that comes with a model is never run.
        options: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **options)
        kind = getattr(transformers, AUTO_CLASSES[job])
        network, loading = kind.from_pretrained(
            where, output_loading_info=True, dtype=torch.float32, **options, **config
        )
        return tokenizer, network, loading

    name, (tokenizer, network, loading) = fetch(source, f"transformers model for {job}", read)
    # A stored head of another size is replaced by a random one, so it is missing, too.
    missing_keys = {*loading["missing_keys"], *(key for key, *_ in loading["mismatched_keys"])}
    backend = get_fast_tokenizer(name, tokenizer)
    backend.no_truncation()
    backend.no_padding()
    unknown = tokenizer.eos_token_id if tokenizer.unk_token_id is None else tokenizer.unk_token_id
    special = {
        "mask": tokenizer.mask_token_id,
        "unknown": unknown,
        "limit": tokenizer.model_max_length,
    }
    return LoadedModel(
        name, _build_network(name, network, device), backend, special, tuple(sorted(missing_keys))
    )


def check_device(device: str) -> None:
    """Checks that a torch device exists and can be read from.

    Raises:
        ConfigError: it does not, or cannot.
    """
    try:
        torch.empty(0, device=device).cpu()
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"the device {device!r} is not available here; try cpu") from error


def count_positions(network: nn.Module) -> int:
    """Returns the number of positions of a module.

    Some families lose the first rows to padding.
    """
    config: Any = network.config
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            return module.num_embeddings - (
                0 if module.padding_idx is None else module.padding_idx + 1
            )
    sizes = (
        getattr(config, name, None) or 0 for name in ("max_position_embeddings", "n_positions")
    )
    return next((int(number) for number in sizes if number > 0), 512)  # XLNet says -1


# ---- the bundled encoder -------------------------------------------------------------------------


def load_bundled_network(job: BundledJob, layers: int | None, device: str) -> TorchNetwork:
    """Loads the bundled encoder of a job, with its adapter.

    Its first layers, or all of them.

    Raises:
        ConfigError: it has fewer layers.
        ModelError: an adapter's file is missing, broken, or does not fit.
    """
    loaded = bundled.load(job, layers)
    config = {} if job == "sentences" else adapters.read_manifest(job)["config"]
    network: Any = build_backbone(job, loaded.weights, **config)
    encoder = network.base_model.encoder
    encoder.layer = encoder.layer[: loaded.layers]
    network.config.num_hidden_layers = loaded.layers
    return _build_network("the bundled encoder", network, device)


def build_bundled_classifier(labels: int, device: str) -> TorchNetwork:
    """Builds a classifier on the bundled encoder, with a random head."""
    network = build_backbone("classifier", None, num_labels=labels)
    return _build_network("the bundled encoder", network, device)


def build_backbone(
    job: BundledJob | Literal["classifier"], weights: Mapping[str, Floats] | None, **config: Any
) -> nn.Module:
    """Builds a bundled encoder with a head as a transformers module.

    Args:
        job: what the head is for.
        weights: of encoder and head; None for the encoder's own, and a head initialized at random,
            for training.
        config: settings of the network on top of the encoder's.
    """
    import transformers

    kind = getattr(transformers, BUNDLED_CLASSES[job])
    source_weights = (
        adapters.MergedWeights(bundled.read_stored_weights(job), {}) if weights is None else weights
    )
    size = {"vocab_size": len(source_weights[bundled.WORD_EMBEDDINGS])}
    config = {"attn_implementation": "sdpa", **size, **config}
    settings = transformers.BertConfig.from_pretrained(find_encoder_folder(), **config)
    state = {
        name: torch.from_numpy(np.array(array, np.float32))
        for name, array in source_weights.items()
    }
    types = "bert.embeddings.token_type_embeddings.weight"
    if len(state[types]) < settings.type_vocab_size:  # a new type starts as a copy of the known one
        state[types] = state[types][:1].repeat(settings.type_vocab_size, 1)
    with silence_reports():
        network: nn.Module = kind(settings)
        if job == "sentences":  # the encoder itself
            state = {name.removeprefix("bert."): weight for name, weight in state.items()}
        network.load_state_dict(state, strict=False)
    return network


def _build_network(name: str, network: Any, device: str) -> TorchNetwork:
    return TorchNetwork(name=name, module=network.eval().requires_grad_(False).to(device))


class _PassThrough(nn.Identity):
    """Replaces the output layer, so that the network returns that layer's input."""

    bias = None


def _convert_tensor(values: torch.Tensor) -> Floats:
    result: Floats = values.detach().float().cpu().numpy()
    return result


@contextmanager
def _capture_embeddings(embeddings: Any) -> Iterator[list[torch.Tensor]]:
    """Captures the output of the input embeddings, to take gradients there."""
    outputs: list[torch.Tensor] = []

    def keep_output(module: object, inputs: object, output: torch.Tensor) -> torch.Tensor:
        # Parameters have no gradients, so the graph must begin here.
        outputs.append(output.detach().requires_grad_())
        return outputs[-1]

    hook = embeddings.register_forward_hook(keep_output)
    try:
        yield outputs
    finally:
        hook.remove()
