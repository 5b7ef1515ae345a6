"""Code that a page has its readers write into a file: blocks that begin with the file's name."""

import re
from collections.abc import Iterable
from pathlib import Path


def write_files(pages: Iterable[Path], directory: Path) -> list[str]:
    """Write these files; returns the names of the modules."""
    found = [
        (name, code)
        for page in pages
        for code, name in re.findall(r"```python\n(# (\w+)\.py\n.*?)```", page.read_text(), re.S)
    ]
    for name, code in found:
        (directory / f"{name}.py").write_text(code, encoding="utf-8")
    return [name for name, _ in found]
