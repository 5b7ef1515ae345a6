"""The checker of contextual environments: what Gymnasium's does not check."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence

from rollin.curriculum.contexts import Curriculum, SuccessRate
from rollin.envs.box_env import Env
from rollin.envs.context_env import ContextEnv, ContextHandle
from rollin.envs.contextual import Array, Contextual, ContextualEnv, check_context, layer_with
from rollin.errors import RollinError, in_python

TOLERANCE = 1e-5  # between a step's reward and the function's, relative and absolute
FIRST_SEED = 77_000  # of the checker's episodes
ENDLESS = 5_000  # random steps after which an episode without a TimeLimit counts as endless


@dataclass(frozen=True)
class CheckedStep:
    """The results of a step of the checker; all arrays are copies."""

    observation: Any
    reward: float
    outcome: Array
    context: Array
    success: bool | None


@in_python()
def check_env(
    env: Env | ContextHandle,
    curriculum: Curriculum | None = None,
    *,
    steps: int = 50,
    deterministic: bool = True,
    relabel: bool | None = None,
) -> None:
    """Raise, with one sentence, if an env breaks the contract of `rollin.ContextualEnv`.

    Acts at random for some steps under contexts of the curriculum (default: the env's own, or else
    the bounds of its context space), and through one episode, which must end. deterministic: also
    require that a seed repeats an episode, as resume needs. relabel: also require rewards of a
    whole batch, as relabelling does. Default: unless the env has `can_relabel = False`.

    >>> import gymnasium
    >>> import rollin
    >>> angles = gymnasium.spaces.Box(0.0, 3.0, (1,))
    >>> first_number = lambda outcome, context: outcome[0]  # of a batch, this is its first row
    >>> env = rollin.Contextual(gymnasium.make("Pendulum-v1"), angles, first_number)
    >>> rollin.check_env(env)  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    rollin.errors.RollinError: Pendulum-v1: context_reward must give 50 values for a batch of 50
    outcomes, got shape (3,): reduce over the last axis (axis=-1).
    >>> rollin.check_env(env, relabel=False)  # without relabelling it does
    """
    examine(env, curriculum, steps=steps, deterministic=deterministic, relabel=relabel)


def examine(
    env: Env | ContextHandle,
    curriculum: Curriculum | None = None,
    *,
    steps: int = 50,
    deterministic: bool = True,
    relabel: bool | None = None,
) -> bool:
    """Run `check_env`, with errors that name options as the command line does.

    Returns whether the env defines what a success is; else any positive reward counts as one.
    """
    handle = env if isinstance(env, ContextHandle) else _handle(env)
    if curriculum is not None and not isinstance(curriculum, Curriculum):
        raise RollinError(f"curriculum must be a rollin.Curriculum, got {type(curriculum)}.")
    contexts = _contexts(handle, curriculum)
    all_steps: list[CheckedStep] = []
    share = max(steps // len(contexts), 1)
    for i, context in enumerate(contexts):
        _check_resets(handle, context)
        episode = _act(handle, context, share)
        for step in episode:
            _check_observed_context(step.observation, context, handle.name, "step")
            _check_step(handle, step)
        all_steps += episode
        if deterministic and i == 0:
            _check_same(episode, _act(handle, context, share), handle.name)
    if handle.can_relabel if relabel is None else relabel:
        handle.require_relabelling()
        _check_batch(handle, all_steps)
    success_by_reward = _success_by_reward(handle, all_steps)
    if success_by_reward:
        _check_rule(handle, curriculum or handle.curriculum, all_steps)
    _check_set_context(handle, contexts[0])  # not the one of the last episode
    _check_end(handle, contexts[0])
    return not success_by_reward


def is_sparse(env: ContextHandle, context: Array) -> bool:
    """Return whether an episode of random actions under a context has no reward but 0."""
    context = check_context(context, env.context_space)
    return all(step.reward == 0 for step in _act(env, context, ENDLESS))


def _handle(env: Env) -> ContextHandle:
    """Return the guard for SAC if observations and actions are vectors, else that for any agent."""
    parts = getattr(env, "observation_space", None)
    observation = parts.spaces.get("observation") if isinstance(parts, spaces.Dict) else None
    action = getattr(env, "action_space", None)
    vectors = isinstance(observation, spaces.Box) and isinstance(action, spaces.Box)
    return ContextEnv(env) if vectors else ContextHandle(env)


def _contexts(env: ContextHandle, curriculum: Curriculum | None) -> list[Array]:
    curriculum = curriculum or env.curriculum
    space = env.context_space
    if curriculum is not None:
        ends = curriculum.contexts[[0, len(curriculum.contexts) // 2, -1]]
        return [check_context(context, space) for context in ends]
    low = np.where(np.isfinite(space.low), space.low, np.minimum(space.high, -1.0))
    high = np.where(np.isfinite(space.high), space.high, np.maximum(space.low, 1.0))
    return [np.asarray(c, space.dtype) for c in (low, high)]


def _act(env: ContextHandle, context: Array, steps: int) -> list[CheckedStep]:
    """Return an episode of random actions, the same ones every time."""
    env.raw_reset(seed=FIRST_SEED, options={"context": context.copy()})
    episode = []
    for action in islice(_random_actions(env), steps):
        observation, reward, terminated, truncated, info = env.raw_step(action)
        env.check_result(observation, info, "step")
        outcome = env.outcome_of(info).copy()
        success = env.reported_success(info)
        episode.append(CheckedStep(copy.deepcopy(observation), reward, outcome, context, success))
        if terminated or truncated:
            break
    return episode


def _random_actions(env: ContextHandle) -> Iterator[Any]:
    """Yield random actions, the same ones every time; the space's own stream does not advance."""
    generator = np.random.default_rng(0)
    space = copy.deepcopy(env.env.action_space)
    space.seed(0)
    while True:
        if isinstance(env, ContextEnv):
            action = generator.uniform(-1, 1, env.action_size).astype(np.float32)
            yield env.actions.scale(action)
        else:
            yield space.sample()


def _check_resets(env: ContextHandle, context: Array) -> None:
    observation, info = env.raw_reset(seed=FIRST_SEED, options={"context": context.copy()})
    _check_observed_context(observation, context, env.name, "reset(options={'context': c})")
    env.check_result(observation, info, "reset")
    observation, _ = env.raw_reset(seed=FIRST_SEED)
    _check_observed_context(observation, context, env.name, "a later reset() without options")


def _check_observed_context(observation: Any, context: Array, name: str, when: str) -> None:
    if not isinstance(observation, dict) or observation.keys() != {"observation", "context"}:
        raise RollinError(
            f"{name} must give observations as a dict of observation and context after {when}, "
            f"got {type(observation).__name__}."
        )
    observed = np.asarray(observation["context"])
    if not np.array_equal(observed, context):
        raise RollinError(
            f"{name} was given the context {context.tolist()} and shows {observed.tolist()} after "
            f"{when}: a context must stay until another is given."
        )


def _check_step(env: ContextHandle, step: CheckedStep) -> None:
    """Check for one reward and one success per outcome, and for the same reward as the step's."""
    if not np.isfinite(step.reward):
        raise RollinError(
            f"{env.name}: step gave the reward {step.reward:g} after the outcome "
            f"{step.outcome.tolist()} under the context {step.context.tolist()}: every reward must "
            "be a finite number."
        )
    if env.can_relabel:
        _check_reward(env, step)
    if env.drawn_goal is not None:
        _check_drawn_goal(env, step, env.drawn_goal)
    if step.success is None:
        env.is_success(step.outcome.astype(np.float32), step.context.astype(np.float32))


def _check_reward(env: ContextHandle, step: CheckedStep) -> None:
    computed = env.compute_reward(step.outcome, step.context)
    method = f"{env.name}: {env.name_of('reward')}"
    if computed.shape != ():
        raise RollinError(
            f"{method} must give one number for one outcome, got shape "
            f"{computed.shape}: reduce over the last axis (axis=-1)."
        )
    if np.isclose(float(computed), step.reward, rtol=TOLERANCE, atol=TOLERANCE):
        return
    raise RollinError(
        f"{env.name}: step gave the reward {step.reward:g}, but {env.name_of('reward')} gives "
        f"{float(computed):g} for the outcome {step.outcome.tolist()} under the context "
        f"{step.context.tolist()}: both must be one function with finite values, and "
        "info['outcome'] must hold all that it needs. If rewards do not follow from outcome and "
        "context, set can_relabel = False."
    )


def _check_drawn_goal(env: ContextHandle, step: CheckedStep, where: slice) -> None:
    """Check that the outcome is the achieved goal and the one that the observation shows."""
    shown = np.ravel(step.observation["observation"])[where]
    drawn = np.ravel(step.outcome)[len(shown) :]
    fits = shown.size > 0 and shown.shape == drawn.shape and where.step in (None, 1)
    if not (fits and np.allclose(shown, drawn)):
        raise RollinError(
            f"{env.name}: the observation shows the goal {shown.tolist()} at its drawn_goal, "
            f"and the outcome is {step.outcome.tolist()}: it must be the achieved goal, followed "
            "by the drawn one."
        )


def _check_batch(env: ContextHandle, steps: list[CheckedStep]) -> None:
    outcomes, contexts, rewards = _stacked(steps)
    computed = env.compute_reward(outcomes, contexts)
    batches = {env.name_of("reward"): computed}
    if all(step.success is None for step in steps):
        batches["is_success"] = env.are_successes(outcomes, contexts)
    for method, values in batches.items():
        if values.shape != rewards.shape:
            raise RollinError(
                f"{env.name}: {method} must give {len(rewards)} values for a batch of "
                f"{len(rewards)} outcomes, got shape {values.shape}: reduce over the last axis "
                "(axis=-1)."
            )
    if not np.isfinite(computed).all():
        raise RollinError(
            f"{env.name}: {env.name_of('reward')} gives {computed[~np.isfinite(computed)][0]:g} in "
            "a batch: every reward must be a finite number."
        )
    if not np.allclose(computed, rewards, rtol=TOLERANCE, atol=TOLERANCE):
        raise RollinError(
            f"{env.name}: {env.name_of('reward')} gives other rewards for a batch than one by one: "
            "it must treat every row alike."
        )
    env.compute_reward(outcomes.astype(np.float32), contexts.astype(np.float32))


def _stacked(steps: list[CheckedStep]) -> tuple[Array, Array, Array]:
    """Return outcomes (N, U), contexts (N, C) and rewards (N,)."""
    outcomes = np.stack([step.outcome for step in steps])
    contexts = np.stack([step.context for step in steps])
    return outcomes, contexts, np.array([step.reward for step in steps])


def _check_rule(
    env: ContextHandle, curriculum: Curriculum | None, steps: list[CheckedStep]
) -> None:
    """Raise if the rule counts successes, but no reward can be positive and so count as one."""
    if curriculum is None or not isinstance(curriculum.rule, SuccessRate):
        return
    why = "its rewards are its own, and its steps have no info['is_success']"
    if env.can_relabel:
        outcomes, contexts, rewards = _stacked(steps)
        fulfilled = env.to_context(outcomes)
        if (rewards > 0).any() or np.shape(fulfilled) != contexts.shape:
            return
        if np.any(env.compute_reward(outcomes, fulfilled) > 0):
            return
        why = "no reward is positive, not even where an outcome fulfils its context"
    raise RollinError(
        f"{env.name}: the curriculum's rule counts successes, and no episode can be one: {why}. "
        "Define a success by is_success(outcome, context), a method or an argument of "
        "rollin.Contextual, or by info['is_success']."
    )


def _success_by_reward(env: ContextHandle, steps: list[CheckedStep]) -> bool:
    """Return whether positive rewards count as successes, because nothing else defines them."""
    reported = any(step.success is not None for step in steps)
    layer = layer_with(env.env, "context_space")
    if isinstance(layer, Contextual):
        return layer.success_by_reward or not (layer.defines_success or reported)
    default = isinstance(layer, ContextualEnv) and (
        type(layer).is_success is ContextualEnv.is_success
    )
    return default and not reported


def _check_set_context(env: ContextHandle, context: Array) -> None:
    """Check that `set_context`, which vector envs can call, does the same as reset's options."""
    if layer_with(env.env, "set_context") is None or layer_with(env.env, "context") is None:
        return
    env.call("set_context", env.env.get_wrapper_attr("set_context"), context.copy())
    observation, _ = env.raw_reset(seed=FIRST_SEED)
    _check_observed_context(observation, context, env.name, "set_context(c) and reset()")


def _check_end(env: ContextHandle, context: Array) -> None:
    """Check that an episode of random actions ends, as a run needs."""
    inner = env.env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, gymnasium.wrappers.TimeLimit):
            return
        inner = inner.env
    env.raw_reset(seed=FIRST_SEED, options={"context": context.copy()})
    for action in islice(_random_actions(env), ENDLESS):
        _, _, terminated, truncated, _ = env.raw_step(action)
        if terminated or truncated:
            return
    raise RollinError(
        f"{env.name} has no time limit: an episode of random actions has not ended in {ENDLESS:,} "
        "steps, and checkpoints, evaluations and advances wait for its end. Wrap it in "
        "gymnasium.wrappers.TimeLimit(env, N), or use --horizon."
    )


def _check_same(one: list[CheckedStep], other: list[CheckedStep], name: str) -> None:
    """Check that two episodes with the same seed and actions are the same."""
    same = len(one) == len(other) and all(
        a.reward == b.reward and data_equivalence(a.observation, b.observation)
        for a, b in zip(one, other, strict=True)
    )
    if not same:
        raise RollinError(
            f"{name}: two episodes with the same seed and actions differ, so that a run cannot "
            "resume bit for bit: draw all randomness from self.np_random, and call "
            "super().reset(seed=seed)."
        )
