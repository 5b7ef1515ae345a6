"""From the name of a tabular task to its MDP: four-rooms, FILE.npz, or module:factory."""

import importlib
from pathlib import Path

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.imports import from_here
from rollin.runs.spec import RunSpec, TabularConfig
from rollin.tabular.four_rooms import GAMMA, four_rooms
from rollin.tabular.mdp import ContextualMDP

TABULAR_TASKS = ("four-rooms",)


def mdp_of(spec: RunSpec[TabularConfig]) -> ContextualMDP:
    """The MDP of a run."""
    config = spec.config
    return load_mdp(spec.task, reward=config.reward, gamma=config.gamma, success=config.success)


def load_mdp(
    task: str, *, reward: str = "easy", gamma: float | None = None, success: str = "rewarded"
) -> ContextualMDP:
    """The contextual MDP that a task's name stands for; `gamma` replaces its discount if given."""
    if task == "four-rooms":
        return four_rooms(reward, GAMMA if gamma is None else gamma, success)
    if reward != "easy" or success != "rewarded":
        raise RollinError(
            f"--reward, --success and --literal belong to four-rooms, not to {task}: give an MDP "
            "of your own its rewards and its `success` flags as arrays."
        )
    if task.endswith(".npz"):
        mdp = ContextualMDP.load(Path(task))
    elif ":" in task:
        mdp = _from_factory(task)
    else:
        raise RollinError(
            f"Unknown task {task!r}: expected {', '.join(TABULAR_TASKS)}, a FILE.npz, "
            "module:factory or the id of a Gymnasium environment such as Hopper-v5."
            f"{did_you_mean(task, TABULAR_TASKS)}"
        )
    return mdp if gamma is None else mdp.replace(gamma=gamma)


def _from_factory(task: str) -> ContextualMDP:
    module_name, _, name = task.partition(":")
    try:
        with from_here():
            factory = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, SyntaxError, TypeError, ValueError) as error:
        raise RollinError(
            f"{task} cannot be loaded ({error}): give module:factory, where the module can be "
            "imported from here and the factory returns a ContextualMDP."
        ) from error
    try:
        mdp = factory() if callable(factory) else factory
    except RollinError:
        raise
    except Exception as error:
        raise RollinError(f"{task} failed: {type(error).__name__}: {error}.") from error
    if not isinstance(mdp, ContextualMDP):
        raise RollinError(f"{task} must return a ContextualMDP, got {type(mdp).__name__}.")
    return mdp
