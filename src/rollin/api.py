"""`rollin.train`: ROLLIN on your environment in one call; `prepare` for your own training loop.

```
trained = rollin.train(make_env, curriculum, beta=0.1, steps=100_000)
action = trained.policy.act(observation, context)
```
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, Unpack

import gymnasium

from rollin.checks import at_least, shown
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import Advance, Progress
from rollin.deep.own_agent import AgentState, train_agent
from rollin.deep.practical import RollinStep, train_rollin
from rollin.deep.state import DeepState
from rollin.envs.box_env import Env
from rollin.envs.check import examine
from rollin.envs.context_env import ContextEnv
from rollin.envs.context_handle import ContextHandle
from rollin.envs.registry import (
    call_factory,
    check_source,
    make_contextual,
    make_raw,
    parse_env_options,
)
from rollin.errors import RollinError, in_python
from rollin.names import plain_name
from rollin.policy import Policy
from rollin.progress_bar import Display
from rollin.runs.curricula import check_for_run, curriculum_of, teacher_of
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.agent_options import AgentConfig
from rollin.runs.engines.agent_run import AgentRun, made_agent, walked_by
from rollin.runs.engines.deep import replay_rows
from rollin.runs.engines.rollin import ENGINE
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.rollin_run import RollinRun, trained_policy
from rollin.runs.execute import execute
from rollin.runs.options import configured
from rollin.runs.rows import read_metrics
from rollin.runs.spec import RunConfig, RunSpec
from rollin.texts import short_repr
from rollin.train_options import PrepareOptions, TrainOptions

OWN_NAMES = (
    "env", "curriculum", "agent", "out", "on_event", "should_stop", "verbose", "progress_bar",
)  # fmt: skip
"""Arguments of `train` that are no options of a run."""
MDPS = ("four-rooms", "corridor", "combination-lock", "square-grid", "random-mdp")
DIRECTORY_OPTIONS = {"keep_replay", "log", "log_every", "eval_episodes", "last"}

Config = TypeVar("Config", bound=RunConfig)
Run = TypeVar("Run", bound=Driver[Any])
Source = Env | Callable[[], Env] | str
"""An env, a function that makes one, or the name of a task."""


@dataclass(frozen=True, repr=False)
class Trained:
    """The result of `rollin.train`.

    policy: a `rollin.Policy`, or your own agent. kappa: progress on the curriculum, from 0 to 1.
    k, K: indices of the context that training reached and of the final one. advances: step, k and
    reason of every advance. completed: the same for mastering the final context, or None. returns:
    the return of every episode, under the context that was current. finished: False if
    `should_stop` ended the run early.
    """

    policy: Any
    kappa: float
    k: int
    K: int
    advances: list[Advance]
    completed: Advance | None
    returns: list[float]
    finished: bool = True

    def __repr__(self) -> str:
        return short_repr(
            self, kappa=self.kappa, k=self.k, K=self.K, episodes=len(self.returns),
            finished=self.finished, policy=self.policy,
        )  # fmt: skip


@in_python()
def train(
    env: Source,
    curriculum: Curriculum | None = None,
    *,
    agent: Any = None,
    beta: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    on_event: Callable[[RollinStep], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    verbose: int = 0,
    progress_bar: bool = False,
    **options: Unpack[TrainOptions],
) -> Trained:
    """Train along a curriculum with ROLLIN (β > 0; default: 0.1) or its baseline (β = 0).

    env: a contextual env, a function that makes one, or the name of a task. curriculum: default:
    the env's own. out: a run directory for metrics, checkpoints and the result; the same call
    resumes an interrupted run, and env must be a function or a name. on_event: called after every
    step; a resumed run repeats the steps after its last checkpoint. should_stop: return True to end
    the run early. verbose: 1 prints a line for every mastered context. progress_bar: show the steps
    and the current context. options: every option of `rollin train` by its name: method, hidden,
    gamma, relabel, …

    agent: your own agent instead of the two SAC agents, for any observations and actions: an object
    with the methods of `rollin.Agent`, or a function of (env, seed) that makes it. A frozen copy of
    it is the guide. options are then method, gamma, prefix, counted, env_options, horizon and, with
    `out`, log, log_every, eval_episodes and last. A run with `out` resumes if the agent has
    get_state and set_state; `Trained.policy` is the agent.

    >>> import rollin
    >>> few = {"warmup": 200, "hidden": (8, 8), "batch": 16}
    >>> trained = rollin.train("point-umaze", beta=0.1, steps=400, seed=0, **few)
    >>> trained.k, trained.K, len(trained.returns)
    (0, 12, 2)
    """
    _check_arguments(env, out, on_event=on_event, should_stop=should_stop)
    should_stop = should_stop or (lambda: False)
    given: dict[str, Any] = {**options, "seed": seed}
    given |= {} if steps is None else {"steps": steps}
    given |= {} if beta is None else {"beta": beta}
    if out is None:
        _refuse_directory_options(given)
    with Display(on_event, at_least(0, "verbose", verbose), bar=progress_bar) as display:
        if agent is not None:
            return _train_agent(env, curriculum, agent, given, out, display, should_stop)
        config = _config(env, given, "rollin.train", OWN_NAMES)
        if out is not None:
            return _train_in_directory(env, curriculum, config, Path(out), display, should_stop)
        state = _prepare(env, curriculum, config)
        try:
            display.begin(config.steps, state.progress.K)
            returns = _consumed(train_rollin(state), config.steps, display.on_event, should_stop)
            return _trained(state, returns, finished=state.step == config.steps)
        finally:
            state.close()
            if not isinstance(env, gymnasium.Env):
                state.env.close()


@in_python()
def prepare(
    env: Source, curriculum: Curriculum | None = None, **options: Unpack[PrepareOptions]
) -> DeepState:
    """Return the initial state of a run, for `train_rollin` in your own loop.

    env, curriculum and options are those of `train`.

    >>> import rollin
    >>> state = rollin.prepare("point-umaze", beta=0.1, seed=0, hidden=(8, 8), batch=16)
    >>> state.progress.k, state.progress.K, len(state.D)
    (0, 12, 0)
    >>> state.close()
    """
    _check_arguments(env)
    given: dict[str, Any] = {**options}
    _refuse_directory_options(given)
    config = _config(env, given, "rollin.prepare", OWN_NAMES[:2])
    return _prepare(env, curriculum, config)


def _consumed(
    events: Iterator[RollinStep],
    steps: int,
    on_event: Callable[[RollinStep], None] | None,
    should_stop: Callable[[], bool],
) -> list[float]:
    """Take the algorithm's steps up to the last, or to a stop; returns of all episodes."""
    returns: list[float] = []
    for event in events:
        if event.episode is not None:
            returns.append(event.episode.total)
        if on_event is not None:
            on_event(event)
        if event.step == steps or (event.episode_end and should_stop()):
            break
    return returns


def _check_arguments(env: Any, out: Any = None, **functions: Any) -> None:
    """Refuse arguments of another type before anything is made."""
    if isinstance(env, str) and env in MDPS:
        raise RollinError(
            f"env must be a contextual env, and {env} is a tabular MDP: use "
            'rollin.solve(mdp), such as rollin.solve(rollin.four_rooms("hard")).'
        )
    check_source(env)
    if out is not None and not isinstance(out, str | os.PathLike):
        raise RollinError(f"out must be the path of a run directory, got {shown(out)}.")
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise RollinError(f"{name} must be a function, got {shown(function)}.")


def _refuse_directory_options(options: dict[str, Any]) -> None:
    if unused := DIRECTORY_OPTIONS & options.keys():
        raise RollinError(
            f"{', '.join(sorted(unused))} can only be given with `out`, a run directory."
        )


def _config(
    env: Source, options: dict[str, Any], owner: str, others: Sequence[str]
) -> RollinConfig:
    preset = ENGINE.preset(plain_name(env) if isinstance(env, str) else "")
    try:
        return configured(preset, options, owner, others)
    except RollinError:
        given = {name: options[name] for name in ("env_options",) if name in options}
        handle = _make(env, configured(preset, given))  # what is wrong with the env comes first
        if not isinstance(env, gymnasium.Env):
            handle.close()
        raise


def _prepare(env: Source, curriculum: Curriculum | None, config: RollinConfig) -> DeepState:
    handle = _make(env, config)
    try:
        walked = curriculum_of(handle, config, curriculum)
        examined = check_for_run(handle, config, walked)
        if examined.without is not None:
            warnings.warn(examined.without, stacklevel=3)  # whoever called prepare or train
        return DeepState.begin(
            handle,
            walked,
            config.algorithm,
            config.sac,
            seed=config.seed,
            capacity=replay_rows(config),
            learner=config.learner,
            teacher=teacher_of(handle, config, walked, examined),
        )
    except BaseException:
        if not isinstance(env, gymnasium.Env):
            handle.close()
        raise


def _make(env: Source, config: RollinConfig) -> ContextEnv:
    if isinstance(env, str):
        return make_contextual(env, config.env_options, horizon=config.horizon)
    if not isinstance(env, gymnasium.Env):
        arguments = parse_env_options(config.env_options)
        return call_factory(env, _name(env), arguments, config.horizon)
    if config.env_options:
        raise RollinError("env_options belong to a function or a task's name, not to an env.")
    limit = config.horizon
    return ContextEnv(env if limit is None else gymnasium.wrappers.TimeLimit(env, limit))


def _train_in_directory(
    env: Source,
    curriculum: Curriculum | None,
    config: RollinConfig,
    out: Path,
    display: Display,
    should_stop: Callable[[], bool],
) -> Trained:
    def begin(spec: RunSpec[RollinConfig], directory: RunDirectory) -> RollinRun:
        run = RollinRun(spec, directory, partial(_make, env, config), curriculum, display.on_event)
        display.begin(config.steps, run.state.progress.K)
        return run

    run, finished, returns = _executed(env, config, out, begin, should_stop)
    if not finished:
        return _trained(run.state, returns, finished=False)
    return _ended(Policy.load(out), run.directory.result(), returns)


def _executed(
    env: Source,
    config: Config,
    out: Path,
    begin: Callable[[RunSpec[Config], RunDirectory], Run],
    should_stop: Callable[[], bool],
) -> tuple[Run, bool, list[float]]:
    """A run in a directory, up to its end or to a stop; whether it is finished; all returns."""
    if isinstance(env, gymnasium.Env):
        raise RollinError(
            "With `out`, env must be a function that makes the environment, or a task's name: "
            "evaluations in between need an environment of their own."
        )
    name = plain_name(env) if isinstance(env, str) else _name(env)
    run = begin(RunSpec(name, config), RunDirectory(out))
    finished = execute(run, "rollin.train(…)", should_stop=should_stop)
    return run, finished, read_metrics(out / "episodes.csv")["return"]


def _ended(policy: Any, result: dict[str, Any], returns: list[float]) -> Trained:
    """What a finished run in a directory gave."""
    return Trained(
        policy,
        result["kappa"],
        result["k"],
        result["K"],
        [Advance(**advance) for advance in result["advances"]],
        Advance(**result["completed"]) if result["completed"] else None,
        returns,
    )


def _train_agent(
    env: Source,
    curriculum: Curriculum | None,
    agent: Any,
    options: dict[str, Any],
    out: str | Path | None,
    display: Display,
    should_stop: Callable[[], bool],
) -> Trained:
    """An agent of one's own, in a directory or without."""
    named = _name(agent) if callable(agent) and not hasattr(agent, "act") else type(agent).__name__
    owner = "rollin.train with agent"
    config = configured(AgentConfig(agent=named), options, owner, OWN_NAMES)
    if out is not None:
        return _agent_in_directory(env, curriculum, agent, config, Path(out), display, should_stop)
    made = make_raw(env, config.horizon, config.env_options)
    try:
        handle = ContextHandle(made)
        walked = walked_by(handle, curriculum)
        successes = examine(handle, walked, deterministic=False, relabel=False)
        learner = made_agent(agent, made, config.seed)
        state = AgentState.begin(
            handle, walked, config.algorithm, learner, config.seed, successes=successes
        )
        display.begin(config.steps, state.progress.K)
        returns = _consumed(train_agent(state), config.steps, display.on_event, should_stop)
        finished = state.step == config.steps
        return _told(state.agent, state.progress, returns, finished=finished)
    finally:
        if not isinstance(env, gymnasium.Env):
            made.close()


def _agent_in_directory(
    env: Source,
    curriculum: Curriculum | None,
    agent: Any,
    config: AgentConfig,
    out: Path,
    display: Display,
    should_stop: Callable[[], bool],
) -> Trained:
    def begin(spec: RunSpec[AgentConfig], directory: RunDirectory) -> AgentRun:
        run = AgentRun(spec, directory, env, agent, curriculum, display.on_event)
        display.begin(config.steps, run.state.progress.K)
        return run

    run, finished, returns = _executed(env, config, out, begin, should_stop)
    if not finished:
        return _told(run.state.agent, run.state.progress, returns, finished=False)
    return _ended(run.learned(), run.directory.result(), returns)


def _name(make: Any) -> str:
    """module:factory if `rollin resume` can find it again by that; else its bare name."""
    name = getattr(make, "__name__", type(make).__name__)
    module = getattr(make, "__module__", None) or "__main__"
    found = getattr(sys.modules.get(module), name, None)
    return f"{module}:{name}" if found is make and module != "__main__" else name


def _trained(state: DeepState, returns: list[float], *, finished: bool) -> Trained:
    policy = Policy.of(trained_policy(state))
    return _told(policy, state.progress, returns, finished=finished)


def _told(policy: Any, progress: Progress, returns: list[float], *, finished: bool) -> Trained:
    return Trained(
        policy,
        progress.kappa,
        progress.k,
        progress.K,
        list(progress.advances),
        progress.completed,
        returns,
        finished,
    )
