"""Our checker of contextual environments: what Gymnasium's does not know of."""

import copy
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence

from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.rules import SuccessRate
from rollin.envs.box_env import Env
from rollin.envs.context_env import ContextEnv
from rollin.envs.context_handle import ContextHandle
from rollin.envs.contextual import Array, ContextualEnv, check_context
from rollin.envs.wrappers import Contextual, layer_with
from rollin.errors import RollinError, in_python

TOLERANCE = 1e-5  # between a step's reward and the function's, relative and absolute
FIRST_SEED = 77_000  # of the checker's episodes
ENDLESS = 5_000  # random steps after which an episode without a TimeLimit is taken to have no end


@dataclass(frozen=True)
class Seen:
    """What a step of the checker's gave; all arrays are copies."""

    observed: Any
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
    """Refuse, with one sentence, an env that breaks the contract of `rollin.ContextualEnv`.

    Acts at random for some steps under contexts of the curriculum (the env's own if not given, the
    bounds of its space if it has none), and through one episode, which must end. deterministic:
    also demand that a seed repeats an episode, without which a resumed run cannot go on bit for
    bit. relabel: also demand what relabelling needs, rewards of a whole batch; by default unless
    the env says `can_relabel = False`.

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
    """`check_env` for runs, whose errors name options as the command line does.

    Returns whether the env defines what a success is; else any positive reward is taken for one.
    """
    handle = env if isinstance(env, ContextHandle) else _handle(env)
    if curriculum is not None and not isinstance(curriculum, Curriculum):
        raise RollinError(f"curriculum must be a rollin.Curriculum, got {type(curriculum)}.")
    contexts = _contexts(handle, curriculum)
    seen: list[Seen] = []
    share = max(steps // len(contexts), 1)
    for i, context in enumerate(contexts):
        _check_resets(handle, context)
        episode = _act(handle, context, share)
        for step in episode:
            _check_context_seen(step.observed, context, handle.name, "step")
            _check_step(handle, step)
        seen += episode
        if deterministic and i == 0:
            _check_same(episode, _act(handle, context, share), handle.name)
    if handle.can_relabel if relabel is None else relabel:
        handle.require_relabelling()
        _check_batch(handle, seen)
    _check_rule(handle, curriculum or handle.curriculum, seen)
    _check_set_context(handle, contexts[0])  # not the one of the last episode
    _check_end(handle, contexts[0])
    return not _by_reward(handle, any(step.success is not None for step in seen))


def _handle(env: Env) -> ContextHandle:
    """An env as SAC sees it if it can, as any agent does if not."""
    parts = getattr(env, "observation_space", None)
    seen = parts.spaces.get("observation") if isinstance(parts, spaces.Dict) else None
    action = getattr(env, "action_space", None)
    vectors = isinstance(seen, spaces.Box) and isinstance(action, spaces.Box)
    return ContextEnv(env) if vectors else ContextHandle(env)


def _contexts(env: ContextHandle, curriculum: Curriculum | None) -> list[Array]:
    walked = curriculum or env.curriculum
    space = env.context_space
    if walked is not None:
        ends = walked.contexts[[0, len(walked.contexts) // 2, -1]]
        return [check_context(context, space) for context in ends]
    low = np.where(np.isfinite(space.low), space.low, np.minimum(space.high, -1.0))
    high = np.where(np.isfinite(space.high), space.high, np.maximum(space.low, 1.0))
    return [np.asarray(c, space.dtype) for c in (low, high)]


def _act(env: ContextHandle, context: Array, steps: int) -> list[Seen]:
    """An episode of random actions, always the same ones."""
    env.raw_reset(seed=FIRST_SEED, options={"context": context.copy()})
    actions = _Actions(env)
    episode = []
    for _ in range(steps):
        observed, reward, terminated, truncated, info = env.raw_step(actions.next())
        _check_vectors(env, observed, info, "step")
        outcome = env.outcome_of(info).copy()
        copied = copy.deepcopy(observed)
        episode.append(Seen(copied, reward, outcome, context, env.told_success(info)))
        if terminated or truncated:
            break
    return episode


class _Actions:
    """Random actions, always the same ones; the space's own stream stays as it is."""

    def __init__(self, env: ContextHandle) -> None:
        self._env, self._generator = env, np.random.default_rng(0)
        self._space = copy.deepcopy(env.env.action_space)
        self._space.seed(0)

    def next(self) -> Any:
        env = self._env
        if not isinstance(env, ContextEnv):
            return self._space.sample()
        action = self._generator.uniform(-1, 1, env.action_size).astype(np.float32)
        return env.actions.scale(action)


def _check_vectors(env: ContextHandle, observed: Any, info: dict[str, Any], when: str) -> None:
    if isinstance(env, ContextEnv):
        env.check_vectors(observed, info, when)
    elif when == "step":
        env.measured(info)


def _check_resets(env: ContextHandle, context: Array) -> None:
    observed, info = env.raw_reset(seed=FIRST_SEED, options={"context": context.copy()})
    _check_context_seen(observed, context, env.name, "reset(options={'context': c})")
    _check_vectors(env, observed, info, "reset")
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


def _check_step(env: ContextHandle, step: Seen) -> None:
    """One reward and one success for one outcome, and the same reward that the step gave."""
    if not np.isfinite(step.reward):
        raise RollinError(
            f"{env.name}: step gave the reward {step.reward:g} after the outcome "
            f"{step.outcome.tolist()} under the context {step.context.tolist()}: every reward must "
            "be a finite number."
        )
    if env.can_relabel:
        _check_reward(env, step.outcome, step.context, step.reward)
    if step.success is None:
        env.is_success(step.outcome.astype(np.float32), step.context.astype(np.float32))


def _check_reward(env: ContextHandle, outcome: Array, context: Array, reward: float) -> None:
    computed = env.compute_reward(outcome, context)
    if computed.shape != ():
        raise RollinError(
            f"{env.name}: {env.name_of('reward')} must give one number for one outcome, got shape "
            f"{computed.shape}: reduce over the last axis (axis=-1)."
        )
    if not np.isfinite(computed):
        raise RollinError(
            f"{env.name}: {env.name_of('reward')} gives {float(computed):g} for the outcome "
            f"{outcome.tolist()} under the context {context.tolist()}, and step gave {reward:g}: "
            "every reward must be a finite number."
        )
    if not np.isclose(float(computed), reward, rtol=TOLERANCE, atol=TOLERANCE):
        raise RollinError(
            f"{env.name}: step gave the reward {reward:g}, but {env.name_of('reward')} gives "
            f"{float(computed):g} for the outcome {outcome.tolist()} under the context "
            f"{context.tolist()}: both must be one function, and info['outcome'] must hold all "
            "that it needs. If rewards cannot be had that way, say can_relabel = False."
        )


def _check_batch(env: ContextHandle, seen: list[Seen]) -> None:
    outcomes, contexts, rewards = _stacked(seen)
    computed = env.compute_reward(outcomes, contexts)
    batches = {env.name_of("reward"): computed}
    if all(step.success is None for step in seen):
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


def _stacked(seen: list[Seen]) -> tuple[Array, Array, Array]:
    """Outcomes (N, U), contexts (N, C) and rewards (N,)."""
    outcomes, contexts = (np.stack([getattr(s, n) for s in seen]) for n in ("outcome", "context"))
    return outcomes, contexts, np.array([step.reward for step in seen])


def _check_rule(env: ContextHandle, curriculum: Curriculum | None, seen: list[Seen]) -> None:
    """Refuse a rule that asks for successes where no episode can ever be one."""
    if curriculum is None or not isinstance(curriculum.rule, SuccessRate):
        return
    told = any(step.success is not None for step in seen)
    if not _by_reward(env, told):
        return
    why = "its rewards are its own, and its steps have no info['is_success']"
    if env.can_relabel:
        outcomes, contexts, rewards = _stacked(seen)
        fulfilled = env.to_context(outcomes)
        if (rewards > 0).any() or np.shape(fulfilled) != contexts.shape:
            return
        if np.any(env.compute_reward(outcomes, fulfilled) > 0):
            return
        why = "no reward is positive, not even where an outcome fulfils its context"
    raise RollinError(
        f"{env.name}: the curriculum's rule counts successes, and no episode can be one: {why}. "
        "Say what counts as a success: by is_success(outcome, context), a method or an argument of "
        "rollin.Contextual, or by info['is_success']."
    )


def _by_reward(env: ContextHandle, told: bool) -> bool:
    """Whether positive rewards are taken for successes, for want of anything that tells them."""
    layer = layer_with(env.env, "context_space")
    if isinstance(layer, Contextual):
        return layer.success_by_reward or not (layer.tells_success or told)
    default = isinstance(layer, ContextualEnv) and (
        type(layer).is_success is ContextualEnv.is_success
    )
    return default and not told


def _check_set_context(env: ContextHandle, context: Array) -> None:
    """`set_context`, which vector envs can call, must do what reset's options do."""
    if layer_with(env.env, "set_context") is None or layer_with(env.env, "context") is None:
        return
    env.call("set_context", env.env.get_wrapper_attr("set_context"), context.copy())
    observed, _ = env.raw_reset(seed=FIRST_SEED)
    _check_context_seen(observed, context, env.name, "set_context(c) and reset()")


def _check_end(env: ContextHandle, context: Array) -> None:
    """An episode of random actions must end: a run would wait for it."""
    inner = env.env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, gymnasium.wrappers.TimeLimit):
            return
        inner = inner.env
    env.raw_reset(seed=FIRST_SEED, options={"context": context.copy()})
    actions = _Actions(env)
    for _ in range(ENDLESS):
        _, _, terminated, truncated, _ = env.raw_step(actions.next())
        if terminated or truncated:
            return
    raise RollinError(
        f"{env.name} has no time limit: an episode of random actions has gone on for {ENDLESS:,} "
        "steps, and checkpoints, evaluations and switches wait for its end. Wrap it in "
        "gymnasium.wrappers.TimeLimit(env, N), or use --horizon."
    )


def _check_same(one: list[Seen], other: list[Seen], name: str) -> None:
    """Whether two episodes with one seed and the same actions are the same."""
    same = len(one) == len(other) and all(
        a.reward == b.reward and data_equivalence(a.observed, b.observed)
        for a, b in zip(one, other, strict=True)
    )
    if not same:
        raise RollinError(
            f"{name}: two episodes with the same seed and actions go differently, so that a "
            "resumed run cannot go on bit for bit: draw all randomness from self.np_random, and "
            "call super().reset(seed=seed)."
        )
