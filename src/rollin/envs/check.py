"""Our checker of contextual environments: what Gymnasium's does not know of."""

from typing import Any

import numpy as np

from rollin.curriculum.contexts import Curriculum
from rollin.envs.box_env import Env
from rollin.envs.context_env import ContextEnv
from rollin.envs.contextual import Array, check_context
from rollin.errors import RollinError

TOLERANCE = 1e-5  # between a step's reward and compute_reward, relative and absolute
FIRST_SEED = 77_000  # of the checker's episodes


def check_env(
    env: Env | ContextEnv,
    curriculum: Curriculum | None = None,
    *,
    steps: int = 50,
    deterministic: bool = True,
) -> None:
    """Refuse, with one sentence, an env that breaks the contract of `rollin.ContextualEnv`.

    Acts at random for some steps under contexts of the curriculum (the env's own if not given, the
    bounds of its space if it has none). deterministic: also demand that a seed repeats an episode,
    without which a resumed run cannot go on bit for bit.

    >>> import gymnasium
    >>> import rollin
    >>> angles = gymnasium.spaces.Box(0.0, 3.0, (1,))
    >>> first_number = lambda outcome, context: outcome[0]  # of a batch, this is its first row
    >>> env = rollin.Contextual(gymnasium.make("Pendulum-v1"), angles, first_number)
    >>> rollin.check_env(env)  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    rollin.errors.RollinError: Pendulum-v1: compute_reward must give 50 values for a batch of 50
    outcomes, got shape (3,): reduce over the last axis (axis=-1).
    """
    handle = env if isinstance(env, ContextEnv) else ContextEnv(env)
    if curriculum is not None and not isinstance(curriculum, Curriculum):
        raise RollinError(f"curriculum must be a rollin.Curriculum, got {type(curriculum)}.")
    contexts = _contexts(handle, curriculum)
    outcomes: list[Array] = []
    told: list[Array] = []
    rewards: list[float] = []
    share = max(steps // len(contexts), 1)
    for i, context in enumerate(contexts):
        _check_resets(handle, context)
        episode = _act(handle, context, share)
        for observed, reward, outcome in episode:
            _check_context_seen(observed, context, handle.name, "step")
            _check_reward(handle, outcome, context, reward)
            outcomes.append(outcome)
            told.append(context)
            rewards.append(reward)
        if deterministic and i == 0:
            _check_same(episode, _act(handle, context, share), handle.name)
    _check_batch(handle, np.stack(outcomes), np.stack(told), np.array(rewards))


def _contexts(env: ContextEnv, curriculum: Curriculum | None) -> list[Array]:
    walked = curriculum or env.curriculum
    space = env.context_space
    if walked is not None:
        ends = walked.contexts[[0, len(walked.contexts) // 2, -1]]
        return [check_context(context, space) for context in ends]
    low = np.where(np.isfinite(space.low), space.low, np.minimum(space.high, -1.0))
    high = np.where(np.isfinite(space.high), space.high, np.maximum(space.low, 1.0))
    return [np.asarray(c, space.dtype) for c in (low, high)]


def _act(env: ContextEnv, context: Array, steps: int) -> list[tuple[Any, float, Array]]:
    """An episode of random actions, always the same ones; all arrays are copies."""
    env.raw_reset(seed=FIRST_SEED, options={"context": context.copy()})
    generator = np.random.default_rng(0)
    episode = []
    for _ in range(steps):
        action = generator.uniform(-1, 1, env.action_size).astype(np.float32)
        observed, reward, terminated, truncated, info = env.raw_step(env.actions.scale(action))
        env.check_vectors(observed, info, "step")
        copied = {name: np.array(value) for name, value in observed.items()}
        episode.append((copied, reward, env.outcome_of(info).copy()))
        if terminated or truncated:
            break
    return episode


def _check_resets(env: ContextEnv, context: Array) -> None:
    observed, info = env.raw_reset(seed=FIRST_SEED, options={"context": context.copy()})
    _check_context_seen(observed, context, env.name, "reset(options={'context': c})")
    env.check_vectors(observed, info, "reset")
    again, _ = env.raw_reset(seed=FIRST_SEED)
    _check_context_seen(again, context, env.name, "a later reset() without options")


def _check_context_seen(observed: Any, context: Array, name: str, when: str) -> None:
    if not isinstance(observed, dict) or observed.keys() != {"observation", "context"}:
        raise RollinError(
            f"{name} must give observations as a dict of observation and context after {when}, "
            f"got {type(observed).__name__}."
        )
    if not np.array_equal(np.asarray(observed["context"]), context):
        raise RollinError(
            f"{name} was given the context {context.tolist()} and shows "
            f"{np.asarray(observed['context']).tolist()} after {when}: a context must stay until "
            "another is given."
        )


def _check_reward(env: ContextEnv, outcome: Array, context: Array, reward: float) -> None:
    computed = env.compute_reward(outcome, context)
    if computed.shape != ():
        raise RollinError(
            f"{env.name}: compute_reward must give one number for one outcome, got shape "
            f"{computed.shape}: reduce over the last axis (axis=-1)."
        )
    if not np.isclose(float(computed), reward, rtol=TOLERANCE, atol=TOLERANCE):
        raise RollinError(
            f"{env.name}: step gave the reward {reward:g}, but compute_reward gives "
            f"{float(computed):g} for the outcome {outcome.tolist()} under the context "
            f"{context.tolist()}: both must be one function, and info['outcome'] must hold all "
            "that it needs."
        )
    env.is_success(outcome.astype(np.float32), context.astype(np.float32))


def _check_batch(env: ContextEnv, outcomes: Array, contexts: Array, rewards: Array) -> None:
    computed = env.compute_reward(outcomes, contexts)
    success = env.are_successes(outcomes, contexts)
    for method, values in (("compute_reward", computed), ("is_success", success)):
        if values.shape != rewards.shape:
            raise RollinError(
                f"{env.name}: {method} must give {len(rewards)} values for a batch of "
                f"{len(rewards)} outcomes, got shape {values.shape}: reduce over the last axis "
                "(axis=-1)."
            )
    if not np.allclose(computed, rewards, rtol=TOLERANCE, atol=TOLERANCE):
        raise RollinError(
            f"{env.name}: compute_reward gives other rewards for a batch than one by one: it must "
            "treat every row alike."
        )
    env.compute_reward(outcomes.astype(np.float32), contexts.astype(np.float32))


def _check_same(one: list[Any], other: list[Any], name: str) -> None:
    """Whether two episodes with one seed and the same actions are the same."""
    same = len(one) == len(other) and all(
        a[1] == b[1] and np.array_equal(a[0]["observation"], b[0]["observation"])
        for a, b in zip(one, other, strict=True)
    )
    if not same:
        raise RollinError(
            f"{name}: two episodes with the same seed and actions go differently, so that a "
            "resumed run cannot go on bit for bit: draw all randomness from self.np_random, and "
            "call super().reset(seed=seed)."
        )
