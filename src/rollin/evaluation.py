"""`rollin.evaluate`: episodes of a policy or an agent on the contexts of an environment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollin.checks import at_least
from rollin.deep.evaluate import EVALUATION_SEED, Evaluation, evaluate_actor, evaluate_policy
from rollin.envs.box_env import Env
from rollin.envs.context_env import ContextEnv, ContextHandle
from rollin.envs.contextual import check_context
from rollin.envs.registry import make_raw
from rollin.errors import RollinError, in_python, short_repr
from rollin.policy import Policy


@dataclass(frozen=True, repr=False)
class ContextEvaluation(Evaluation):
    """Episodes on one context: returns, successes, their seeds, means of the env's measures.

    k: the context's index in the curriculum or the list that was given.
    """

    k: int = 0
    context: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return short_repr(
            self, k=self.k, context=self.context, episodes=len(self.returns), mean=self.mean,
            success=self.success,
        )  # fmt: skip


@in_python()
def evaluate(
    policy: Any,
    env: Env | Callable[[], Env] | str,
    contexts: ArrayLike | None = None,
    *,
    episodes: int = 10,
    seed: int = EVALUATION_SEED,
    horizon: int | None = None,
) -> list[ContextEvaluation]:
    """Deterministic episodes on each context, always from the same first states.

    policy: a `rollin.Policy`; an agent with `act(observation, context, deterministic=...)`; an
    agent with `predict(observation, deterministic=...)` that takes the env's dict, as those of
    Stable-Baselines3 do; or a function of (observation, context). env: a contextual env, a function
    that makes one, or a task's name. contexts: vectors; those of the env's curriculum if not given.
    Episode i of every context has the seed `seed + i`. `rollin evaluate` gives the same numbers.

    >>> import rollin
    >>> stay = lambda observation, context: [0.0, 0.0]
    >>> found = rollin.evaluate(stay, "point-umaze", [[0.0, 0.0], [8.0, 0.0]], episodes=2)
    >>> [result.success for result in found], found[0].seeds
    ([1.0, 0.0], (10000, 10001))
    """
    at_least(1, "episodes", episodes)
    at_least(0, "seed", seed)
    made = make_raw(env, horizon)
    try:
        kind = ContextEnv if isinstance(policy, Policy) else ContextHandle
        handle = kind(made)
        seeds = tuple(range(seed, seed + episodes))
        rows = []
        for k, context in enumerate(_contexts(handle, policy, contexts)):
            if isinstance(handle, ContextEnv):
                _check_policy(policy, handle)
                found = evaluate_policy(policy, handle, context, episodes, seed=seed)
            else:
                found = evaluate_actor(handle, _actor(policy), context, episodes, seed=seed)
            numbers = tuple(float(number) for number in context)
            rows.append(ContextEvaluation(**vars(found), k=k, context=numbers, seeds=seeds))
        return rows
    finally:
        if not isinstance(env, gymnasium.Env):
            made.close()


def _contexts(handle: ContextHandle, policy: Any, given: Any) -> Sequence[NDArray[Any]]:
    if given is not None:
        return [check_context(context, handle.context_space) for context in given]
    if handle.curriculum is not None:
        return list(handle.curriculum.contexts)
    if isinstance(policy, Policy) and len(policy.contexts):
        return list(policy.contexts)
    raise RollinError(
        f"{handle.name} has no curriculum of its own: give contexts=[[...], ...] to evaluate on."
    )


def _check_policy(policy: Policy, env: ContextEnv) -> None:
    sizes = policy.observation_size, policy.contexts.shape[1], len(policy.low)
    wanted = env.observation_size, env.context_size, env.action_size
    if sizes != wanted:
        raise RollinError(
            f"This policy has {sizes[0]} numbers of observation, {sizes[1]} of context and "
            f"{sizes[2]} of action, {env.name} has {wanted[0]}, {wanted[1]} and {wanted[2]}: it "
            "was trained on another environment."
        )


def _actor(policy: Any) -> Callable[[Any, Any], Any]:
    """Deterministic actions of an agent, as a function of observation and context."""
    if callable(getattr(policy, "act", None)):
        return lambda observation, context: policy.act(observation, context, deterministic=True)
    if callable(getattr(policy, "predict", None)):
        return lambda observation, context: policy.predict(
            {"observation": np.asarray(observation), "context": context}, deterministic=True
        )[0]
    if callable(policy):
        return policy
    raise RollinError(
        "policy must be a rollin.Policy, an agent with act or predict, or a function of "
        f"(observation, context), got {type(policy).__name__}."
    )
