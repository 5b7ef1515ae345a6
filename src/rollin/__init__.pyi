"""The public names and where each is defined, for type checkers and for `__init__.py`."""

from rollin import sb3 as sb3, teachers as teachers
from rollin.agents.coordinator import (
    CurriculumCoordinator as CurriculumCoordinator,
    attach as attach,
)
from rollin.agents.own_agent import Agent as Agent, Transition as Transition
from rollin.agents.wrapper import RollIn as RollIn
from rollin.api import Trained as Trained, prepare as prepare, train as train
from rollin.curriculum.contexts import (
    Curriculum as Curriculum,
    ReturnThreshold as ReturnThreshold,
    SubOptimality as SubOptimality,
    SuccessRate as SuccessRate,
)
from rollin.curriculum.mastery import (
    EarlyGap as EarlyGap,
    Gap as Gap,
    Plateau as Plateau,
    StepGap as StepGap,
)
from rollin.curriculum.reached_goals import ReachedGoalsTeacher as ReachedGoalsTeacher
from rollin.curriculum.sequential import (
    Bold as Bold,
    Halving as Halving,
    SequentialTeacher as SequentialTeacher,
)
from rollin.curriculum.teacher import EpisodeEnd as EpisodeEnd, Plan as Plan, Teacher as Teacher
from rollin.deep.rollin_sac import train_rollin as train_rollin
from rollin.envs.check import check_env as check_env
from rollin.envs.contextual import Contextual as Contextual, ContextualEnv as ContextualEnv
from rollin.envs.goals import GoalContext as GoalContext, GoalView as GoalView
from rollin.errors import RollinError as RollinError
from rollin.evaluation import evaluate as evaluate
from rollin.policy import Policy as Policy
from rollin.sac.config import SACConfig as SACConfig
from rollin.sac import make_learner as make_learner
from rollin.sac.relabel import relabel as relabel
from rollin.sac.replay import Replay as Replay, RowLayout as RowLayout
from rollin.streams import Streams as Streams
from rollin.sweeps.study import Study as Study
from rollin.tabular.algorithm1 import Solution as Solution, solve as solve
from rollin.tabular.families import (
    Grid as Grid,
    Wall as Wall,
    combination_lock as combination_lock,
    corridor as corridor,
    four_rooms as four_rooms,
    grid_world as grid_world,
    random_mdp as random_mdp,
    square_grid as square_grid,
)
from rollin.tabular.learners import (
    BatchSPG as BatchSPG,
    ExactPG as ExactPG,
    NaturalPG as NaturalPG,
    RandomHorizonSPG as RandomHorizonSPG,
)
from rollin.tabular.mdp import ContextualMDP as ContextualMDP
from rollin.tabular.theory.analysis import analyse as analyse

__all__: list[str]
__version__: str
