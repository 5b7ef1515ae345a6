"""Deterministic episodes, plain or under a context, always from the same first states."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.arrays import Float
from rollin.envs.box_env import BoxEnv, EnvStep
from rollin.envs.context_env import ContextEnv, ContextStep
from rollin.envs.context_handle import ContextHandle
from rollin.errors import RollinError
from rollin.policy import Policy
from rollin.sac.learner import SACLearner

EVALUATION_SEED = 10_000  # of the first episode; the same episodes at every evaluation

Act = Callable[[Float], Float]
"""From an observation, joined with the context if there is one, to an action in [-1, 1]^A."""


@dataclass(frozen=True)
class Evaluation:
    """Returns and successes of some episodes, and the mean of each measure over their steps."""

    returns: list[float]
    successes: list[bool]
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def success(self) -> float:
        """Share of successful episodes."""
        return float(np.mean(self.successes))


def evaluate(
    env: BoxEnv, act: Act, episodes: int, pause: Callable[[], None] = lambda: None
) -> Evaluation:
    """Act through some episodes of a plain environment, which has no successes.

    pause: called before each step, and may end it all by raising.
    """

    def step(action: Float) -> EnvStep:
        pause()
        return env.step(action)

    return _play(env.reset, step, act, lambda seen: False, episodes)


def evaluate_context(
    env: ContextEnv,
    act: Act,
    context: NDArray[Any],
    episodes: int,
    *,
    seed: int = EVALUATION_SEED,
    on_outcome: Callable[[int, Float], None] = lambda episode, outcome: None,
) -> Evaluation:
    """Act through some episodes under a context; an episode is a success if it is one anywhere.

    on_outcome: called with the episode's number, from 0, and the outcome, at its reset and after
    each of its steps.
    """
    told = np.asarray(context, np.float32)
    measured: list[tuple[float, ...]] = []
    episode = -1

    def reset(seed: int) -> Float:
        nonlocal episode
        episode += 1
        observation, outcome = env.reset(context, seed)
        on_outcome(episode, outcome)
        return observation

    def step(action: Float) -> ContextStep:
        seen = env.step(action)
        on_outcome(episode, seen.outcome)
        measured.append(seen.measured)
        return seen

    found = _play(
        reset,
        step,
        lambda seen: act(np.concatenate((seen, told))),
        lambda seen: env.is_success(seen.outcome, told),
        episodes,
        seed,
    )
    means = zip(env.measures, np.mean(measured, axis=0), strict=True)
    return replace(found, measured={name: float(mean) for name, mean in means})


def evaluate_end(
    env: ContextEnv,
    act: Act,
    context: NDArray[Any],
    pause: Callable[[], None] = lambda: None,
    episodes: int = 5,
) -> Evaluation:
    """Act through some episodes under a context; one is a success if its last step is.

    Running through a goal does not count. pause: called at each step, and may end it by raising.
    """
    last: dict[int, Float] = {}

    def see(episode: int, outcome: Float) -> None:
        pause()
        last[episode] = outcome

    found = evaluate_context(env, act, context, episodes, on_outcome=see)
    told = np.asarray(context, np.float32)
    return replace(found, successes=[env.is_success(at, told) for at in last.values()])


def evaluate_policy(
    policy: Policy,
    env: ContextEnv,
    context: NDArray[Any],
    episodes: int,
    *,
    seed: int = EVALUATION_SEED,
    on_outcome: Callable[[int, Float], None] = lambda episode, outcome: None,
) -> Evaluation:
    """Deterministic episodes of a trained policy under a context."""
    size = env.observation_size

    def act(seen: Float) -> Float:
        return policy.squashed(seen[:size], seen[size:])

    return evaluate_context(env, act, context, episodes, seed=seed, on_outcome=on_outcome)


def evaluate_actor(
    env: ContextHandle,
    act: Callable[[Any, Any], Any],
    context: NDArray[Any],
    episodes: int,
    *,
    seed: int = EVALUATION_SEED,
) -> Evaluation:
    """Episodes of any agent: act takes the env's own observation and a context, as they are."""
    asked = np.array(context, env.context_space.dtype)
    returns, successes, measured = [], [], []
    for i in range(episodes):
        observed, _ = env.raw_reset(seed=seed + i, options={"context": asked.copy()})
        total, success, over = 0.0, False, False
        while not over:
            action = act(observed["observation"], asked.copy())
            observed, reward, terminated, truncated, info = env.raw_step(action)
            over = terminated or truncated
            env.count_step(over)
            total += reward
            success = success or env.success_of(info, asked)
            measured.append(env.measured(info))
        if not np.isfinite(total):
            raise RollinError(f"Evaluation episode {i + 1}: the sum of rewards is {total}.")
        returns.append(total)
        successes.append(success)
    means = zip(env.measures, np.mean(measured, axis=0), strict=True)
    return Evaluation(returns, successes, {name: float(mean) for name, mean in means})


def _play(
    reset: Callable[[int], Float],
    step: Callable[[Float], Any],
    act: Act,
    is_success: Callable[[Any], bool],
    episodes: int,
    seed: int = EVALUATION_SEED,
) -> Evaluation:
    returns, successes = [], []
    for i in range(episodes):
        observation, total, success, done = reset(seed + i), 0.0, False, False
        while not done:
            require_finite(observation, total, f"Evaluation episode {i + 1}")
            seen = step(act(observation))
            observation, total = seen.observation, total + seen.reward
            success = success or is_success(seen)
            done = seen.terminated or seen.truncated
        require_finite(observation, total, f"Evaluation episode {i + 1}")
        returns.append(total)
        successes.append(success)
    return Evaluation(returns, successes)


def mode_of(learner: SACLearner) -> Act:
    """A learner's deterministic actions."""
    return lambda seen: learner.act(seen, deterministic=True)


def require_finite(observation: Float, total: float, where: str) -> None:
    """Refuse an observation or a sum of rewards that is not finite."""
    bad = np.flatnonzero(~np.isfinite(observation))
    if len(bad):
        raise RollinError(f"{where}: observation[{bad[0]}] is {observation[bad[0]]}.")
    if not np.isfinite(total):
        raise RollinError(f"{where}: the sum of rewards is {total}.")
