"""The command line of the training scripts: where the data is, the device, where checkpoints go.

In: the command line. Out: checked settings. Not here: recipes; they are constants of their scripts.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
SLOW_BACKWARD = {"attn_implementation": "eager"}
"""Settings of the network while training: the backward pass of fused attention is slow on a CPU."""

DATA = HERE.parent / "src" / "textveil" / "data"
ADAPTERS = DATA / "adapters"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where to read and write, and what to compute on.

    Attributes:
        data: the folder of corpora.
        work: the folder of checkpoints.
        device: a torch device.
        out: where to write the adapter.
        go_on: whether training begins with the weights of the package.
    """

    data: Path
    work: Path
    device: str
    out: Path
    go_on: bool = False

    def products(self) -> torch.autocast:
        """Products in bfloat16 where the device has them; other processors are slower with them."""
        kind = torch.device(self.device).type
        known = torch.cpu.get_capabilities() if kind == "cpu" else {}
        enabled = kind != "cpu" or any(
            known.get(each, False) for each in ("avx512_bf16", "amx_bf16")
        )
        return torch.autocast(kind, torch.bfloat16, enabled=enabled)


def settings(description: str) -> Settings:
    """The settings of a training script, from its command line.

    Raises:
        SystemExit: a folder is missing.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--work", type=Path, default=HERE / "work", help="checkpoints (default training/work)"
    )
    parser.add_argument(
        "--out", type=Path, default=ADAPTERS, help="the adapter (default: into the package)"
    )
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", help="a torch device"
    )
    parser.add_argument("--go-on", action="store_true", help="begin with the tagger of the package")
    given = with_corpora(parser)
    return Settings(
        data=given.data, work=given.work, device=given.device, out=given.out, go_on=given.go_on
    )


def with_corpora(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses the command line with `parser`, adding `data`, the folder of corpora.

    Raises:
        SystemExit: the folder is missing.
    """
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("TEXTVEIL_CORPORA"),
        help="the folder of corpora",
    )
    given = parser.parse_args()
    if given.data is None or not given.data.is_dir():
        parser.error(
            "name the folder of corpora: --data FOLDER or TEXTVEIL_CORPORA=FOLDER (see "
            "training/README.md)"
        )
    return given
