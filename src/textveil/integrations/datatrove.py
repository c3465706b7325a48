"""datatrove: a pipeline step that releases documents.

Each document is drawn once for a release.

In: documents of a rank. Out: the same documents with released texts.
Not here: how a row is drawn once (`releases`), and runs over files (`corpus`).
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from textveil.config.extras import explain_missing
from textveil.errors import InputError, TextveilError
from textveil.integrations.releases import (
    RowPrivatizer,
    TableRelease,
    check_metadata,
    normalize_names,
)
from textveil.pipeline import Protector

with explain_missing():
    from datatrove.data import Document
    from datatrove.pipeline.base import PipelineStep

__all__ = ["DocumentRelease"]

BATCH_SIZE = 256
"""The number of documents that are drawn together."""


class DocumentRelease(PipelineStep):  # type: ignore[misc]
    """Releases the texts of documents.

    A document that is asked for again, by a retry of its rank, is the same release.

    Draws follow from a key of this step, and the document's id and text. The key ends with the
    process that made it.

    Args:
        privatizer: a `Privatizer`, a `TextPrivatizer`, a `Protector`, or the name of a profile.
        keep: fields of the metadata with text that stay as they are, such as file_path. Documents
            with others are refused.
        key: for tests only: 32 bytes from which the draws follow.

    Raises:
        ConfigError: the privatizer is none, or cannot go to other processes.
    """

    name = "textveil"
    type = "release"

    def __init__(
        self,
        privatizer: RowPrivatizer | Protector | str,
        *,
        keep: str | Iterable[str] = (),
        key: bytes | None = None,
    ) -> None:
        super().__init__()
        self._release, self._keep = TableRelease(privatizer, key=key), normalize_names(keep)

    def run(self, data: Any, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        """Yields the released documents, in their order.

        Raises:
            InputError: a document has media, no id, or text in its metadata that nobody named.
                ConfigError: an id comes twice, or the release is finished.
        """
        documents = iter(data or ())
        while batch := list(islice(documents, BATCH_SIZE)):
            with self.track_time("batch"):
                failure = self._draw(batch)
            # raised here, where no line has a text: datatrove logs what lines have
            if failure is not None:
                raise failure
            for document in batch:
                self.stat_update("released")
                yield document

    def _draw(self, batch: list[Document]) -> Exception | None:
        """Releases a batch in place, and returns the error, if any."""
        try:
            for document in batch:
                self._check(document)
            results = self._release.draw(
                [item.text for item in batch], [item.id for item in batch], "text"
            )
            texts = [None if item is None else item.text for item in results]
        except TextveilError as error:
            return error.with_traceback(None)
        except Exception as error:
            return InputError(f"documents could not be released ({type(error).__name__})")
        for document, text in zip(batch, texts, strict=True):
            document.text = text
        return None

    def _check(self, document: Document) -> None:
        if document.media:
            raise InputError("a document has media, which cannot be released: leave them out")
        if not isinstance(document.text, str):
            raise InputError("a document has no text")
        check_metadata(document.metadata, self._keep, is_whole=self._release.is_whole)
