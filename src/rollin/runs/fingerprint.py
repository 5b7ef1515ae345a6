"""Tells a task from another of the same name: what a run was begun with must still be there."""

import hashlib
import json
from typing import Any

import numpy as np

from rollin.curriculum.contexts import Curriculum
from rollin.envs.context_env import ContextEnv
from rollin.envs.context_handle import ContextHandle
from rollin.errors import RollinError
from rollin.runs.curricula import curriculum_of, env_of
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.spec import RunSpec


def fingerprint_of(spec: RunSpec[RollinConfig]) -> str:
    """Of the environment and the curriculum that a spec stands for."""
    env = env_of(spec)
    try:
        return of_environment(env, curriculum_of(env, spec.config))
    finally:
        env.close()


def of_environment(env: ContextEnv, curriculum: Curriculum) -> str:
    """Of an environment's spaces and rewards, and of a curriculum."""
    measured = f", measures {' '.join(env.measures)}" if env.measures else ""
    return (
        f"{env.observation_size} observed, {env.context_size} of context, "
        f"{env.outcome_size} of outcome, {env.action_size} acted, curriculum {_steps(curriculum)}, "
        f"rewards {_some_rewards(env, curriculum)}{measured}"
    )


def of_spaces(env: ContextHandle, curriculum: Curriculum) -> str:
    """Of an environment of any spaces, and of a curriculum."""
    measured = f", measures {' '.join(env.measures)}" if env.measures else ""
    spaces = f"{env.env.observation_space}, {env.env.action_space}"
    return f"spaces {spaces}, curriculum {_steps(curriculum)}{measured}"


def _steps(curriculum: Curriculum) -> str:
    """A digest of contexts, thresholds, rule and window."""
    told = walked(curriculum)
    del told["positions"]  # of which the run sees contexts, κ and thresholds alone
    told["kappas"] = [round(kappa, 12) for kappa in told["kappas"]]
    steps = [told, type(curriculum.rule).__name__, curriculum.episodes]
    return hashlib.sha256(json.dumps(steps).encode()).hexdigest()[:16]


def walked(curriculum: Curriculum) -> dict[str, Any]:
    """A curriculum as plain values, for whoever looks at a run later."""
    return {
        "contexts": curriculum.contexts.tolist(),
        "positions": list(curriculum.positions),
        "kappas": list(curriculum.kappas),
        "thresholds": _thresholds(curriculum),
    }


def _thresholds(curriculum: Curriculum) -> list[float]:
    """Of every context; none where no rule has one."""
    if curriculum.rule is None:
        return []
    return [curriculum.threshold(k) for k in range(curriculum.K + 1)]


def _some_rewards(env: ContextEnv, curriculum: Curriculum) -> str:
    """A digest of rewards at a few made-up outcomes, which change when their function does."""
    generator = np.random.default_rng(0)
    outcomes = generator.normal(size=(16, env.outcome_size)).round(3)
    contexts = np.resize(curriculum.contexts, (16, env.context_size))
    nearby = outcomes.copy()
    size = min(outcomes.shape[1], contexts.shape[1])
    nearby[:, :size] = contexts[:, :size] + 0.1 * outcomes[:, :size]
    try:
        with np.errstate(all="ignore"):  # made-up outcomes may be impossible ones
            once, again = (
                [env.compute_reward(o, contexts).tobytes() for o in (outcomes, nearby)]
                for _ in range(2)
            )
    except RollinError:
        return "unknown"
    # a function that does not repeat itself to the bit tells nothing
    return hashlib.sha256(b"".join(once)).hexdigest()[:16] if once == again else "unknown"
