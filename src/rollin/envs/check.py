"""Our checker of contextual environments: what Gymnasium's does not know of."""

from typing import Any

import numpy as np

from rollin.curriculum import Curriculum
from rollin.envs.box import Env, name_of
from rollin.envs.contextual import Array, ContextEnv, check_context
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
    """
    handle = env if isinstance(env, ContextEnv) else ContextEnv(env)
    contexts = _contexts(handle, curriculum)
    name = name_of(handle.env)
    outcomes, told, rewards = [], [], []
    generator = np.random.default_rng(0)
    for i, context in enumerate(contexts):
        first = _check_reset(handle, context, name)
        for _ in range(max(steps // len(contexts), 1)):
            action = generator.uniform(-1, 1, handle.action_size).astype(np.float32)
            seen = handle.call("step", handle.actions.scale(action))
            observed, reward, terminated, truncated, info = seen
            _check_context_seen(observed, context, name, "step")
            outcome = handle.outcome_of(info)
            _check_reward(handle, outcome, context, float(reward), name)
            outcomes.append(outcome)
            told.append(context)
            rewards.append(float(reward))
            if terminated or truncated:
                break
        if deterministic and i == 0:
            _check_seed(handle, context, first, name)
    _check_batch(handle, np.stack(outcomes), np.stack(told), np.array(rewards), name)


def _contexts(env: ContextEnv, curriculum: Curriculum | None) -> list[Array]:
    walked = curriculum or env.curriculum
    if walked is not None:
        ends = walked.contexts[[0, len(walked.contexts) // 2, -1]]
        return [check_context(context, env.context_space) for context in ends]
    space = env.context_space
    low = np.where(np.isfinite(space.low), space.low, -1.0)
    high = np.where(np.isfinite(space.high), space.high, 1.0)
    return [np.asarray(c, space.dtype) for c in (low, high)]


def _check_reset(env: ContextEnv, context: Array, name: str) -> Any:
    observed, info = env.call("reset", seed=FIRST_SEED, options={"context": context})
    _check_context_seen(observed, context, name, "reset(options={'context': c})")
    env.outcome_of(info)
    again, _ = env.call("reset", seed=FIRST_SEED)
    _check_context_seen(again, context, name, "a later reset() without options")
    return again


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


def _check_reward(
    env: ContextEnv, outcome: Array, context: Array, reward: float, name: str
) -> None:
    try:
        computed = np.asarray(env.compute_reward(outcome, context))
    except Exception as error:
        raise RollinError(
            f"{name}: compute_reward(outcome, context) raised {type(error).__name__}: {error}."
        ) from error
    if computed.shape != ():
        raise RollinError(
            f"{name}: compute_reward must give one number for one outcome, got shape "
            f"{computed.shape}: reduce over the last axis (axis=-1)."
        )
    if not np.isclose(float(computed), reward, rtol=TOLERANCE, atol=TOLERANCE):
        raise RollinError(
            f"{name}: step gave the reward {reward:g}, but compute_reward gives "
            f"{float(computed):g} for the outcome {outcome.tolist()} under the context "
            f"{context.tolist()}: both must be one function, and info['outcome'] must hold all "
            "that it needs."
        )


def _check_batch(
    env: ContextEnv, outcomes: Array, contexts: Array, rewards: Array, name: str
) -> None:
    try:
        computed = np.asarray(env.compute_reward(outcomes, contexts))
        success = np.asarray(env.is_success_of(outcomes, contexts))
    except Exception as error:
        raise RollinError(
            f"{name}: compute_reward and is_success must take a batch, outcomes of shape "
            f"{outcomes.shape} and contexts of {contexts.shape}, but raised "
            f"{type(error).__name__}: {error}."
        ) from error
    for method, values in (("compute_reward", computed), ("is_success", success)):
        if values.shape != rewards.shape:
            raise RollinError(
                f"{name}: {method} must give {len(rewards)} values for a batch of {len(rewards)} "
                f"outcomes, got shape {values.shape}: reduce over the last axis (axis=-1)."
            )
    if not np.allclose(computed, rewards, rtol=TOLERANCE, atol=TOLERANCE):
        raise RollinError(
            f"{name}: compute_reward gives other rewards for a batch than one by one: it must "
            "treat every row alike."
        )


def _check_seed(env: ContextEnv, context: Array, first: Any, name: str) -> None:
    again, _ = env.call("reset", seed=FIRST_SEED, options={"context": context})
    if not np.array_equal(np.asarray(first["observation"]), np.asarray(again["observation"])):
        raise RollinError(
            f"{name}: two resets with the same seed begin differently, so that a resumed run "
            "cannot go on bit for bit: draw all randomness from self.np_random, and call "
            "super().reset(seed=seed)."
        )
