"""Writing with a local language model whose tokens are chosen elsewhere.

In: a folder or hub id of a model of transformers, a prompt. Out: a text.
Not here: how a token is drawn from logits (`mechanism.token_draw`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textveil.config.extras import require
from textveil.errors import ModelError
from textveil.randomness import Floats
from textveil.table import fetch

Choose = Callable[[Floats], int]


@dataclass(frozen=True, kw_only=True, eq=False)
class TextGenerator:
    """A causal or encoder-decoder language model that writes on this machine.

    Attributes:
        name: its name in statements.
        network, tokenizer: of transformers.
        limit: most tokens that it reads and writes.
    """

    name: str
    network: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    limit: int

    @property
    def _is_causal(self) -> bool:
        return not self.network.config.is_encoder_decoder

    def write(self, before: str, text: str, after: str, *, tokens: int, choose: Choose) -> str:
        """Writes at most so many tokens after a prompt, and stops where the model ends.

        Args:
            before: the beginning of the prompt.
            text: its middle, whose end is left out where the model takes no more.
            after: its end.
            tokens: most tokens.
            choose: chooses a token from the logits [V] of each step.

        Raises:
            ModelError: the model has no room for the prompt, or fails.
        """
        import torch
        from transformers import GenerationConfig, LogitsProcessor

        class Chosen(LogitsProcessor):
            def __call__(self, ids: Any, scores: Any) -> Any:
                token = choose(scores[0].float().cpu().numpy())
                only = torch.full_like(scores, -torch.inf)
                only[0, token] = 0
                return only

        ids = self._encode(before, text, after, tokens)
        ends = [self.network.config.eos_token_id, self.tokenizer.eos_token_id]
        end = next((piece for piece in ends if piece is not None), None)
        start = getattr(self.network.config, "decoder_start_token_id", None)
        if start is None:
            start = self.network.generation_config.decoder_start_token_id
        pad = self.tokenizer.pad_token_id
        # Settings of our own, for those stored with a model may change logits after clipping.
        settings: Any = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=tokens,
            do_sample=False,
            num_beams=1,
            eos_token_id=end,
            pad_token_id=end if pad is None else pad,
            decoder_start_token_id=start,
        )
        # What is not set here would be taken from the model's: max_time, penalties.
        self.network.generation_config = settings
        inputs = torch.tensor([ids], device=self.network.device)
        with torch.no_grad():
            output = self.network.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                generation_config=settings,
                logits_processor=[Chosen()],
            )[0]
        written = output[len(ids) :] if self._is_causal else output
        decoded = self.tokenizer.decode(written, skip_special_tokens=True)
        return " ".join(str(decoded).split())

    def _encode(self, before: str, text: str, after: str, tokens: int) -> list[int]:
        room = self.limit - (tokens if self._is_causal else 0)
        while True:
            whole = self.tokenizer(before + text + after, verbose=False)
            ids: list[int] = list(whole["input_ids"])
            excess = len(ids) - room
            if excess <= 0:
                return ids
            if not text:
                raise ModelError(
                    f"{self.name} takes {self.limit:,} tokens, which leaves no room for the text; "
                    "write fewer tokens"
                )
            parts = self.tokenizer(
                text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
            )
            kept = parts["offset_mapping"][: max(0, len(parts["input_ids"]) - excess)]
            # Always shorter, whatever the tokenizer says about places.
            text = text[: min(kept[-1][1] if kept else 0, len(text) - 1)]


def load_generator(source: str | Path, *, device: str = "cpu") -> TextGenerator:
    """Loads a model from a folder, the hub's cache, or the hub.

    Code that comes with a model is never run.

    Raises:
        ModelError: there is no such model, or weights are missing.
        MissingExtra: torch and transformers are not installed.
    """
    require("torch", "transformers")
    import torch
    import transformers

    def read(where: str, local: bool) -> tuple[Any, Any]:
        options: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
        config = transformers.AutoConfig.from_pretrained(where, **options)
        kind: Any = (
            transformers.AutoModelForSeq2SeqLM
            if config.is_encoder_decoder
            else transformers.AutoModelForCausalLM
        )
        network, loading = kind.from_pretrained(
            where, dtype=torch.float32, output_loading_info=True, **options
        )
        if loading["missing_keys"] or loading["mismatched_keys"]:
            raise ModelError("weights are missing")
        return network, transformers.AutoTokenizer.from_pretrained(where, **options)

    name, (network, tokenizer) = fetch(source, "language model that writes", read)
    network.to(device).eval()
    sizes = (
        getattr(network.config, key, None) for key in ("n_positions", "max_position_embeddings")
    )
    # Models with relative positions name no limit; 512 is what T5 was trained with.
    limit = next((int(size) for size in sizes if size), 512)
    return TextGenerator(name=name, network=network, tokenizer=tokenizer, limit=limit)
