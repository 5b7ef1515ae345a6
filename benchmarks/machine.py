"""What machine a benchmark ran on."""

import platform
from pathlib import Path


def processor() -> str:
    """The CPU's name, with family and model where the name says little."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    known: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        known.setdefault(name.strip(), value.strip())
    family, model = known.get("cpu family", "?"), known.get("model", "?")
    return f"{known.get('model name', platform.machine())} (family {family}, model {model})"
