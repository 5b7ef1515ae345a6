"""Deterministic episodes, plain or under a context, always from the same first states."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.envs.box_env import BoxEnv
from rollin.envs.context_env import ContextEnv, ContextHandle
from rollin.errors import RollinError
from rollin.policy import Float, Policy
from rollin.sac.learner import SACLearner

EVALUATION_SEED = 10_000  # of the first episode; the same episodes at every evaluation

Step = tuple[Any, float, bool, bool]
"""The next observation, the reward, whether the episode is a success so far, whether it is over."""
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
    """Evaluate on a plain environment, which has no successes.

    pause: called before each step; it may stop the evaluation by raising.
    """

    def step(observation: Float, success: bool) -> Step:
        action = act(observation)
        pause()
        result = env.step(action)
        return result.observation, result.reward, success, result.terminated or result.truncated

    return _play(env.reset, step, episodes, EVALUATION_SEED)


def evaluate_context(
    env: ContextEnv,
    act: Act,
    context: NDArray[Any],
    episodes: int,
    *,
    seed: int = EVALUATION_SEED,
    on_outcome: Callable[[int, Float], None] = lambda episode, outcome: None,
) -> Evaluation:
    """Evaluate under a context; an episode is a success if any of its steps is.

    on_outcome: called with the episode's number, from 0, and the outcome, at its reset and after
    each of its steps.
    """
    context32 = np.asarray(context, np.float32)
    measured: list[Sequence[float]] = []
    episode = -1

    def reset(seed: int) -> Float:
        nonlocal episode
        episode += 1
        observation, outcome = env.reset(context, seed)
        on_outcome(episode, outcome)
        return observation

    def step(observation: Float, success: bool) -> Step:
        result = env.step(act(np.concatenate((observation, context32))))
        on_outcome(episode, result.outcome)
        measured.append(result.measured)
        success = success or env.is_success(result.outcome, context32)
        return result.observation, result.reward, success, result.terminated or result.truncated

    return _play(reset, step, episodes, seed, env.measures, measured)


def evaluate_end(
    env: ContextEnv,
    act: Act,
    context: NDArray[Any],
    pause: Callable[[], None] = lambda: None,
    episodes: int = 5,
) -> Evaluation:
    """Evaluate under a context; an episode is a success if its last step is.

    Running through a goal does not count. pause: called at each step; it may stop the evaluation by
    raising.
    """
    last: dict[int, Float] = {}

    def see(episode: int, outcome: Float) -> None:
        pause()
        last[episode] = outcome

    evaluation = evaluate_context(env, act, context, episodes, on_outcome=see)
    context32 = np.asarray(context, np.float32)
    return replace(evaluation, successes=[env.is_success(at, context32) for at in last.values()])


def evaluate_policy(
    policy: Policy,
    env: ContextEnv,
    context: NDArray[Any],
    episodes: int,
    *,
    seed: int = EVALUATION_SEED,
    on_outcome: Callable[[int, Float], None] = lambda episode, outcome: None,
) -> Evaluation:
    """Evaluate a trained policy under a context, as `evaluate_context` does."""
    size = env.observation_size

    def act(joined: Float) -> Float:
        return policy.squashed(joined[:size], joined[size:])

    return evaluate_context(env, act, context, episodes, seed=seed, on_outcome=on_outcome)


def evaluate_actor(
    env: ContextHandle,
    act: Callable[[Any, Any], Any],
    context: NDArray[Any],
    episodes: int,
    *,
    seed: int = EVALUATION_SEED,
) -> Evaluation:
    """Evaluate any agent; act takes the env's own observation and a context, as they are."""
    asked = np.array(context, env.context_space.dtype)
    measured: list[Sequence[float]] = []

    def reset(seed: int) -> Any:
        return env.raw_reset(seed=seed, options={"context": asked.copy()})[0]

    def step(observed: Any, success: bool) -> Step:
        action = act(observed["observation"], asked.copy())
        observed, reward, terminated, truncated, info = env.raw_step(action)
        over = terminated or truncated
        env.count_step(over)
        measured.append(env.measured(info))
        return observed, reward, success or env.success_of(info, asked), over

    return _play(reset, step, episodes, seed, env.measures, measured)


def _play(
    reset: Callable[[int], Any],
    step: Callable[[Any, bool], Step],
    episodes: int,
    seed: int,
    measures: Sequence[str] = (),
    measured: Sequence[Sequence[float]] = (),
) -> Evaluation:
    """Play episodes; measured: filled by `step`, a row of measures each time."""
    returns: list[float] = []
    successes: list[bool] = []
    for i in range(episodes):
        where = f"Evaluation episode {i + 1}"
        observation = reset(seed + i)
        total = 0.0
        success = over = False
        while not over:
            require_finite(observation, total, where)
            observation, reward, success, over = step(observation, success)
            total += reward
        require_finite(observation, total, where)
        returns.append(total)
        successes.append(success)
    means = np.mean(measured, axis=0).tolist() if measures else ()
    return Evaluation(returns, successes, dict(zip(measures, means, strict=True)))


def mode_of(learner: SACLearner) -> Act:
    """Return a learner's deterministic actions."""
    return lambda joined: learner.act(joined, deterministic=True)


def require_finite(observation: Any, total: float, where: str) -> None:
    """Raise if a vector of observations or a sum of rewards is not finite."""
    if isinstance(observation, np.ndarray):
        bad = np.flatnonzero(~np.isfinite(observation))
        if len(bad):
            raise RollinError(f"{where}: observation[{bad[0]}] is {observation[bad[0]]}.")
    if not np.isfinite(total):
        raise RollinError(f"{where}: the sum of rewards is {total}.")
