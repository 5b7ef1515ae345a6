"""From the options of a run of ROLLIN to its environment, its curriculum and its teacher."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rollin.curriculum.contexts import FINEST, Curriculum
from rollin.curriculum.mastery import Gap, Mastery, Plateau
from rollin.curriculum.places import Fulfils
from rollin.curriculum.rules import EpisodeRule, ReturnThreshold, SuccessRate
from rollin.curriculum.steps import Halving, Steps
from rollin.curriculum.teacher import Course
from rollin.curriculum.teachers import make_teacher
from rollin.curriculum.visited import Visited
from rollin.curriculum.walk import Relabelled, Walk
from rollin.deep.state import check_relabelling
from rollin.envs.check import examine
from rollin.envs.context_env import ContextEnv
from rollin.envs.registry import make_contextual
from rollin.errors import RollinError
from rollin.runs.engines.rollin_options import RULES_WITHOUT, VISITED, WALK, RollinConfig
from rollin.runs.spec import RunSpec
from rollin.streams import Streams
from rollin.values import finite, parse_json

STEP = 1 / 12  # of the path: the first step where none is given


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
    if rule is None:
        own = replace(own, rule=None)
    delta, start = config.delta, config.start
    if config.spacing == "even":
        delta, start = _even_step(config, own), 0.0
    elif halves(config, own) and own.path is not None:
        delta = min(FINEST, config.delta or own.delta or 1)
    return own.changed(
        delta=delta,
        start=start,
        rule=rule,
        episodes=episodes,
        kappa=config.kappa,
        threshold_at=config.threshold_at,
    )


def _even_step(config: RollinConfig, own: Curriculum) -> float:
    """The step between 1/Δ contexts at equal distances from 0 to 1."""
    step = config.delta or own.delta
    if own.path is None or step is None or halves(config, own):
        raise RollinError(
            "--spacing even belongs to a curriculum with a path, a step Δ and a threshold; this "
            "one has a list of contexts or adapts its steps: leave --spacing out."
        )
    parts = round(1 / step)
    if parts < 2 or abs(parts * step - 1) > 1e-9:
        raise RollinError(
            f"--spacing even needs 1/Δ to be a whole number from 2 on, got Δ = {step:g}: give "
            "--delta as a fraction such as 1/24."
        )
    return 1 / (parts - 1)


class Examined(NamedTuple):
    """What a run can rely on in its environment.

    without: what it has to do without, in words; successes: whether it defines what a success is.
    """

    without: str | None
    successes: bool


def check_for_run(env: ContextEnv, config: RollinConfig, curriculum: Curriculum) -> Examined:
    """Refuse an environment that a run cannot use; returns what the run can rely on.

    Relabelling and visited places need rewards of outcomes under other contexts, for a batch. The
    gap would be better off with them, and takes the first episodes under a context if it must.
    """
    needs = config.algorithm.relabel or config.teacher == VISITED
    uses = curriculum.rule is None and config.teacher == WALK and env.can_relabel
    try:
        successes = examine(env, curriculum, deterministic=False, relabel=needs or uses)
    except RollinError as error:
        if needs or not uses:
            raise
        successes = examine(env, curriculum, deterministic=False, relabel=False)
        without = (
            f"{str(error).rstrip('.')}. So the threshold of a context is taken from the first "
            "episodes there, not from earlier ones with their rewards computed anew."
        )
        return Examined(without, successes)
    return Examined(None, successes)


def teacher_of(
    env: ContextEnv, config: RollinConfig, curriculum: Curriculum, examined: Examined
) -> Course:
    """Who chooses contexts of the curriculum, as the options say."""
    options = config.algorithm
    if config.teacher == VISITED:
        check_relabelling(env)
        parts = {"to_context": _to_context(env), "fulfils": _fulfils(env)}
        return Visited(curriculum, options.rolls_in, **parts, relabelled=_relabelled(env))
    if config.teacher != WALK:
        if config.teacher == "reverse" and not env.takes_start:
            raise RollinError(
                f"--teacher reverse begins episodes near the goal, and {env.name} cannot: give it "
                'takes_start = True and a reset that begins at options["start"], or choose another '
                "teacher."
            )
        stream = Streams(config.seed)["teacher"]
        return make_teacher(config.teacher, curriculum, options.rolls_in, stream)
    return Walk(
        curriculum,
        options.rolls_in,
        counted=options.counted,
        scratch=options.method == "scratch",
        need=options.need,
        when=_when(config, curriculum),
        where=_where(config, curriculum),
        relabelled=_relabelled(env) if examined.without is None else None,
        successes=examined.successes,
    )


def _when(config: RollinConfig, curriculum: Curriculum) -> Mastery | None:
    """Who says that a context is mastered; None: the curriculum's own rule."""
    if curriculum.rule is not None:
        return None
    kind = Plateau if config.rule == "plateau" else Gap
    return kind(window=curriculum.episodes)


def halves(config: RollinConfig, curriculum: Curriculum) -> bool:
    """Whether the path is laid out finely, for steps that adapt themselves or for a teacher."""
    if config.stride is None:
        return curriculum.rule is None or config.teacher != WALK
    return config.stride == "halving"


def _where(config: RollinConfig, curriculum: Curriculum) -> Steps | None:
    """Who chooses the next context; None: the curriculum's own list."""
    step = config.delta or STEP
    return Halving(step, step) if halves(config, curriculum) else None


def _relabelled(env: ContextEnv) -> Relabelled | None:
    """What an episode would have earned under another context, where the env can tell."""
    if not env.can_relabel:
        return None

    def earned(outcomes: Any, context: Any) -> float:
        contexts = np.broadcast_to(np.asarray(context, np.float32), (len(outcomes), len(context)))
        return float(np.sum(env.compute_reward(np.asarray(outcomes, np.float32), contexts)))

    return earned


def _to_context(env: ContextEnv) -> Callable[[Any], Any]:
    """The contexts that outcomes fulfil, NaN where these lie outside the env's space."""
    space = env.context_space

    def made(outcomes: Any) -> Any:
        found = np.asarray(env.to_context(outcomes), np.float64)
        inside = np.all((found >= space.low) & (found <= space.high), axis=1)
        return np.where(inside[:, None], found, np.nan)

    return made


def _fulfils(env: ContextEnv) -> Fulfils:
    """Whether outcomes fulfil contexts, all of them with all."""

    def fulfilled(outcomes: Any, contexts: Any) -> Any:
        pairs = len(outcomes), len(contexts)
        every = np.repeat(outcomes, pairs[1], 0), np.tile(contexts, (pairs[0], 1))
        told = env.are_successes(*(np.asarray(part, np.float32) for part in every))
        return np.asarray(told, bool).reshape(pairs)

    return fulfilled


def _printed(env: ContextEnv) -> Curriculum:
    if env.printed is None:
        raise RollinError(
            f"--literal takes a curriculum as the paper prints it, and {env.name} has none: leave "
            "it out, or use antmaze-umaze, walker, hopper, humanoid or ant."
        )
    return env.printed


def _rule(config: RollinConfig, own: Curriculum | None) -> EpisodeRule | None:
    """The rule that the options name; what they leave open is the own curriculum's.

    None: a rule that needs no threshold.
    """
    before = None if own is None else own.rule
    if config.rule in RULES_WITHOUT:
        return None
    if config.rule is None and config.threshold is None and before is None:
        return None
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
        return parse_json(text, finite)
    except ValueError as error:
        raise RollinError(f"{flag} must be JSON, such as '[[0, 0], [8, 0]]': {error}.") from error
