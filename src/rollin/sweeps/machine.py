"""How much memory there is to share out among runs."""

import os
from pathlib import Path

from rollin.runs.systems import physical_memory

SHARE = 0.9  # of the free memory that runs may take together


def free_memory() -> int:
    """Bytes that runs may take together: what the system has free, or its container allows."""
    found = [_free_of_system(), _free_of_container()]
    return int(SHARE * min(size for size in found if size is not None))


def _free_of_system() -> int:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return physical_memory()


def _free_of_container(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int | None:
    """What the control groups that this process is in leave, if one of them has a limit."""
    found = [_left(root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes")]
    try:
        inside = own.read_text().partition("0::/")[2].partition("\n")[0]
    except OSError:
        inside = ""
    group = root / inside
    for directory in (group, *group.parents):
        found.append(_left(directory, "memory.max", "memory.current"))
        if directory == root:
            break
    return min((size for size in found if size is not None), default=None)


def _left(directory: Path, limit: str, usage: str) -> int | None:
    """What one control group leaves; pages of files that it holds can be had back."""
    try:
        # "max" where there is no limit, which is no number
        left = int((directory / limit).read_text()) - int((directory / usage).read_text())
    except (OSError, ValueError):
        return None
    for line in _lines(directory / "memory.stat"):
        name, _, size = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and size.isdigit():
            left += int(size)
            break
    return max(0, left)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # neither on macOS nor on Windows
        return os.cpu_count() or 1
