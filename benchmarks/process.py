"""What a process took: time and memory.

In: a function, or nothing. Out: seconds, bytes. Not here: what is measured (`run`, `decode`, `corpora`, `encoder`).
"""

import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path


def best(run: Callable[[], object], repeat: int) -> float:
    """The shortest of several runs after a first one, in seconds."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_memory() -> int:
    """The most that was resident of this process so far, in bytes, mapped pages included.

    Linux counts the process that started this one into `getrusage`, and not into its own status.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
