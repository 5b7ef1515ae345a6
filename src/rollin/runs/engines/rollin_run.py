"""A run of ROLLIN on a contextual environment: its parts, its rows of metrics, its result."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from operator import add
from typing import Any

import numpy as np
from safetensors.numpy import save

from rollin.arrays import Float
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import Advance
from rollin.curriculum.teachers.sampling import SamplingTeacher
from rollin.deep.evaluate import (
    EVALUATION_SEED,
    Act,
    Evaluation,
    evaluate_context,
    evaluate_end,
    mode_of,
)
from rollin.deep.practical import Episode, RollinStep, train_rollin
from rollin.deep.state import DeepState
from rollin.envs.box_env import innermost
from rollin.envs.context_env import ContextEnv
from rollin.errors import RollinError
from rollin.policy import Policy
from rollin.runs.checkpoint import check_streams
from rollin.runs.curricula import Examined, check_for_run, curriculum_of, env_of, teacher_of
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.deep import replay_rows
from rollin.runs.engines.rollin_metrics import COLUMNS, Counters, goal_columns
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.rollin_record import EPISODE_COLUMNS, GOALS, checked, read_result
from rollin.runs.engines.rollin_stall import Remedies, stall
from rollin.runs.engines.rollin_visits import Visits, cell_size
from rollin.runs.files import write_atomically
from rollin.runs.fingerprint import of_environment, walked
from rollin.runs.formats import as_dataclass
from rollin.runs.networks import good_state, policy_tensors
from rollin.runs.rows import MetricsWriter, read_metrics
from rollin.runs.spec import RunSpec
from rollin.runs.versions import versions
from rollin.runs.windows import EVERY, milestones, quantities_at
from rollin.sac.learner import UpdateInfo

REPLAY = "replay.f32"


class RollinRun(Driver[RollinConfig]):
    """One run: environment, curriculum, agents and buffers, counters.

    make, curriculum: how its environments are made and what it walks, if the spec's task does not
    say it; on_event: called after every step.
    """

    columns = COLUMNS
    files = (REPLAY,)
    _examined = Examined(None, successes=False)
    _goals: Sequence[Any] = ()
    _visits: Visits | None = None
    _reached: Sequence[float] = ()  # per goal, the share of episodes at the last evaluation

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
        self.counters = Counters(measured=self._nothing_measured)
        self.metrics.columns += tuple(f"train_{name}" for name in self.env.measures)
        columns = (*EPISODE_COLUMNS, *self.env.measures)
        self.episodes = MetricsWriter(directory.path / "episodes.csv", columns)
        self.writers["episodes"] = self.episodes
        self._set_up_goals()
        places = self.env.context_size == self.env.outcome_size == 2
        if places and cell_size(self.curriculum.contexts):
            self._visits = Visits(self.curriculum.contexts)
        nothing = UpdateInfo(0.0, 0.0, 0.0, 0.0, config.sac.initial_temperature)
        self._seen = {"main": nothing, "exp": nothing}
        self._evaluated = Evaluation([], []), Evaluation([], [])

    def _set_up_goals(self) -> None:
        """Choose the goals that are evaluated, at equal distances of the path."""
        path, count = self.curriculum.path, self.config.goals
        if not count:
            return
        if path is None:
            self._goals = list(self.curriculum.contexts[1:])
        else:
            self._goals = [np.ravel(path((i + 1) / count)) for i in range(count)]
        columns = goal_columns(len(self._goals))
        self.writers["goals"] = MetricsWriter(self.directory.path / GOALS, columns)

    @property
    def _nothing_measured(self) -> tuple[float, ...]:
        return (0.0,) * len(self.env.measures)

    @property
    def step(self) -> int:
        """Environment steps so far."""
        return self.state.step

    @property
    def advances(self) -> Sequence[Advance]:
        """Switches of context so far."""
        return self.state.progress.advances

    def fingerprint(self) -> str:
        """Of the environment's spaces and of the curriculum."""
        return of_environment(self.env, self.curriculum)

    def beside(self) -> dict[str, Any]:
        """The curriculum that the options stand for."""
        return {"curriculum": walked(self.curriculum)}

    def events(self) -> Iterator[RollinStep]:
        """The algorithm's events."""
        return train_rollin(self.state)

    def take(self, event: RollinStep) -> bool:
        """Count a step; checkpoints fall on episode ends."""
        if self._on_event is not None:
            self._on_event(event)
        if event.main is not None:
            self._seen["main"] = event.main
        if event.exp is not None:
            self._seen["exp"] = event.exp
            self.counters.updates_exp += 1
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

    def row(self) -> dict[str, Any]:
        """Evaluations on the current and the last context, and what was counted."""
        if self._goals and (self.at_end or self.step % EVERY == 0):
            self._evaluate_goals()
        if self._visits is not None:
            self._visits.write(self.directory.path)
        counters, progress, window = self.counters, self.state.progress, self.state.window
        current = self.evaluate(self.state.teacher.here)
        final = current if progress.finished else self.evaluate(self.curriculum.contexts[-1])
        self._evaluated = current, final
        episodes = counters.since or math.nan  # no episode ended: nothing to tell
        rollins = counters.rollins or math.nan
        row = {
            "step": self.step,
            "k": progress.k,
            "kappa": progress.kappa,
            "threshold": self.state.teacher.threshold,
            "window_mean": window.mean,
            "train_return": counters.returns / episodes,
            "train_length": counters.lengths / episodes,
            "train_success": counters.successes / episodes,
            "rollin_fraction": counters.rollins / episodes,
            "rollin_length": counters.rollin_lengths / rollins,
            "eval_return": current.mean,
            "eval_success": current.success,
            "eval_return_final": final.mean,
            "eval_success_final": final.success,
            "episodes": self.state.episode,
            "rollin_episodes": counters.rollin_episodes,
            "updates_main": self.updates(),
            "updates_exp": counters.updates_exp,
            **self.losses(),
        }
        for name, total in zip(self.env.measures, counters.measured, strict=True):
            row[f"train_{name}"] = total / (counters.lengths or math.nan)
        counters.since = counters.lengths = counters.successes = 0
        counters.rollins = counters.rollin_lengths = 0
        counters.returns = 0.0
        counters.measured = self._nothing_measured
        return row

    def losses(self) -> dict[str, Any]:
        """What the last updates of both agents told."""
        main, exp = (asdict(self._seen[name]) for name in ("main", "exp"))
        return {**main, **{f"exp_{name}": value for name, value in exp.items()}}

    def updates(self) -> int:
        """Updates of π_main so far."""
        return self.state.main.count

    def warmed(self) -> bool:
        """Whether the random first steps are over."""
        return self.step > self.config.algorithm.warmup

    def status(self) -> dict[str, Any]:
        """Where the run stands."""
        progress, window = self.state.progress, self.state.window
        threshold = self.state.teacher.threshold
        sign = "≥" if isinstance(self.state.teacher, SamplingTeacher) else ">"
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
        """Everything needed to go on."""
        state = self.state.get_state()
        for agent in self.state.agents:
            good_state(state[agent], self.step)
        return {
            "rollin": state,
            "curriculum": walked(self.curriculum),
            "counters": asdict(self.counters),
            "seen": {name: asdict(info) for name, info in self._seen.items()},
            **({} if self._visits is None else {"visits": self._visits.get_state()}),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""
        rollin = state["rollin"]
        self.counters = as_dataclass(Counters, state["counters"])
        seen = {name: as_dataclass(UpdateInfo, info) for name, info in state["seen"].items()}
        if len(self.counters.measured) != len(self.env.measures) or seen.keys() != {"main", "exp"}:
            raise ValueError("other measures or agents than the run has")
        check_streams(rollin["streams"])
        hidden = self.config.algorithm.prefix == "hidden"
        recorded = rollin["step"] - (self.counters.rollin_steps if hidden else 0)
        if rollin["D"]["total"] != recorded or rollin["progress"]["K"] != self.curriculum.K:
            raise ValueError("a replay or a curriculum of another length")
        self.state.set_state(rollin)
        checked(self.state.progress, jumps=self.state.teacher.adapts)
        self._seen = seen
        if self._visits is not None and "visits" in state:  # older checkpoints have none
            self._visits.set_state(state["visits"])

    def check_result(self) -> None:
        """Refuse a result of another form, and files that are not those it was written with."""
        super().check_result()
        read_result(self.directory)

    def warning(self, ended: Mapping[str, Sequence[float]]) -> str | None:
        """Return why the run learned nothing or does not advance; ended: all its episodes."""
        progress = self.state.progress
        if not self.warmed():
            return (
                f"Nothing was learned: all {self.step:,} steps were random, because --warmup is "
                f"{self.config.algorithm.warmup:,}. Give more --steps, or a smaller --warmup."
            )
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

        def draw(seen: Float) -> Float:
            return policy.squashed(seen[:size], seen[size:], generator)

        actors: tuple[Act, ...] = mode_of(self.state.main), draw
        found = [
            evaluate_end(self.test_env, act, goal, self.pause)
            for act in actors
            for goal in self._goals
        ]
        values = [value for end in found for value in (end.success, end.mean)]
        row = dict(zip(self.writers["goals"].columns, (self.step, *values), strict=True))
        self.writers["goals"].write(row)
        self._reached = [end.success for end in found[: len(self._goals)]]

    def finish(self) -> None:
        """Write the policy and the final quantities; the replay file has then done its duty."""
        if self.config.keep_replay:
            self.state.D.flush()
        policy = save(trained_policy(self.state))
        write_atomically(self.directory.path / "policy.safetensors", policy)
        self.directory.write_result(self.result_values())

    def result_values(self) -> dict[str, Any]:
        """The final quantities, as result.json has them."""
        progress, counters = self.state.progress, self.counters
        current, final = self._evaluated  # of the last row, which is of the last step
        ended = read_metrics(self.episodes.path)
        told = (self.step, progress, ended, self.env.measures, self.config.last)
        return {
            **quantities_at(*told),
            "milestones": milestones(*told),
            "k": progress.k,
            "K": progress.K,
            "env_steps": self.step,
            "episodes": self.state.episode,
            "updates_main": self.updates(),
            "updates_exp": counters.updates_exp,
            "rollin_episodes": counters.rollin_episodes,
            "rollin_steps": counters.rollin_steps,
            "eval_return": current.mean,
            "eval_success": current.success,
            "eval_return_final": final.mean,
            "eval_success_final": final.success,
            "seconds": round(self.seconds, 3),
            "advances": [asdict(advance) for advance in progress.advances],
            "completed": asdict(progress.completed) if progress.completed else None,
            "curriculum": walked(self.curriculum),
            **({"goals": self._reached} if self._goals else {}),
            "warning": self.warning(ended),
            "spec_hash": self.spec.hash,
            "versions": versions(),
        }

    def tidy(self) -> None:
        """Delete checkpoint and replay file, unless that is to be kept."""
        super().tidy()
        if not self.config.keep_replay:
            self.state.D.discard()

    def close(self) -> None:
        """Release the environments and the learners' threads."""
        for part in (self.env, self.test_env, self.state):
            part.close()


def trained_policy(state: DeepState) -> dict[str, Float]:
    """π_main as the tensors of a `rollin.Policy`."""
    main, curriculum, space = state.main, state.curriculum, state.env.context_space
    return policy_tensors(
        main.layout,
        main.config,
        good_state(main.get_state(), state.step)["theta"],
        state.env.actions,
        contexts=curriculum.contexts,
        k=np.array([state.progress.k]),
        context_space=np.stack([space.low, space.high]),
    )
