"""Data-Juicer: an operator that releases the texts of a dataset.

Each row is drawn once for a release.

In: batches of rows. Out: the same with released texts.
Not here: how a row is drawn once (`releases`), and runs over files (`corpus`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from textveil.config.extras import explain_missing
from textveil.errors import InputError, TextveilError
from textveil.integrations.releases import (
    RowPrivatizer,
    TableRelease,
    check_columns,
    has_text,
    normalize_names,
)
from textveil.pipeline import Protector

with explain_missing():
    from data_juicer.ops.base_op import OPERATORS, Mapper

__all__ = ["TextveilMapper"]


@OPERATORS.register_module("textveil_mapper")
class TextveilMapper(Mapper):  # type: ignore[misc]
    """Releases the column `text_key`.

    A row that is asked for again is the same release.

    Draws follow from a key of this operator, and the row's id and text. The key ends with the
    process that made it. An error ends the run, with `skip_op_error` too: a release does not lack
    rows in silence.

    Args:
        privatizer: a `Privatizer`, a `TextPrivatizer`, a `Protector`, or the name of a profile;
            "data" is for texts that programs learn from.
        id: the column with an id for each row, different in the whole dataset.
        keep: columns with text that stay as they are. All others with text are refused.
        **options: of Data-Juicer's operators, such as text_key and batch_size.

    Raises:
        ConfigError: the privatizer is none, or cannot go to other processes.
    """

    _batched_op = True
    # actors of Ray would each make an operator, with a key of its own
    _supported_exec_modes = ("default",)

    def __init__(
        self,
        privatizer: RowPrivatizer | Protector | str = "data",
        id: str = "id",
        keep: str | Iterable[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(**options | {"skip_op_error": False})
        self._release, self._id, self._keep = TableRelease(privatizer), id, normalize_names(keep)

    def process_batched(self, samples: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the rows of a batch with released texts.

        Raises:
            InputError: a column holds text and is not named, a row has no id, or a text is none.
                ConfigError: an id comes twice, or the release is finished.
        """
        rows = {name: samples[name] for name in samples}
        text_columns = [name for name, column in rows.items() if has_text(column)]
        check_columns(
            list(rows),
            text_columns,
            [self.text_key],
            [self._id, *self._keep],
            is_whole=self._release.is_whole,
        )
        results = self._release.draw(rows[self.text_key], rows[self._id], self.text_key)
        return rows | {
            self.text_key: [None if result is None else result.text for result in results]
        }

    def run(self, dataset: Any, **options: Any) -> Any:
        """Returns the dataset with released texts.

        Raises:
            TextveilError: as `process_batched`.
        """
        try:
            return super().run(dataset, **options)
        except TextveilError as error:
            failure = error.with_traceback(None)
            failure.__cause__ = failure.__context__ = None
        except Exception as error:
            failure = InputError(f"rows could not be released ({type(error).__name__})")
        raise failure  # here, where no line has a text: Data-Juicer logs what lines have
