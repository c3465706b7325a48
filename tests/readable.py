"""Whether something can be read in bytes: as it is, or encoded.

In: secrets, bytes. Out: those of the secrets that stand there.
Not here: what must not be readable, and where (tests/session, benchmarks/stores.py).
"""

import base64
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote

CODINGS = "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "latin-1"
SHORTEST = 6
"""Bytes below which something stands anywhere by chance."""


def readable(secrets: Iterable[str], content: bytes) -> list[str]:
    """The secrets that stand in bytes: in some coding, as hexadecimal digits, in base64, or escaped; in any case."""
    content = content.lower()
    return [
        secret for secret in secrets if any(form.lower() in content for form in set(_forms(secret)))
    ]


def _forms(secret: str) -> Iterator[bytes]:
    for raw in (*(secret.encode(coding) for coding in CODINGS), json.dumps(secret)[1:-1].encode()):
        # The first and last characters in base64 depend on what stands beside.
        for form in (
            raw,
            raw.hex().encode(),
            *(base64.b64encode(b"x" * i + raw)[4:-4] for i in range(3)),
        ):
            if len(form) >= SHORTEST:
                yield form
    yield quote(secret, safe="").encode()
