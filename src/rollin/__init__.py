"""ROLLIN: curriculum learning by rolling in with the previous task's policy.

Begin with `rollin.train`, or with `rollin.RollIn` for your own agent. `rollin.solve` is for finite
MDPs. The names of `rollin.__all__` are the public API.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from rollin import sb3 as sb3
    from rollin import teachers as teachers
    from rollin.api import Trained, prepare, train
    from rollin.curriculum.contexts import Curriculum
    from rollin.curriculum.mastery import Gap, Plateau
    from rollin.curriculum.rules import ReturnThreshold, SubOptimality, SuccessRate
    from rollin.curriculum.step_gap import StepGap
    from rollin.curriculum.steps import Halving
    from rollin.curriculum.teacher import EpisodeEnd, Plan, Teacher
    from rollin.curriculum.visited import Visited
    from rollin.curriculum.walk import Walk
    from rollin.deep.own_agent import Agent, Transition
    from rollin.deep.practical import train_rollin
    from rollin.envs.check import check_env
    from rollin.envs.contextual import ContextualEnv
    from rollin.envs.goal_view import GoalView
    from rollin.envs.goals import GoalContext
    from rollin.envs.wrappers import Contextual
    from rollin.errors import RollinError
    from rollin.evaluation import evaluate
    from rollin.policy import Policy
    from rollin.sac.config import SACConfig
    from rollin.sac.make import make_learner
    from rollin.sac.relabel import relabel
    from rollin.sac.replay import Replay, RowLayout
    from rollin.school import School, attach
    from rollin.streams import Streams
    from rollin.sweeps.study import Study
    from rollin.tabular.families import combination_lock, corridor, random_mdp, square_grid
    from rollin.tabular.four_rooms import four_rooms
    from rollin.tabular.grid import Grid, Wall, grid_world
    from rollin.tabular.mdp import ContextualMDP
    from rollin.tabular.policy_gradient import BatchSPG, ExactPG, NaturalPG, RandomHorizonSPG
    from rollin.tabular.solve import Solution, solve
    from rollin.tabular.theory import analyse
    from rollin.wrapper import RollIn

_HOMES = {
    "Agent": "rollin.deep.own_agent",
    "BatchSPG": "rollin.tabular.policy_gradient",
    "Contextual": "rollin.envs.wrappers",
    "ContextualEnv": "rollin.envs.contextual",
    "ContextualMDP": "rollin.tabular.mdp",
    "Curriculum": "rollin.curriculum.contexts",
    "EpisodeEnd": "rollin.curriculum.teacher",
    "ExactPG": "rollin.tabular.policy_gradient",
    "Gap": "rollin.curriculum.mastery",
    "GoalContext": "rollin.envs.goals",
    "GoalView": "rollin.envs.goal_view",
    "Grid": "rollin.tabular.grid",
    "Halving": "rollin.curriculum.steps",
    "NaturalPG": "rollin.tabular.policy_gradient",
    "Plan": "rollin.curriculum.teacher",
    "Plateau": "rollin.curriculum.mastery",
    "Policy": "rollin.policy",
    "RandomHorizonSPG": "rollin.tabular.policy_gradient",
    "Replay": "rollin.sac.replay",
    "ReturnThreshold": "rollin.curriculum.rules",
    "RollIn": "rollin.wrapper",
    "RollinError": "rollin.errors",
    "RowLayout": "rollin.sac.replay",
    "SACConfig": "rollin.sac.config",
    "School": "rollin.school",
    "Solution": "rollin.tabular.solve",
    "StepGap": "rollin.curriculum.step_gap",
    "Streams": "rollin.streams",
    "Study": "rollin.sweeps.study",
    "SubOptimality": "rollin.curriculum.rules",
    "SuccessRate": "rollin.curriculum.rules",
    "Teacher": "rollin.curriculum.teacher",
    "Trained": "rollin.api",
    "Transition": "rollin.deep.own_agent",
    "Visited": "rollin.curriculum.visited",
    "Walk": "rollin.curriculum.walk",
    "Wall": "rollin.tabular.grid",
    "analyse": "rollin.tabular.theory",
    "attach": "rollin.school",
    "check_env": "rollin.envs.check",
    "combination_lock": "rollin.tabular.families",
    "corridor": "rollin.tabular.families",
    "evaluate": "rollin.evaluation",
    "four_rooms": "rollin.tabular.four_rooms",
    "grid_world": "rollin.tabular.grid",
    "make_learner": "rollin.sac.make",
    "prepare": "rollin.api",
    "random_mdp": "rollin.tabular.families",
    "relabel": "rollin.sac.relabel",
    "solve": "rollin.tabular.solve",
    "square_grid": "rollin.tabular.families",
    "train": "rollin.api",
    "train_rollin": "rollin.deep.practical",
}

__all__ = [
    "Agent",
    "BatchSPG",
    "Contextual",
    "ContextualEnv",
    "ContextualMDP",
    "Curriculum",
    "EpisodeEnd",
    "ExactPG",
    "Gap",
    "GoalContext",
    "GoalView",
    "Grid",
    "Halving",
    "NaturalPG",
    "Plan",
    "Plateau",
    "Policy",
    "RandomHorizonSPG",
    "Replay",
    "ReturnThreshold",
    "RollIn",
    "RollinError",
    "RowLayout",
    "SACConfig",
    "School",
    "Solution",
    "StepGap",
    "Streams",
    "Study",
    "SubOptimality",
    "SuccessRate",
    "Teacher",
    "Trained",
    "Transition",
    "Visited",
    "Walk",
    "Wall",
    "__version__",
    "analyse",
    "attach",
    "check_env",
    "combination_lock",
    "corridor",
    "evaluate",
    "four_rooms",
    "grid_world",
    "make_learner",
    "prepare",
    "random_mdp",
    "relabel",
    "solve",
    "square_grid",
    "train",
    "train_rollin",
]


if "gymnasium" in sys.modules:  # gymnasium.make("rollin/PointUmaze-v0") knows our environments then
    import_module("rollin.envs")


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in ("sb3", "teachers"):  # modules, sb3 with torch, so only when asked for
        return import_module(f"rollin.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'rollin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
