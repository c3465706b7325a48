"""A text's vector is its own on processors without VNNI and AVX-512 too, which an emulator stands for.

Beside the quick tests, which have the processor that they run on. Skipped where there is no emulator
(Debian: qemu-user).
"""

import json
import shutil
import subprocess
import sys

import pytest

EMULATOR = shutil.which("qemu-x86_64")

PROGRAM = """
import json
import numpy as np
from textveil.models import load_sentences

texts = ["It rains.", "The bank lent them nine hundred pounds in May.", "", "word " * 300, "Who won?"]
encode = load_sentences().encode
alone = np.concatenate([encode([text]) for text in texts])
together, reversed_ = encode(texts), encode(texts[::-1])[::-1]
short = encode(texts[:3])  # in another batch
print(json.dumps([
    bool((alone == together).all() and (alone == reversed_).all() and (alone[:3] == short).all()),
    bool(np.abs(alone).max() > 0.01),
    np.__config__.show(mode="dicts")["SIMD Extensions"].get("found", []),
]))
"""


@pytest.mark.slow
@pytest.mark.skipif(EMULATOR is None, reason="needs qemu-x86_64")
@pytest.mark.parametrize("processor", ["Haswell", "Nehalem"])
def test_a_vector_is_the_same_alone_and_in_any_batch_without_vnni(processor: str) -> None:
    command = [str(EMULATOR), "-cpu", processor, sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    is_alike, is_vector, extensions = json.loads(done.stdout.splitlines()[-1])
    assert is_vector
    assert not [name for name in extensions if name.startswith("AVX512")]
    assert is_alike
