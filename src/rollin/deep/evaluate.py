"""Deterministic episodes, plain or under a context, always from the same first states."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.envs.box import BoxEnv
from rollin.envs.handle import ContextEnv
from rollin.errors import RollinError
from rollin.sac.learner import Learner
from rollin.sac.network import Float

EVALUATION_SEED = 10_000  # of the first episode; the same episodes at every evaluation

Act = Callable[[Float], Float]
"""From observation and context, joined, to an action in [-1, 1]^A."""


@dataclass(frozen=True)
class Evaluation:
    """Returns and successes of some episodes."""

    returns: list[float]
    successes: list[bool]

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def success(self) -> float:
        """Share of successful episodes."""
        return float(np.mean(self.successes))


def evaluate_context(
    env: ContextEnv,
    act: Act,
    context: NDArray[Any],
    episodes: int,
    *,
    seed: int = EVALUATION_SEED,
    on_step: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Act through some episodes under a context; an episode is a success if it is one anywhere."""
    told = np.asarray(context, np.float32)
    returns, successes = [], []
    for i in range(episodes):
        observation, _ = env.reset(context, seed + i)
        total, success, done = 0.0, False, False
        on_step()
        while not done:
            require_finite(observation, total, f"Evaluation episode {i + 1}")
            seen = env.step(act(np.concatenate((observation, told))))
            observation, total = seen.observation, total + seen.reward
            success = success or env.is_success(seen.outcome, told)
            done = seen.terminated or seen.truncated
            on_step()
        require_finite(observation, total, f"Evaluation episode {i + 1}")
        returns.append(total)
        successes.append(success)
    return Evaluation(returns, successes)


def evaluate(env: BoxEnv, learner: Learner, episodes: int) -> list[float]:
    """Returns of deterministic episodes, always from the same first states."""
    returns = []
    for i in range(episodes):
        observation, total, done = env.reset(seed=EVALUATION_SEED + i), 0.0, False
        while not done:
            require_finite(observation, total, f"Evaluation episode {i + 1}")
            seen = env.step(learner.act(observation, deterministic=True))
            observation, total = seen.observation, total + seen.reward
            done = seen.terminated or seen.truncated
        require_finite(observation, total, f"Evaluation episode {i + 1}")
        returns.append(total)
    return returns


def require_finite(observation: Float, total: float, where: str) -> None:
    """Refuse an observation or a sum of rewards that is not finite."""
    bad = np.flatnonzero(~np.isfinite(observation))
    if len(bad):
        raise RollinError(f"{where}: observation[{bad[0]}] is {observation[bad[0]]}.")
    if not np.isfinite(total):
        raise RollinError(f"{where}: the sum of rewards is {total}.")
