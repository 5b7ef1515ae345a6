"""ROLLIN around agents of Stable-Baselines3 and SBX: `RollInCallback`."""

from importlib import metadata

from rollin.errors import RollinError, install_hint

LEAST, BELOW = (2, 9), (3,)


def check_version() -> None:
    """Refuse a missing Stable-Baselines3, and one that this was not written for."""
    how = f"run pip install torch==2.13.0, then {install_hint('sb3')}"
    try:
        found = metadata.version("stable-baselines3")
    except metadata.PackageNotFoundError as error:
        raise RollinError(f"rollin.sb3 needs Stable-Baselines3: {how}.") from error
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if not LEAST <= numbers < BELOW:
        raise RollinError(
            f"rollin.sb3 needs Stable-Baselines3 from 2.9 on and below 3, got {found}: {how}."
        )


check_version()

from rollin.sb3.callback import RollInCallback  # noqa: E402

__all__ = ["RollInCallback"]
