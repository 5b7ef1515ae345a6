"""From a run of ROLLIN to its environment, its curriculum and its teacher, or to its policy.

A fingerprint distinguishes a task from another of the same name: a run resumes only with its own.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollin.curriculum.contexts import FINEST, Curriculum, EpisodeRule, ReturnThreshold, SuccessRate
from rollin.curriculum.mastery import EarlyGap, Gap, MasteryRule, Plateau
from rollin.curriculum.reached_goals import Fulfils, ReachedGoalsTeacher
from rollin.curriculum.sequential import Bold, Halving, Relabelled, SequentialTeacher, Steps
from rollin.curriculum.teacher import CurriculumTeacher
from rollin.deep.evaluate import Evaluation, evaluate_policy
from rollin.deep.state import check_relabelling
from rollin.envs.check import examine
from rollin.envs.context_env import ContextEnv, ContextHandle
from rollin.envs.registry import make_contextual
from rollin.errors import RollinError
from rollin.policy import Float, Policy
from rollin.runs.checkpoint import read_checkpoint
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.deep import policy_tensors
from rollin.runs.engines.rollin_options import (
    ADAPTING,
    RULES_WITHOUT,
    VISITED,
    WALK,
    RollinConfig,
)
from rollin.runs.exported import ExportedPolicy, Trained
from rollin.runs.files import converted
from rollin.runs.spec import RunSpec
from rollin.sac.learner import Layout
from rollin.streams import Streams
from rollin.untrusted import finite, parse_json

STEP = 1 / 12  # of the path: the first step where none is given
LOOK_EVERY = 10  # episodes, of which one is played under the final context with bold steps


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
    own = replace(own, rule=rule)
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

    without: the text of what it has to do without; successes: whether it defines what a success is.
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
            "episodes there, not from earlier ones with recomputed rewards."
        )
        return Examined(without, successes)
    return Examined(None, successes)


def teacher_of(
    env: ContextEnv, config: RollinConfig, curriculum: Curriculum, examined: Examined
) -> CurriculumTeacher:
    """Who chooses contexts of the curriculum, as the options say."""
    options = config.algorithm
    if config.teacher == VISITED:
        if env.drawn_goal is not None:
            raise RollinError(
                f"--teacher visited needs goals as contexts, and {env.name} draws its goals "
                "itself: choose another teacher."
            )
        check_relabelling(env)
        parts = {"to_context": _to_context(env), "fulfils": _fulfils(env)}
        return ReachedGoalsTeacher(
            curriculum, options.rolls_in, **parts, relabelled=_relabelled(env)
        )
    if config.teacher != WALK:
        stream = Streams(config.seed)["teacher"]
        from rollin.teachers import make_teacher  # loads all of them

        teacher = make_teacher(config.teacher, curriculum, options.rolls_in, stream)
        if "start" in teacher.wants and not env.takes_start:
            raise RollinError(
                f"--teacher {config.teacher} sets where episodes begin, and {env.name} cannot: "
                'give it takes_start = True and a reset that begins at options["start"], or choose '
                "another teacher."
            )
        return teacher
    where = _where(config, curriculum)
    return SequentialTeacher(
        curriculum,
        options.rolls_in,
        counted=options.counted,
        scratch=options.method == "scratch",
        when=_when(config, curriculum),
        where=where,
        look_every=LOOK_EVERY if isinstance(where, Bold) else 0,
        relabelled=_relabelled(env) if examined.without is None else None,
        successes=examined.successes,
    )


def _when(config: RollinConfig, curriculum: Curriculum) -> MasteryRule | None:
    """Who says that a context is mastered; None: the curriculum's own rule."""
    if curriculum.rule is not None:
        return None
    kinds = {"gap": Gap, "plateau": Plateau}
    return kinds.get(config.rule or "", EarlyGap)(window=curriculum.episodes)


def halves(config: RollinConfig, curriculum: Curriculum) -> bool:
    """Whether the path is laid out finely, for steps that adapt themselves or for a teacher."""
    if config.stride is None:
        return curriculum.rule is None or config.teacher != WALK
    return config.stride in ADAPTING


def _where(config: RollinConfig, curriculum: Curriculum) -> Steps | None:
    """Who chooses the next context; None: the curriculum's own list."""
    step = config.delta or STEP
    if not halves(config, curriculum):
        return None
    return Halving(step, step) if config.stride == "halving" else Bold(step)


def _relabelled(env: ContextEnv) -> Relabelled | None:
    """What an episode would have earned under another context, where the env can compute it."""
    if not env.can_relabel or env.drawn_goal is not None:  # other contexts draw other goals
        return None

    def earned(outcomes: Any, context: Any) -> float:
        contexts = np.broadcast_to(np.asarray(context, np.float32), (len(outcomes), len(context)))
        array = np.asarray(outcomes, np.float32)
        rewards = env.compute_reward(array, contexts)
        if env.success_ends:
            successes = np.flatnonzero(env.are_successes(array, contexts))
            rewards = rewards[: successes[0] + 1] if len(successes) else rewards
        return float(np.sum(rewards))

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
            f"--as-printed takes a curriculum as the paper prints it, and {env.name} has none: "
            "leave it out, or use antmaze-umaze, walker, hopper, humanoid or ant."
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


# ------------------------------------------------------------------ fingerprints


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
    told = curriculum_dict(curriculum)
    del told["positions"]  # of which the run sees contexts, κ and thresholds alone
    told["kappas"] = [round(kappa, 12) for kappa in told["kappas"]]
    steps = [told, type(curriculum.rule).__name__, curriculum.episodes]
    return hashlib.sha256(json.dumps(steps).encode()).hexdigest()[:16]


def curriculum_dict(curriculum: Curriculum) -> dict[str, Any]:
    """Return a curriculum as plain values, for the run's record."""
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
    # a function that does not repeat itself bit for bit shows nothing
    return hashlib.sha256(b"".join(once)).hexdigest()[:16] if once == again else "unknown"


@dataclass(frozen=True)
class Playable:
    """A run, to be evaluated: π_main, its environment, the curriculum it walked, where it stands.

    contexts: (K + 1, C); kappas: (K + 1,); thresholds: as many, or none where no rule has one.
    """

    policy: Policy
    env: ContextEnv
    contexts: NDArray[np.float64]
    kappas: list[float]
    thresholds: list[float]
    k: int
    step: int

    @property
    def K(self) -> int:
        """Index of the last context."""
        return len(self.contexts) - 1

    @classmethod
    def open(cls, run: Trained, spec: RunSpec[Any], render_mode: str | None = None) -> "Playable":
        """A policy: exported, of a finished run, or of the last checkpoint of one that is not."""
        env = env_of(spec, render_mode)
        try:
            if isinstance(run, ExportedPolicy):
                policy, about = run.policy, run.about
                walked, k, step = about.curriculum, about.k, about.step
            elif run.finished:
                result, policy = run.result(), Policy.load(run.path)
                walked, k, step = result["curriculum"], int(result["k"]), int(result["env_steps"])
            else:
                policy, walked, k, step = _saved(run, spec, env)
            contexts = np.array(walked["contexts"], np.float64)
            kappas, thresholds = (
                converted(walked[name], list[float], run.path) for name in ("kappas", "thresholds")
            )
            return cls(policy, env, contexts, kappas, thresholds, k, step)
        except RollinError:
            env.close()
            raise
        except (KeyError, TypeError, ValueError) as error:
            env.close()
            raise RollinError(
                f"{run.path} does not hold what a run of ROLLIN leaves "
                f"({type(error).__name__}: {error}): its files are damaged."
            ) from error

    def evaluate(
        self, k: int, episodes: int, seed: int, on_outcome: Callable[[int, Float], None]
    ) -> Evaluation:
        """Deterministic episodes under context k."""
        context = self.contexts[k]
        return evaluate_policy(
            self.policy, self.env, context, episodes, seed=seed, on_outcome=on_outcome
        )


def _saved(
    run: RunDirectory, spec: RunSpec[Any], env: ContextEnv
) -> tuple[Policy, dict[str, Any], int, int]:
    """π_main, curriculum, context and step of the last checkpoint."""
    saved = read_checkpoint(run.checkpoint, run.recorded_hash() or spec.hash)
    if saved is None:
        raise RollinError(
            f"{run.path} has neither a policy nor a checkpoint yet: let it run for a while, or "
            f"continue it with rollin resume {run.path}."
        )
    k, walked = int(saved.values["outcome"]["k"]), saved.values["outcome"]["curriculum"]
    sac = spec.config.sac
    tensors = policy_tensors(
        Layout(env.observation_size + env.context_size, env.action_size, sac.hidden),
        sac,
        saved.arrays["rollin/main/theta"],
        env.actions,
        contexts=np.array(walked["contexts"]),
        k=np.array([k]),
        context_space=np.stack([env.context_space.low, env.context_space.high]),
    )
    return Policy.of(tensors), walked, k, saved.step
