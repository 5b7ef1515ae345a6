"""From the name of a tabular task to its MDP: four-rooms, FILE.npz, or module:factory."""

from pathlib import Path

import gymnasium

from rollin.checks import did_you_mean
from rollin.envs.registry import TASKS, load_factory
from rollin.errors import RollinError, foreign
from rollin.imports import from_here
from rollin.runs.engines.tabular_options import TabularConfig
from rollin.runs.spec import RunSpec
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
    elif task in TASKS:
        raise RollinError(
            f"{task} is not a tabular task: expected {', '.join(TABULAR_TASKS)}, a FILE.npz or "
            "module:factory, because the theory is about finite MDPs."
        )
    else:
        raise RollinError(
            f"Unknown task {task!r}: expected {', '.join((*TABULAR_TASKS, *TASKS))}, a FILE.npz, "
            "module:factory or the id of a Gymnasium environment such as Hopper-v5."
            f"{did_you_mean(task, (*TABULAR_TASKS, *TASKS))}"
        )
    return mdp if gamma is None else mdp.replace(gamma=gamma)


def gives_mdp(task: str) -> bool:
    """Whether module:factory stands for a tabular task; what fails does not."""
    factory = load_factory(task)
    try:
        with from_here():
            made = factory() if callable(factory) else factory
    except KeyboardInterrupt:
        raise
    except BaseException:  # it may want options, and says so when it is made
        return False
    if isinstance(made, gymnasium.Env):
        made.close()
    return isinstance(made, ContextualMDP)


def _from_factory(task: str) -> ContextualMDP:
    factory = load_factory(task)
    try:
        with from_here():
            mdp = factory() if callable(factory) else factory
    except (RollinError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise foreign(f"{task} failed:", error) from error
    if not isinstance(mdp, ContextualMDP):
        raise RollinError(f"{task} must return a ContextualMDP, got {type(mdp).__name__}.")
    return mdp
