"""ROLLIN: curriculum learning by rolling in with the previous task's policy.

Begin with `rollin.train`, or with `rollin.RollIn` for your own agent. `rollin.solve` is for finite
MDPs. The names of `rollin.__all__` are the public API.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from rollin.deprecated import MovedModules, renamed_public

__version__ = "0.3.0"

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_HOMES = {
    alias.name: str(node.module)
    for node in _STUB.body
    if isinstance(node, ast.ImportFrom) and node.module != "rollin"
    for alias in node.names
}
"""Modules of the public names; each is imported when it is first asked for."""

__all__ = sorted([*_HOMES, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]

sys.meta_path.append(MovedModules())
if "gymnasium" in sys.modules:  # gymnasium.make("rollin/PointUmaze-v0") knows our environments then
    import_module("rollin.envs")


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in ("sb3", "teachers"):  # modules, sb3 with torch, so only when asked for
        return import_module(f"rollin.{name}")
    if name not in _HOMES:
        name = renamed_public(name)
    return getattr(import_module(_HOMES[name]), name)
