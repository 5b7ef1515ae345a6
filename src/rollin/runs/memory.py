"""How much memory there is to share out among runs."""

import os
from pathlib import Path

SHARE = 0.9  # of the free memory that runs may take together


def free_memory() -> int:
    """Bytes that runs may take together: what the system has free, or its container allows."""
    found = [_free_of_system(), _free_of_container()]
    return int(SHARE * min(size for size in found if size is not None))


def _free_of_system() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # macOS says no more


def _free_of_container(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a control group leaves, if there is one with a limit."""
    for limit, usage in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            # "max" where there is no limit, which is no number
            return max(0, int((root / limit).read_text()) - int((root / usage).read_text()))
        except (OSError, ValueError):
            continue
    return None


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
