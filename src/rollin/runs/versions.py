"""Versions that a result depends on, recorded with it."""

import platform
from importlib.metadata import PackageNotFoundError, version

from rollin import __version__

LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "gymnasium", "mujoco", "jax")


def versions() -> dict[str, str]:
    """Versions of this package, of Python and of the libraries that compute."""
    found = {"rollin": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # jax is an extra
            continue
    return found
