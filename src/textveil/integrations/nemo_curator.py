"""NeMo Curator: a pipeline stage that releases the texts of documents.

Each document is drawn once for a release.

In: batches of documents. Out: the same with released texts.
Not here: how a row is drawn once (`releases`), and runs over files (`corpus`).
"""

from collections.abc import Iterable

from textveil.config.extras import explain_missing
from textveil.errors import InputError, TextveilError
from textveil.integrations.frames import check_frame, list_texts
from textveil.integrations.releases import RowPrivatizer, TableRelease, normalize_names
from textveil.pipeline import Protector

with explain_missing():
    from nemo_curator.stages.base import ProcessingStage
    from nemo_curator.tasks import DocumentBatch

__all__ = ["TextveilStage"]


class TextveilStage(ProcessingStage[DocumentBatch, DocumentBatch]):  # type: ignore[misc]
    """Releases a column of texts.

    A document that is asked for again, such as by a retry, is the same release.

    Draws follow from a key of this stage, and the document's id and text. The key ends with the
    process that made it, and lies in a file there: workers are on the same machine.

    Args:
        privatizer: a `Privatizer`, a `TextPrivatizer`, a `Protector`, or the name of a profile;
            "data" is for texts that programs learn from.
        text: the column with the texts.
        id: the column with an id for each document, different in the whole release.
        keep: columns with text that stay as they are. All others with text are refused.
        key: for tests only: 32 bytes from which the draws follow.

    Raises:
        ConfigError: the privatizer is none, or cannot go to other processes.
    """

    name = "textveil"

    def __init__(
        self,
        privatizer: RowPrivatizer | Protector | str = "data",
        *,
        text: str = "text",
        id: str = "id",
        keep: str | Iterable[str] = (),
        key: bytes | None = None,
    ) -> None:
        self._release = TableRelease(privatizer, key=key)
        self._text, self._id, self._keep = text, id, normalize_names(keep)

    def inputs(self) -> tuple[list[str], list[str]]:
        """Returns the columns that a batch must have."""
        return ["data"], [self._text, self._id]

    def outputs(self) -> tuple[list[str], list[str]]:
        """Returns the columns that the stage writes."""
        return ["data"], [self._text]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        """Returns a new batch with released texts.

        Raises:
            InputError: a column holds text and is not named, a document has no id, or a text is
                none. ConfigError: an id comes twice, or the release is finished.
        """
        try:
            return self._release_batch(task)
        except TextveilError as error:
            failure = error.with_traceback(None)
            failure.__cause__ = failure.__context__ = None
        except Exception as error:
            failure = InputError(f"documents could not be released ({type(error).__name__})")
        raise failure  # here, where no line has a text: backends log what lines have

    def _release_batch(self, task: DocumentBatch) -> DocumentBatch:
        frame = task.to_pandas()
        kept = [self._id, *self._keep]
        check_frame(frame, [self._text], kept, is_whole=self._release.is_whole)
        results = self._release.draw(
            list_texts(frame[self._text]), frame[self._id].tolist(), self._text
        )
        new_frame = frame.copy()
        # They are not checked, and may hold text.
        new_frame.attrs = {}
        new_frame[self._text] = [None if result is None else result.text for result in results]
        return DocumentBatch(
            dataset_name=task.dataset_name,
            data=new_frame,
            _metadata=task._metadata,
            _stage_perf=task._stage_perf,
        )
