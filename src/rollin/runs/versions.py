"""Versions that a result depends on, recorded with it."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from rollin import __version__

LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "gymnasium", "mujoco", "jax")


def versions() -> dict[str, str]:
    """Versions of this package, of Python and of the libraries that compute."""
    return dict(_installed())


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
