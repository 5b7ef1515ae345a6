"""Versions that a result depends on, recorded with it."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from rollin import __version__

LIBRARIES = ("numpy", "numba", "llvmlite", "gymnasium", "mujoco", "jax")


def versions() -> dict[str, str]:
    """Versions of this package, of Python and of the libraries that compute."""
    return dict(_installed())


def changed_since(then: Mapping[str, str]) -> str:
    """What has another version now, such as "numpy 2.3.0 → 2.4.6"; empty if nothing has."""
    now = _installed()
    both = [name for name in then if name in now]
    return ", ".join(
        f"{name} {then[name]} → {now[name]}" for name in both if then[name] != now[name]
    )


@cache
def _installed() -> dict[str, str]:
    """They are looked up once: that takes longer than a small run."""
    found = {"rollin": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # jax is an extra
            continue
    return found
