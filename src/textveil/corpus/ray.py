"""The executor `ray`: actors of a Ray cluster.

Each of them loads its privatizer once. It needs the extra `ray`.

In: what is to be done to each item, and the items. Out: each item with what came of it.
Not here: what an item is (`part_worker`), and the other executors (`executors`, `spark`).

These are plain actors, not Ray Data: a part must be one task, drawn again as a whole and written
under its own name. Ray Data joins small files to one block, and what it commits and repeats is its
own block.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from textveil.config.extras import explain_missing
from textveil.corpus.executors import MAX_RETRIES, Item, Result
from textveil.corpus.release_key import KeyHandle
from textveil.errors import TextveilError
from textveil.runtime import limit_threads


@dataclass(frozen=True)
class RayKeyHandle:
    """A handle to a secret in Ray's object store.

    Workers ask for it by a number; it is in no argument and in no log.
    """

    reference: Any

    def read(self) -> bytes:
        """Fetches the secret."""
        import ray

        secret: bytes = ray.get(self.reference[0])
        return secret


class RayExecutor:
    """Runs work in actors of Ray.

    A `with` block ends them, and the cluster too where it was started here.

    Args:
        workers: how many actors; 0 is one per core of the cluster.
        cluster: the address of a cluster, such as auto or ray://HOST:10001; None starts one on this
            machine.

    Raises:
        MissingExtra: Ray is not installed.
        TextveilError: the cluster does not answer.
    """

    def __init__(self, workers: int = 0, *, cluster: str | None = None) -> None:
        with explain_missing():
            import ray
        self._owns_cluster = not ray.is_initialized()
        if self._owns_cluster:
            quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
            local: dict[str, Any] = {"include_dashboard": False} if cluster is None else {}
            try:
                ray.init(address=cluster or "local", **quiet, **local)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise TextveilError(
                    f"Ray cannot be reached or started: {type(error).__name__}"
                ) from None
        cores = float(ray.cluster_resources().get("CPU", 1))
        self.workers = workers or max(1, int(cores))
        self._cpus = min(1.0, cores / self.workers)  # or actors that do not fit would wait for ever

    def share_key(self, secret: KeyHandle) -> KeyHandle:
        """Puts the secret into Ray's object store."""
        import ray

        # in a tuple, or an argument would be replaced by the secret itself
        return RayKeyHandle((ray.put(secret.read()),))

    def map(
        self, draw: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Yields each item with its result; see `Executor.map`.

        An actor that died is started anew, and repeats the item it was working on.
        """
        import ray

        variables = {name: os.environ[name] for name in ACTOR_VARIABLES if name in os.environ}
        actor_class = ray.remote(_Worker).options(
            num_cpus=self._cpus,
            # No limit here: the next line bounds how often a task is tried.
            max_restarts=-1,
            max_task_retries=MAX_RETRIES,
            runtime_env={"env_vars": variables},
        )
        actors = [actor_class.remote() for _ in range(self.workers)]
        draw_reference = ray.put(draw)
        waiting: dict[Any, tuple[Item, Any]] = {}
        remaining_items = iter(items)
        try:
            for actor in actors * 2:  # one more than each is at, so that none waits
                for item in remaining_items:
                    waiting[actor.draw.remote(draw_reference, item)] = item, actor
                    break
            while waiting:
                (done, *_), _ = ray.wait(list(waiting), num_returns=1)
                result = _get_result(done)
                item, actor = waiting.pop(done)
                for following in remaining_items:
                    waiting[actor.draw.remote(draw_reference, following)] = following, actor
                    break
                yield item, result
        finally:
            for actor in actors:
                ray.kill(actor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import ray

        if self._owns_cluster:
            ray.shutdown()


ACTOR_VARIABLES = ("PYTHONPATH", "HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM", "TEXTVEIL_TABLES")
"""Environment variables of this process that its actors get, too."""


class _Worker:
    """An actor that draws items."""

    def __init__(self) -> None:
        limit_threads(1)

    def draw(self, draw: Callable[[Any], Any], item: Any) -> Any:
        """Draws an item, and returns its result."""
        return draw(item)


def _get_result(done: Any) -> Any:
    """Returns the result of a task, or raises its error.

    An error of ours as it was raised, and of others nothing but the name.
    """
    import ray

    try:
        return ray.get(done)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
    except ray.exceptions.RayError as error:
        cause = error
    if isinstance(cause, TextveilError):
        raise cause.with_traceback(None) from None
    raise TextveilError(
        f"A Ray worker failed repeatedly ({type(cause).__name__}). Retry with --resume."
    )
