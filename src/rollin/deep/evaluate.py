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
"""From an observation, joined with the context if there is one, to an action in [-1, 1]^A."""


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


def evaluate(env: BoxEnv, act: Act, episodes: int) -> Evaluation:
    """Act through some episodes of a plain environment, which has no successes."""
    return _play(env.reset, env.step, act, lambda seen: False, episodes)


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
    return _play(
        lambda seed: env.reset(context, seed)[0],
        env.step,
        lambda seen: act(np.concatenate((seen, told))),
        lambda seen: env.is_success(seen.outcome, told),
        episodes,
        seed,
        on_step,
    )


def _play(
    reset: Callable[[int], Float],
    step: Callable[[Float], Any],
    act: Act,
    is_success: Callable[[Any], bool],
    episodes: int,
    seed: int = EVALUATION_SEED,
    on_step: Callable[[], None] = lambda: None,
) -> Evaluation:
    returns, successes = [], []
    for i in range(episodes):
        observation, total, success, done = reset(seed + i), 0.0, False, False
        on_step()
        while not done:
            require_finite(observation, total, f"Evaluation episode {i + 1}")
            seen = step(act(observation))
            observation, total = seen.observation, total + seen.reward
            success = success or is_success(seen)
            done = seen.terminated or seen.truncated
            on_step()
        require_finite(observation, total, f"Evaluation episode {i + 1}")
        returns.append(total)
        successes.append(success)
    return Evaluation(returns, successes)


def mode_of(learner: Learner) -> Act:
    """A learner's deterministic actions."""
    return lambda seen: learner.act(seen, deterministic=True)


def require_finite(observation: Float, total: float, where: str) -> None:
    """Refuse an observation or a sum of rewards that is not finite."""
    bad = np.flatnonzero(~np.isfinite(observation))
    if len(bad):
        raise RollinError(f"{where}: observation[{bad[0]}] is {observation[bad[0]]}.")
    if not np.isfinite(total):
        raise RollinError(f"{where}: the sum of rewards is {total}.")
