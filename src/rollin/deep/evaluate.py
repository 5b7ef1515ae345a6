"""Deterministic episodes under a context, always from the same first states."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.deep.sac import EVALUATION_SEED, require_finite
from rollin.envs.handle import ContextEnv
from rollin.sac.network import Float

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
