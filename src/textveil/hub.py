"""Files of public models from a hub that may or may not be reached.

In: a repository and a file name. Out: the file's local path.
Not here: what is in the files (`minilm`, `wordpiece`). Nothing of the user's is sent but the names.
"""

import logging
import re
from pathlib import Path

from textveil.errors import TableError

HUB_ID = re.compile(r"[\w-][\w.-]{0,95}/[\w.-]{1,96}")
"""What the name of a model on a hub looks like: owner/name."""


def download(repository: str, file: str) -> Path:
    """The local path of a hub's file, from the cache where it is there.

    Raises:
        TableError: the hub cannot be reached, or has no such file.
    """
    log = logging.getLogger("huggingface_hub")
    level = log.level
    try:
        from huggingface_hub import hf_hub_download

        log.setLevel(logging.CRITICAL)  # its retries are no news to the user
        return Path(hf_hub_download(repository, file, etag_timeout=5))
    except Exception as error:  # the hub's client raises many kinds; none of them holds user text
        raise TableError(f"{repository} could not be fetched from the hub ({type(error).__name__})") from error
    finally:
        log.setLevel(level)
