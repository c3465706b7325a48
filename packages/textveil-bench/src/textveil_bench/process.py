"""What a process took: time and memory.

In: a function, or nothing. Out: seconds, bytes.
Not here: what is measured (`efficiency`, and `benchmarks/` of the repository).
"""

import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path


def best(run: Callable[[], object], repeat: int) -> float:
    """The shortest of several runs after a first one, in seconds."""
    return quickest(run, repeat)[0]


def clocked(run: Callable[[], object]) -> tuple[float, float]:
    """What one run takes, in seconds: on the wall, and of all processors."""
    start, used = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - start, time.process_time() - used


def quickest(run: Callable[[], object], repeat: int) -> tuple[float, float]:
    """The shortest of several runs after a first one, on the wall and of all processors."""
    run()
    return min(clocked(run) for _ in range(repeat))


def peak_memory() -> int:
    """The most that was resident of this process so far, in bytes, mapped pages included.

    Linux counts the process that started this one into `getrusage`, and not into its own status.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
