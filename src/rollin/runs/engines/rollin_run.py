"""A run of ROLLIN on a contextual environment: its parts, its rows of metrics, its result."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import Progress
from rollin.deep.evaluate import (
    EVALUATION_SEED,
    Act,
    Evaluation,
    evaluate_context,
    evaluate_end,
    mode_of,
)
from rollin.deep.rollin_sac import Episode, RollinStep, train_rollin
from rollin.deep.state import DeepState
from rollin.envs.box_env import innermost
from rollin.envs.context_env import ContextEnv
from rollin.errors import RollinError
from rollin.policy import Float, Policy
from rollin.runs.checkpoint import check_streams
from rollin.runs.curricula import (
    Examined,
    check_for_run,
    curriculum_dict,
    curriculum_of,
    env_of,
    of_environment,
    teacher_of,
)
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.deep import good_state, replay_rows, trained_policy
from rollin.runs.engines.rollin_options import (
    SOLVED,
    VISITED,
    WALK,
    RollinConfig,
    metrics_of,
)
from rollin.runs.engines.rollin_stall import Remedies, stall
from rollin.runs.files import as_dataclass, write_atomically
from rollin.runs.metrics import MetricsWriter, Visits, cell_size, read_metrics
from rollin.runs.spec import RunSpec
from rollin.sac.learner import UpdateInfo

REPLAY = "replay.f32"
GOALS = "goals.csv"
DRAWN = "drawn_"  # before the columns of goals.csv that are of drawn actions
EPISODE_COLUMNS = ("step", "k", "return", "length", "success", "rollin", "rollin_steps")
EVERY = 500_000  # steps between two milestones: the paper reads at 0.5M, 1M and 3M
KAPPAS = ("kappa", "kappa_mean")

Episodes = Mapping[str, Sequence[float]]
"""Columns of an episodes.csv."""


@dataclass
class RollinCounters:
    """Sums over the run so far, and over the episodes since the last row of metrics."""

    rollin_episodes: int = 0
    rollin_steps: int = 0
    updates_exp: int = 0
    since: int = 0
    returns: float = 0.0
    lengths: int = 0
    successes: int = 0
    rollins: int = 0
    rollin_lengths: int = 0
    measured: tuple[float, ...] = ()


class RollinRun(Driver[RollinConfig]):
    """One run: environment, curriculum, agents and buffers, counters.

    make, curriculum: how its environments are made and what it walks, if the spec's task does not
    say it; on_event: called after every step.
    """

    files = (REPLAY,)
    goals: Sequence[Any] = ()
    _examined = Examined(None, successes=False)
    _visits: Visits | None = None

    def __init__(
        self,
        spec: RunSpec[RollinConfig],
        directory: RunDirectory,
        make: Callable[[], ContextEnv] | None = None,
        curriculum: Curriculum | None = None,
        on_event: Callable[[RollinStep], None] | None = None,
    ) -> None:
        super().__init__(spec, directory)
        self._on_event = on_event
        with ExitStack() as on_error:
            make = make or partial(env_of, spec)
            self.env = make()
            on_error.callback(self.env.close)
            self.test_env = make()
            on_error.callback(self.test_env.close)
            self._set_up(curriculum)
            on_error.pop_all()

    def _set_up(self, curriculum: Curriculum | None) -> None:
        config, directory = self.config, self.directory
        if innermost(self.env.env) is innermost(self.test_env.env):
            raise RollinError(
                f"{self.spec.task} gives the same environment at every call: evaluations would "
                "disturb training. It must make a new one each time."
            )
        self.curriculum = curriculum_of(self.env, config, curriculum)
        self._examined = check_for_run(self.test_env, config, self.curriculum)
        self.state = DeepState.begin(
            self.env,
            self.curriculum,
            config.algorithm,
            config.sac,
            seed=config.seed,
            capacity=replay_rows(config),
            learner=config.learner,
            replay_path=directory.path / REPLAY,
            teacher=teacher_of(self.env, config, self.curriculum, self._examined),
        )
        self._set_up_goals()
        places = self.env.context_size == self.env.outcome_size == 2
        if places and cell_size(self.curriculum.contexts):
            self._visits = Visits(self.curriculum.contexts)
        nothing = UpdateInfo(0.0, 0.0, 0.0, 0.0, config.sac.initial_temperature)
        self.last_updates = {"main": nothing, "exp": nothing}
        self._declare(self.env.measures)

    def _declare(self, measures: Sequence[str]) -> None:
        """Prepare what is measured between two rows of metrics, and episodes.csv."""
        self.counters = RollinCounters(measured=(0.0,) * len(measures))
        self.evaluated = self.evaluated_final = Evaluation([], [])
        self.goals_solved = (math.nan, math.nan)
        self._means: dict[str, float | None] = {}
        self._episodes: deque[tuple[float, ...]] = deque()  # of the last steps
        self.episodes = MetricsWriter(
            self.directory.path / "episodes.csv", (*EPISODE_COLUMNS, *measures)
        )
        self.writers["episodes"] = self.episodes
        metrics = metrics_of(measures)
        if self.config.algorithm.method == "scratch":  # which is at the final context by definition
            metrics = [replace(m, result=m.result and m.name not in KAPPAS) for m in metrics]
        self.declare(metrics)

    def _set_up_goals(self) -> None:
        """Choose the goals that are evaluated, at equal distances of the path."""
        path, count = self.curriculum.path, self.config.goals
        if not count:
            return
        if path is None:
            self.goals = list(self.curriculum.contexts[1:])
        else:
            self.goals = [np.ravel(path((i + 1) / count)) for i in range(count)]
        columns = goal_columns(len(self.goals))
        self.writers["goals"] = MetricsWriter(self.directory.path / GOALS, columns)

    @property
    def step(self) -> int:
        """Environment steps so far."""
        return self.state.step

    @property
    def progress(self) -> Progress:
        """The place on the curriculum."""
        return self.state.progress

    @property
    def updates(self) -> int:
        """Updates of the main agent so far."""
        return self.state.main.count

    @property
    def costs(self) -> dict[str, int]:
        """Environment steps, those of roll-ins, and updates of both agents."""
        return {
            "env_steps": self.step,
            "rollin_steps": self.counters.rollin_steps,
            "updates": self.updates + self.counters.updates_exp,
        }

    def outcome(self) -> dict[str, Any]:
        """Return how far the run has come, with its curriculum."""
        return super().outcome() | {"curriculum": curriculum_dict(self.curriculum)}

    def row_due(self) -> bool:
        """Whether metrics.csv gets a row: also at each half a million steps of the full length."""
        every = EVERY * self._scale
        return super().row_due() or self.step == round(round(self.step / every) * every)

    @cached_property
    def _scale(self) -> float:
        """The share of its full length that the run has."""
        return self.directory.config.scale

    def fingerprint(self) -> str:
        """Of the environment's spaces and of the curriculum."""
        return of_environment(self.env, self.curriculum)

    def beside(self) -> dict[str, Any]:
        """The curriculum that the options stand for."""
        return {"curriculum": curriculum_dict(self.curriculum)}

    def events(self) -> Iterator[RollinStep]:
        """The algorithm's events."""
        return train_rollin(self.state)

    def take(self, event: RollinStep) -> bool:
        """Count a step; checkpoints fall on episode ends."""
        if self._on_event is not None:
            self._on_event(event)
        if event.main is not None:
            self.last_updates["main"] = event.main
        if event.exp is not None:
            self.last_updates["exp"] = event.exp
            self.counters.updates_exp += self.config.sac.updates_per_step
        if event.episode is None:
            return False
        self._count(event.episode)
        return True

    def _count(self, episode: Episode) -> None:
        if self._visits is not None:
            D, hidden = self.state.D, self.config.algorithm.prefix == "hidden"
            rows = min(episode.length - (episode.rollin_steps if hidden else 0), len(D))
            self._visits.take(episode.k, D.outcomes(np.arange(D.total - rows, D.total)))
        counters = self.counters
        counters.since += 1
        counters.returns += episode.total
        counters.lengths += episode.length
        counters.successes += episode.success
        counters.rollins += episode.rollin
        counters.rollin_lengths += episode.rollin_steps
        counters.rollin_episodes += episode.rollin
        counters.rollin_steps += episode.rollin_steps
        counters.measured = tuple(map(add, counters.measured, episode.measured))
        row = (self.step, episode.k, episode.total, episode.length, int(episode.success))
        row += (int(episode.rollin), episode.rollin_steps)
        row += tuple(total / episode.length for total in episode.measured)
        self._episodes.append(row)
        self.episodes.write(dict(zip(self.episodes.columns, row, strict=True)))

    def evaluate(self, context: Any) -> Evaluation:
        """Deterministic episodes of π_main under a context."""
        act = mode_of(self.state.main)
        return evaluate_context(
            self.test_env,
            act,
            context,
            self.config.eval_episodes,
            on_outcome=lambda episode, outcome: self.pause(),
        )

    def measure(self) -> None:
        """Evaluate goals and contexts, and average the last episodes."""
        self.goals_solved = (math.nan, math.nan)
        if self.goals and (self.at_end or self.step % EVERY == 0):
            self._evaluate_goals()
        if self._visits is not None:
            self._visits.write(self.directory.path)
        self.evaluated = self.evaluate(self.state.teacher.here)
        last = self.curriculum.contexts[-1]
        self.evaluated_final = self.evaluated if self.progress.finished else self.evaluate(last)
        while self._episodes and self._episodes[0][0] <= self.step - self.config.last:
            self._episodes.popleft()
        names = enumerate(self.episodes.columns)
        episodes = {name: [row[i] for row in self._episodes] for i, name in names}
        self._means = means_at(self.step, episodes, self.env.measures, self.config.last)

    def recent(self, name: str) -> float:
        """Return a mean over the last steps (`last`); NaN if no episode ended in them."""
        mean = self._means[name]
        return math.nan if mean is None else mean

    def forget(self) -> None:
        """Begin the sums between two rows of metrics again."""
        counters = self.counters
        counters.since = 0
        counters.lengths = 0
        counters.successes = 0
        counters.rollins = 0
        counters.rollin_lengths = 0
        counters.returns = 0.0
        counters.measured = (0.0,) * len(self.env.measures)

    def warmed(self) -> bool:
        """Whether there was a step at which an agent may learn."""
        return self.step >= self.config.sac.first_update(self.config.algorithm.warmup)

    def status(self) -> dict[str, Any]:
        """Where the run stands."""
        progress = self.progress
        window = self.state.window
        threshold = self.state.teacher.threshold
        sign = ">" if getattr(self.config, "teacher", WALK) in (WALK, VISITED) else "≥"
        bar = f"{sign} {threshold:.4g}" if math.isfinite(threshold) else "–"
        scratch = self.config.algorithm.method == "scratch"  # which stands there by definition
        counted = f"{len(window.values)} of {window.size} episodes"
        return {
            "k": progress.k,
            "K": progress.K,
            "kappa": progress.kappa,
            "window_mean": window.mean if window.values else None,
            "window_episodes": len(window.values),
            "threshold": threshold if math.isfinite(threshold) else None,
            "shown": {
                "k": f"{progress.k}/{progress.K}",
                "κ": "–" if scratch else f"{progress.kappa:.3f}",
                "last mastered": "yes" if progress.completed else "no",
                "training mean / threshold": f"{window.mean:.4g} / {bar}"
                if window.full
                else counted,
                "roll-ins": str(self.counters.rollin_episodes),
            },
        }

    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume."""
        state = self.state.get_state()
        for agent in self.state.agents:
            good_state(state[agent], self.step)
        return {
            "rollin": state,
            "counters": asdict(self.counters),
            "seen": {name: asdict(info) for name, info in self.last_updates.items()},
            **({} if self._visits is None else {"visits": self._visits.get_state()}),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""
        rollin = state["rollin"]
        self.counters = as_dataclass(RollinCounters, state["counters"])
        updates = {name: as_dataclass(UpdateInfo, info) for name, info in state["seen"].items()}
        if len(self.counters.measured) != len(self.env.measures) or updates.keys() != {
            "main",
            "exp",
        }:
            raise ValueError("other measures or agents than the run has")
        check_streams(rollin["streams"])
        hidden = self.config.algorithm.prefix == "hidden"
        recorded = rollin["step"] - (self.counters.rollin_steps if hidden else 0)
        if rollin["D"]["total"] != recorded or rollin["progress"]["K"] != self.curriculum.K:
            raise ValueError("a replay or a curriculum of another length")
        self.state.set_state(rollin)
        checked(self.state.progress, jumps=self.state.teacher.adapts)
        self.last_updates = updates
        self._take_episodes()
        if self._visits is not None:
            self._visits.set_state(state["visits"])

    def _take_episodes(self) -> None:
        """Take the last episodes from episodes.csv, which was cut back to the checkpoint."""
        if self.episodes.rows:
            columns = read_metrics(self.episodes.path)
            if tuple(columns) != self.episodes.columns:
                raise ValueError(f"episodes.csv has the columns {', '.join(columns)}")
            self._episodes = deque(zip(*columns.values(), strict=True))

    def warning(self, ended: Mapping[str, Sequence[float]]) -> str | None:
        """Return why the run learned nothing or does not advance; ended: all its episodes."""
        progress = self.state.progress
        if not self.warmed():
            return self._without_update()
        stalled = None
        if progress.completed is None:
            stalled = stall(
                self.state.teacher,
                self.curriculum,
                sum(
                    s for s, k in zip(ended["success"], ended["k"], strict=True) if k == progress.k
                ),
                self._remedies(),
                successes=self._examined.successes,
            )
        return stalled or self._examined.without

    def _without_update(self) -> str:
        """Return why the run learned nothing, and what to do."""
        warmup, every = self.config.algorithm.warmup, self.config.sac.update_every
        if self.step > warmup:
            return (
                f"Nothing was learned: of {self.step:,} steps, none after the first {warmup:,} is "
                f"a multiple of --update-every ({every:,}). Give more --steps, or a smaller "
                "--update-every."
            )
        return (
            f"Nothing was learned: all {self.step:,} steps were random, because --learning-starts "
            f"is {warmup:,}. Give more --steps, or a smaller --learning-starts."
        )

    def _remedies(self) -> Remedies:
        """Options that this run could still use."""
        relabels = self.env.can_relabel and self._examined.without is None
        return Remedies.of(self.config, self.curriculum, relabels=relabels)

    def _evaluate_goals(self) -> None:
        """Write a row of goals.csv: each goal under the policy's mode, and with drawn actions.

        The draws have a generator of their own, which no training step uses.
        """
        policy = Policy.of(trained_policy(self.state))
        size, generator = self.env.observation_size, np.random.default_rng(EVALUATION_SEED)

        def draw(observation: Float) -> Float:
            return policy.squashed(observation[:size], observation[size:], generator)

        actors: tuple[Act, ...] = mode_of(self.state.main), draw
        found = [
            evaluate_end(self.test_env, act, goal, self.pause)
            for act in actors
            for goal in self.goals
        ]
        values = [value for end in found for value in (end.success, end.mean)]
        row = dict(zip(self.writers["goals"].columns, (self.step, *values), strict=True))
        self.writers["goals"].write(row)
        shares = np.array([end.success for end in found]).reshape(2, -1)
        mode, drawn = (shares >= SOLVED).mean(1).tolist()
        self.goals_solved = (mode, drawn)

    def finish(self) -> None:
        """Write the policy and the final quantities; the replay file has then done its duty."""
        if self.config.keep_replay:
            self.state.D.flush()
        policy = save(trained_policy(self.state))
        write_atomically(self.directory.path / "policy.safetensors", policy)
        self.write_result(warning=self.warning(read_metrics(self.episodes.path)))

    def tidy(self) -> None:
        """Delete checkpoint and replay file, unless that is to be kept."""
        super().tidy()
        if not self.config.keep_replay:
            self.state.D.discard()

    def close(self) -> None:
        """Release the environments and the learners' threads."""
        for part in (self.env, self.test_env, self.state):
            part.close()


def goal_columns(count: int) -> tuple[str, ...]:
    """Columns of goals.csv: of each goal the share of episodes that end there, and the return."""
    of_each = [f"{name}_{i + 1}" for i in range(count) for name in ("success", "return")]
    return ("step", *of_each, *(DRAWN + name for name in of_each))


def checked(progress: Progress, *, jumps: bool) -> Progress:
    """A place on a curriculum that there can be; jumps: whether a switch may leave contexts out."""
    ks = [advance.k for advance in progress.advances]
    inside = all(0 <= k <= progress.K for k in ks)
    leads = inside and (ks[-1:] or [progress.k]) == [progress.k]
    if not jumps:
        leads = ks == list(range(progress.k - len(ks) + 1, progress.k + 1))
    if progress.k > progress.K or len(progress.kappas) != progress.K + 1 or not leads:
        how = "" if jumps else " one by one"
        raise RollinError(
            f"its switches must lead to k = {progress.k} of {progress.K}{how}, got {ks}"
        )
    return progress


def means_at(
    step: int, episodes: Episodes, measures: Sequence[str], last: int
) -> dict[str, float | None]:
    """Means of return and measures over the `last` steps before a step; None without an episode.

    A return is an episode's, so its mean is over the episodes that ended in these steps; a measure
    is a step's, so there an episode weighs as much as it is long.
    """
    end = np.array(episodes["step"])
    inside = (end > step - last) & (end <= step)
    length = np.array(episodes["length"])[inside]
    means = {"return": _mean(np.array(episodes["return"])[inside])}
    return means | {name: _mean(np.array(episodes[name])[inside], length) for name in measures}


def _mean(values: NDArray[Any], weights: NDArray[Any] | None = None) -> float | None:
    return float(np.average(values, weights=weights)) if len(values) else None
