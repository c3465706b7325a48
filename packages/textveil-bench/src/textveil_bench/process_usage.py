"""Time and memory of a process.

In: a function, or nothing. Out: seconds, bytes.
Not here: the workloads that are measured (`efficiency`, and `benchmarks/` of the repository).
"""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path


def measure_best_seconds(run: Callable[[], object], repeat: int) -> float:
    """Measures the shortest of several runs after a warm-up, in seconds."""
    return measure_best_run(run, repeat)[0]


def measure_run(run: Callable[[], object]) -> tuple[float, float]:
    """Measures one run in seconds: wall clock, CPU time of all threads."""
    start, cpu_start = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - start, time.process_time() - cpu_start


def measure_best_run(run: Callable[[], object], repeat: int) -> tuple[float, float]:
    """Measures the shortest of several runs after a warm-up: wall clock, CPU."""
    run()
    return min(measure_run(run) for _ in range(repeat))


def read_peak_memory() -> int:
    """Reads this process's peak resident memory in bytes, mapped pages included.

    It is read from the process's own status: on Linux, `getrusage` also counts the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0])
    if sys.platform == "win32":
        import psutil

        return psutil.Process().memory_info().peak_wset
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
