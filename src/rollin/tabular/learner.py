"""What a tabular learner is to the algorithms that use it: parameters, a task, steps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.checks import at_least, check_alpha
from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.mdp import Array, ContextualMDP, TabularTask, check_mdp
from rollin.tabular.start import Start
from rollin.texts import short_repr

LEAST_LOG_PI = -1e30  # nobody's logarithm of a probability: float32 ends not far behind


@dataclass(frozen=True)
class StepInfo:
    """What one gradient step reports.

    success: share of the batch's trajectories that succeeded, before the update (BatchSPG);
        exact probability of success after it (the others).
    trajectories: how many were started; 0 for exact gradients.
    env_steps: environment steps spent, roll-in included; rollin_steps: those of the roll-in.
    """

    success: float
    trajectories: int = 0
    env_steps: int = 0
    rollin_steps: int = 0


class TabularLearner(ABC):
    """Softmax parameters θ (S, A) and a way to improve them on the current task.

    learning_rate: η of the first step on a task.
    """

    task: TabularTask
    start: Start
    learning_rate: float

    def __init__(
        self, mdp: ContextualMDP, alpha: float, horizon: int, theta: NDArray[Any] | None
    ) -> None:
        self.mdp = check_mdp(mdp)
        self.alpha = check_alpha(alpha)
        self.horizon = at_least(1, "horizon", horizon)
        shape = (mdp.n_states, mdp.n_actions)
        self.theta: NDArray[Any] = np.zeros(shape) if theta is None else np.array(theta, np.float64)
        if self.theta.shape != shape or not np.isfinite(self.theta).all():
            raise RollinError(
                f"theta must be finite and have shape {shape}, got {self.theta.shape}."
            )

    def __repr__(self) -> str:
        return short_repr(self, mdp=self.mdp, alpha=self.alpha)

    @property
    def log_pi(self) -> Array:
        """log π_θ, (S, A) float64."""
        return soft.log_softmax(self.theta)

    def least_log_pi(self) -> float:
        """log min_{s,a} π_θ(a|s), which Lemma C.2 bounds along a run."""
        return float(self.log_pi.min())

    def check(self, step: int, least: float | None = None) -> None:
        """Refuse a learner that has diverged; least: log min π_θ, if that is known already."""
        least = self.least_log_pi() if least is None else least
        if not least > LEAST_LOG_PI:  # nor is NaN
            raise RollinError(
                f"The policy is no longer one of finite numbers at step {step}: the learner "
                "diverged. A smaller learning rate or α may help; the last good checkpoint of a "
                "run is kept."
            )

    def begin(self, task: TabularTask, start: Start) -> None:
        """Go on from the current θ on another task or start distribution."""
        self.task, self.start = task, start

    @abstractmethod
    def step(self) -> StepInfo:
        """One gradient step."""

    def success(self) -> float:
        """Exact probability of success within the horizon from the current start distribution."""
        return soft.success_probability(self.task, self.log_pi, self.start.mu, self.horizon)

    def get_state(self) -> dict[str, Any]:
        """Parameters and whatever else a step changes; the task and the start are the caller's."""
        return {"theta": self.theta.copy()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave, after `begin`."""
        self.theta[:] = state["theta"]
