"""MuJoCo is an extra: who asks for a robot without it is told in one sentence what to install."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import gymnasium

from rollin.errors import MissingExtraError, told


@contextmanager
def mujoco_for(task: str) -> Iterator[None]:
    """While inside, a missing MuJoCo is the task's to tell of; other errors pass."""
    try:
        yield
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        if "mujoco" not in told(error).lower() or find_spec("mujoco") is not None:
            raise
        raise MissingExtraError(
            f"{task} needs MuJoCo, which is not installed: pip install 'rollin[mujoco]'."
        ) from error
