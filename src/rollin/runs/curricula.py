"""From the options of a run of ROLLIN to its environment and its curriculum."""

import json
from typing import Any

from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.rules import EpisodeRule, ReturnThreshold, SuccessRate
from rollin.envs.context_env import ContextEnv
from rollin.envs.registry import make_contextual
from rollin.errors import RollinError
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.spec import RunSpec


def env_of(spec: RunSpec[RollinConfig], render_mode: str | None = None) -> ContextEnv:
    """The environment that a spec names."""
    config = spec.config
    return make_contextual(
        spec.task, config.env_options, horizon=config.horizon, render_mode=render_mode
    )


def curriculum_of(
    env: ContextEnv, config: RollinConfig, given: Curriculum | None = None
) -> Curriculum:
    """The curriculum of a run: given, on the command line, or the env's own; with its options."""
    if given is not None and not isinstance(given, Curriculum):
        raise RollinError(
            f"curriculum must be a rollin.Curriculum, got {type(given).__name__}: "
            "Curriculum.listed(contexts, R) makes one of a list."
        )
    if given is not None and (config.path or config.contexts or config.literal):
        raise RollinError(
            "A curriculum is given twice: as an argument and by path, contexts or literal."
        )
    own = given or (_printed(env) if config.literal else env.curriculum)
    if own is None and config.path is None and config.contexts is None:
        raise RollinError(
            "The environment has no curriculum of its own: give it an attribute `curriculum`, or "
            "use --path or --contexts with --threshold."
        )
    elsewhere = config.path is not None or config.contexts is not None
    if elsewhere and own and own.threshold_at == "position" and config.threshold is None:
        raise RollinError(
            f"The threshold of {env.name} depends on the positions of its own contexts: with "
            "--path or --contexts, give --threshold."
        )
    rule = _rule(config, own)
    episodes = config.window or (own.episodes if own else 10)
    if config.path is not None:
        step = 0.1 if config.delta is None else config.delta
        own = Curriculum.along(_json("--path", config.path), step, rule)
    elif config.contexts is not None:
        own = Curriculum.listed(_json("--contexts", config.contexts), rule)
    assert own is not None
    return own.changed(
        delta=config.delta,
        start=config.start,
        rule=rule,
        episodes=episodes,
        kappa=config.kappa,
        threshold_at=config.threshold_at,
    )


def _printed(env: ContextEnv) -> Curriculum:
    if env.printed is None:
        raise RollinError(
            f"--literal takes a curriculum as the paper prints it, and {env.name} has none: leave "
            "it out, or use antmaze-umaze, walker, hopper, humanoid or ant."
        )
    return env.printed


def _rule(config: RollinConfig, own: Curriculum | None) -> EpisodeRule:
    """The rule that the options name; what they leave open is the own curriculum's."""
    before = None if own is None else own.rule
    threshold, slope = config.threshold, config.threshold_slope
    success = isinstance(before, SuccessRate) if config.rule is None else config.rule == "success"
    same = before is not None and success == isinstance(before, SuccessRate)
    if threshold is None and same and before is not None:
        return before
    if success:
        if slope:
            raise RollinError("--threshold-slope belongs to a return threshold, not to a rate.")
        return SuccessRate(0.5 if threshold is None else threshold)
    if threshold is None:
        raise RollinError("A return threshold is needed: give --threshold, the R to exceed.")
    if slope:
        return ReturnThreshold(lambda x: threshold + slope * x)
    return ReturnThreshold(threshold)


def _json(flag: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise RollinError(f"{flag} must be JSON, such as '[[0, 0], [8, 0]]': {error}.") from error
