"""The executor `spark`: tasks of a Spark cluster.

Each of them draws one item. It needs the extra `spark`, and Java.

In: what is to be done to each item, and the items. Out: each item with what came of it.
Not here: what an item is (`part_worker`), and the other executors (`executors`, `ray`).

A task gets the number of an item and gives back what came of it, by `mapInArrow`: rows never pass
through Spark, which may run a task again, or twice at once (speculation). Both then write the same
file.
"""

import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from textveil.config.extras import explain_missing
from textveil.corpus.executors import MAX_RETRIES, Item, Result, count_cores
from textveil.corpus.release_key import KeyHandle
from textveil.errors import ConfigError, TextveilError

TASKS_PER_CORE = 16
"""The tasks of a job per core.

Results come after each job, so that progress is seen.
"""

TASK_SCHEMA = "number long, made binary"


@dataclass(frozen=True)
class SparkKeyHandle:
    """A handle to a secret that Spark broadcasts.

    It is encrypted where it lies on a disk; tasks have its number.
    """

    broadcast: Any

    def read(self) -> bytes:
        """Returns the secret."""
        secret: bytes = self.broadcast.value
        return secret


class SparkExecutor:
    """Runs work in tasks of Spark.

    A `with` block ends the session, where it was started here.

    Args:
        workers: how many tasks at once on this machine; 0 is one per core. A cluster decides that
            itself.
        cluster: its address, such as spark://HOST:7077 or yarn; None starts one on this machine.

    Raises:
        MissingExtra: pyspark is not installed.
        ConfigError: there is no Java.
    """

    def __init__(self, workers: int = 0, *, cluster: str | None = None) -> None:
        with explain_missing():
            from pyspark.sql import SparkSession
        if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
            raise ConfigError(
                "Spark needs Java 17 or newer: install it (openjdk-17-jre-headless), or set "
                "JAVA_HOME"
            )
        # or tasks would run in the Python of the system
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        warnings.filterwarnings(
            "ignore", message="PySpark does not yet fully support pandas", category=FutureWarning
        )
        active_session = SparkSession.getActiveSession()
        self._owns_session = active_session is None
        self._session = active_session or self._start(
            SparkSession.builder, workers or count_cores(), cluster
        )

    def _start(self, builder: Any, workers: int, cluster: str | None) -> Any:
        session_builder = builder.appName("textveil").config("spark.io.encryption.enabled", "true")
        if cluster is None:
            session_builder = (
                session_builder.config("spark.driver.host", "127.0.0.1")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
            )
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            session_builder = session_builder.config(f"spark.executorEnv.{name}", "1")
        # The second number of local[N,F] is how often a task may be tried in all.
        session = session_builder.master(
            cluster or f"local[{workers},{MAX_RETRIES + 1}]"
        ).getOrCreate()
        # what fails is said once, by us, and without what a task had in hand
        session.sparkContext.setLogLevel("OFF")
        return session

    def share_key(self, secret: KeyHandle) -> KeyHandle:
        """Broadcasts the secret, and returns a handle with its number."""
        return SparkKeyHandle(self._session.sparkContext.broadcast(secret.read()))

    def map(
        self, draw: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Yields each item with its result; see `Executor.map`.

        In jobs of some tasks for each core.
        """
        context = self._session.sparkContext
        step = TASKS_PER_CORE * context.defaultParallelism
        item_list = list(items)
        for first in range(0, len(item_list), step):
            batch = item_list[first : first + step]
            # As many partitions as items, so that each item is a task of its own.
            frame = self._session.range(0, len(batch), 1, len(batch))
            for number, payload in self._collect(
                frame.mapInArrow(_build_task(draw, batch), TASK_SCHEMA)
            ):
                yield batch[number], pickle.loads(payload)

    def _collect(self, frame: Any) -> list[tuple[int, bytes]]:
        """Returns the results of a job, or raises an error.

        An error of ours as it was raised, and of others nothing but the name.
        """
        from pyspark.errors import PySparkException

        try:
            result = [(row.number, bytes(row.made)) for row in frame.collect()]
        except PySparkException as error:
            failure = type(error).__name__
        else:
            for _, payload in result:
                if isinstance(task_error := pickle.loads(payload), TextveilError):
                    raise task_error
            return result
        raise TextveilError(f"A Spark task failed repeatedly ({failure}). Retry with --resume.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._owns_session:
            self._session.stop()


def _build_task(
    draw: Callable[[Any], Any], items: list[Any]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from textveil.runtime import limit_threads

        limit_threads(1)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result: Any
                try:
                    result = draw(items[number])
                except (
                    TextveilError
                ) as error:  # as it is; a task that raises would be run again, for the same end
                    result = type(error)(*error.args)
                yield pa.RecordBatch.from_pydict(
                    {"number": [number], "made": [pickle.dumps(result)]}
                )

    return run
