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
from typing import Any, Self, TypeVar, Unpack

import gymnasium

from rollin.agents.own_agent import AgentState, train_agent
from rollin.checks import at_least, shown
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import Advance
from rollin.deep.rollin_sac import RollinStep, train_rollin
from rollin.deep.state import DeepState
from rollin.envs.box_env import Env
from rollin.envs.check import examine
from rollin.envs.context_env import ContextEnv, ContextHandle
from rollin.envs.registry import (
    call_factory,
    check_source,
    make_contextual,
    make_raw,
    parse_env_options,
)
from rollin.errors import RollinError, in_python, short_repr
from rollin.policy import Policy
from rollin.runs.curricula import check_for_run, curriculum_of, teacher_of
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import execute
from rollin.runs.engines.agent import AgentConfig, AgentRun, made_agent, walked_by
from rollin.runs.engines.deep import replay_rows, trained_policy
from rollin.runs.engines.rollin import ENGINE
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.rollin_run import RollinRun
from rollin.runs.metrics import read_metrics
from rollin.runs.spec import RunConfig, RunSpec, configured
from rollin.tasks import plain_name
from rollin.train_options import PrepareOptions, TrainOptions

OWN_NAMES = (
    "env", "curriculum", "agent", "out", "on_event", "should_stop", "verbose", "progress_bar",
)  # fmt: skip
"""Arguments of `train` that are no options of a run."""
MDPS = ("four-rooms", "corridor", "combination-lock", "square-grid", "random-mdp")
BAR_EVERY = 100  # steps between two updates of the progress bar
DIRECTORY_OPTIONS = {"keep_replay", "log", "log_every", "eval_episodes", "last"}

Config = TypeVar("Config", bound=RunConfig)
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
        call = _Call(env, curriculum, display, should_stop)
        if agent is not None:
            return call.train_agent(agent, given, out)
        config = _config(env, given, "rollin.train", OWN_NAMES)
        if out is not None:
            make_env = partial(_make, env, config)
            return call.run(
                config,
                out,
                lambda spec, directory: RollinRun(
                    spec, directory, make_env, curriculum, display.on_event
                ),
            )
        state = _prepare(env, curriculum, config)
        try:
            return call.consume(train_rollin(state), state, config.steps)
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
        chosen = curriculum_of(handle, config, curriculum)
        examined = check_for_run(handle, config, chosen)
        if examined.without is not None:
            warnings.warn(examined.without, stacklevel=3)  # the caller of prepare or train
        return DeepState.begin(
            handle,
            chosen,
            config.algorithm,
            config.sac,
            seed=config.seed,
            capacity=replay_rows(config),
            learner=config.learner,
            teacher=teacher_of(handle, config, chosen, examined),
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


def _name(make: Any) -> str:
    """module:factory if `rollin resume` can find it again by that; else its bare name."""
    name = getattr(make, "__name__", type(make).__name__)
    module = getattr(make, "__module__", None) or "__main__"
    known = getattr(sys.modules.get(module), name, None)
    return f"{module}:{name}" if known is make and module != "__main__" else name


class Display:
    """Prints and draws the steps of `train`; quiet by default.

    on_event: the user's own function, called first. verbose: 1 prints a line for every mastered
    context. bar: show steps, time and the current context.
    """

    def __init__(
        self, on_event: Callable[[Any], None] | None, verbose: int = 0, *, bar: bool = False
    ) -> None:
        self._inner = on_event
        self._verbose = verbose
        self._bar = bar
        self._progress: Any = None
        self._task: Any = None
        self._K = 0
        self._completed = False
        self.on_event = self._take if verbose or bar else on_event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, steps: int, K: int) -> None:
        """Start to draw; steps: of the whole run; K: index of the final context."""
        if not (self._verbose or self._bar):
            return
        from rich import progress  # slow to import

        self._K = K
        self._progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            disable=not self._bar,
        )
        self._task = self._progress.add_task(self._label(0), total=steps)
        self._progress.start()

    def _label(self, k: int) -> str:
        return f"context {k}/{self._K}"

    def _take(self, event: Any) -> None:
        if self._inner is not None:
            self._inner(event)
        if self._verbose and event.mastered and not self._completed:
            self._completed = event.k == self._K  # later episodes there report it again
            line = f"step {event.step:,}, {self._label(event.k)}: {event.mastered}"
            self._progress.console.print(line, soft_wrap=True, markup=False, highlight=False)
        last = event.step == self._progress.tasks[self._task].total
        if event.step % BAR_EVERY == 0 or event.episode is not None or last:
            self._progress.update(
                self._task, completed=event.step, description=self._label(event.k)
            )


@dataclass(frozen=True)
class _Call:
    """What training needs of a call of `train`, whatever the agent."""

    env: Source
    curriculum: Curriculum | None
    display: Display
    should_stop: Callable[[], bool]

    def consume(
        self, events: Iterator[RollinStep], state: DeepState | AgentState, steps: int
    ) -> Trained:
        """Take the algorithm's steps up to the last, or to a stop."""
        self.display.begin(steps, state.progress.K)
        returns: list[float] = []
        for event in events:
            if event.episode is not None:
                returns.append(event.episode.total)
            if self.display.on_event is not None:
                self.display.on_event(event)
            if event.step == steps or (event.episode_end and self.should_stop()):
                break
        return _trained(state, returns, finished=state.step == steps)

    def run(
        self,
        config: Config,
        out: str | Path,
        begin: Callable[[RunSpec[Config], RunDirectory], RollinRun | AgentRun],
    ) -> Trained:
        """Train in a run directory, up to the end or to a stop."""
        if isinstance(self.env, gymnasium.Env):
            raise RollinError(
                "With `out`, env must be a function that makes the environment, or a task's name: "
                "evaluations in between need an environment of their own."
            )
        out = Path(out)
        name = plain_name(self.env) if isinstance(self.env, str) else _name(self.env)
        run = begin(RunSpec(name, config), RunDirectory(out))
        self.display.begin(config.steps, run.state.progress.K)
        finished = execute(run, "rollin.train(…)", should_stop=self.should_stop)
        returns = read_metrics(out / "episodes.csv")["return"]
        if not finished:
            return _trained(run.state, returns, finished=False)
        result = run.directory.result()
        return Trained(
            run.learned() if isinstance(run, AgentRun) else Policy.load(out),
            result["kappa"],
            result["k"],
            result["K"],
            [Advance(**advance) for advance in result["advances"]],
            Advance(**result["completed"]) if result["completed"] else None,
            returns,
        )

    def train_agent(self, agent: Any, options: dict[str, Any], out: str | Path | None) -> Trained:
        """Train the user's own agent, in a run directory or without."""
        is_maker = callable(agent) and not hasattr(agent, "act")
        named = _name(agent) if is_maker else type(agent).__name__
        preset = AgentConfig(agent=named)
        config = configured(preset, options, "rollin.train with agent", OWN_NAMES)
        if out is not None:
            return self.run(
                config,
                out,
                lambda spec, directory: AgentRun(
                    spec, directory, self.env, agent, self.curriculum, self.display.on_event
                ),
            )
        env = make_raw(self.env, config.horizon, config.env_options)
        try:
            handle = ContextHandle(env)
            curriculum = walked_by(handle, self.curriculum)
            successes = examine(handle, curriculum, deterministic=False, relabel=False)
            learner = made_agent(agent, env, config.seed)
            state = AgentState.begin(
                handle, curriculum, config.algorithm, learner, config.seed, successes=successes
            )
            return self.consume(train_agent(state), state, config.steps)
        finally:
            if not isinstance(self.env, gymnasium.Env):
                env.close()


def _trained(state: DeepState | AgentState, returns: list[float], *, finished: bool) -> Trained:
    progress = state.progress
    return Trained(
        state.agent if isinstance(state, AgentState) else Policy.of(trained_policy(state)),
        progress.kappa,
        progress.k,
        progress.K,
        list(progress.advances),
        progress.completed,
        returns,
        finished,
    )
