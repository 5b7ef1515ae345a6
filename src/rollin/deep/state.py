"""State of the practical algorithm from step to step: two agents, D, D_exp, the progress.

Options add Go-Explore's noise, and batches of better episodes.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from rollin.checks import check_warmup
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import Progress, Window
from rollin.curriculum.sequential import SequentialTeacher
from rollin.curriculum.teacher import CurriculumTeacher
from rollin.deep.options import RollinOptions
from rollin.envs.context_env import ContextEnv
from rollin.envs.contextual import check_context
from rollin.errors import RollinError, short_repr
from rollin.sac import make_learner
from rollin.sac.config import LearnerName, SACConfig
from rollin.sac.learner import Float, SACLearner
from rollin.sac.replay import Replay, RowLayout, Rows, Selection
from rollin.streams import Streams

MOST = 100  # better episodes that are kept


class GoExplore:
    """The noise of one run; a scale of 0 does nothing.

    While ω_k is learned, from the first outcome that fulfils ω_{k-1} to the end of the episode, the
    action of either agent becomes a + scale · N(0, I), clipped to the box (section on goal
    reaching).
    """

    def __init__(self, scale: float, env: ContextEnv, streams: Streams) -> None:
        self.scale = scale
        self._env = env
        self._streams = streams
        self._previous: Float | None = None
        self._reached = False

    def begin(self, previous: Float | None) -> None:
        """Begin an episode; `previous` is ω_{k-1}, None on the first context."""
        self._previous = previous
        self._reached = False

    def __call__(self, action: Float, outcome: Float) -> Float:
        """Return the action to take after this outcome."""
        if self.scale == 0 or self._previous is None:
            return action
        self._reached = self._reached or self._env.is_success(outcome, self._previous)
        if not self._reached:
            return action
        noise = self._streams["go-explore"].standard_normal(len(action), np.float32)
        return np.clip(action + np.float32(self.scale) * noise, -1, 1).astype(np.float32)


class Better:
    """Episodes under ω_k whose return lies above the mean of all of them so far (our extension).

    A share of every batch can be drawn from them, because a uniform batch holds few rare rewards.

    >>> import numpy as np
    >>> import rollin
    >>> D = rollin.Replay(rollin.RowLayout(observation=1, action=1), capacity=9)
    >>> better = Better(D)
    >>> for t in range(6):
    ...     D.append([t], [0.0], 0.0, [t + 1], terminated=False, truncated=t % 3 == 2)
    ...     if t % 3 == 2:
    ...         better.take(rows=3, total=float(t))
    >>> sorted(set(better.draw(50, np.random.default_rng(0)).tolist()))
    [3, 4, 5]
    """

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self._begin: list[int] = []
        self._rows: list[int] = []
        self._totals: list[float] = []
        self._pool = np.empty((2, 0), np.int64)

    def take(self, rows: int, total: float) -> None:
        """Keep the episode that just ended, whose last row is the replay's newest."""
        if rows:
            self._begin.append(self.replay.total - rows)
            self._rows.append(rows)
            self._totals.append(total)
        self._choose()

    def _choose(self) -> None:
        """Choose the last ones above the mean whose rows are all still held."""
        totals = np.array(self._totals)
        begin = np.array(self._begin, np.int64)
        held = begin >= self.replay.total - self.replay.capacity
        mean = totals.mean() if len(totals) else 0.0
        above = np.flatnonzero((totals > mean) & held)[-MOST:]
        self._pool = np.array([begin[above], np.array(self._rows, np.int64)[above]], np.int64)

    def __len__(self) -> int:
        """Episodes to draw from; the replay drops their rows as it takes in new ones."""
        oldest = self.replay.total - self.replay.capacity
        if self._pool.shape[1] and self._pool[0, 0] < oldest:
            self._choose()
        return self._pool.shape[1]

    def clear(self) -> None:
        """Forget all, for a new context."""
        self._begin.clear()
        self._rows.clear()
        self._totals.clear()
        self._pool = np.empty((2, 0), np.int64)

    def draw(self, size: int, generator: Generator) -> Rows:
        """Return numbers of `size` random rows: an episode each, and a row of it."""
        picked = self._pool[:, generator.integers(len(self), size=size)]
        return picked[0] + (generator.random(size) * picked[1]).astype(np.int64)

    def get_state(self) -> dict[str, Any]:
        """Return first row, number of rows and return of every episode under ω_k."""
        return {
            "begin": np.array(self._begin, np.int64),
            "rows": np.array(self._rows, np.int64),
            "totals": np.array(self._totals, np.float64),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state; the replay must be restored before."""
        begin, rows, totals = (np.asarray(state[n]) for n in ("begin", "rows", "totals"))
        shapes = {begin.shape, rows.shape, totals.shape}
        if len(shapes) > 1 or begin.ndim != 1 or not np.isfinite(totals).all():
            raise RollinError("The better episodes of a checkpoint are damaged.")
        if len(begin) and not (
            begin.min() >= 0 and rows.min() > 0 and (begin + rows).max() <= self.replay.total
        ):
            raise RollinError("The better episodes of a checkpoint belong to another replay.")
        self._begin = begin.tolist()
        self._rows = rows.tolist()
        self._totals = totals.tolist()
        self._choose()


@dataclass(repr=False)
class DeepState:
    """The state of a run of the practical algorithm.

    main, exp: the agents π_main and π_exp; guide: who rolls in, π_main itself unless it is frozen;
    D: all transitions that are recorded; D_exp: those that π_exp collected since the last switch;
    teacher: decides what is learned next; better: episodes above the mean return under ω_k; step,
    episode: how many so far.
    """

    env: ContextEnv
    curriculum: Curriculum
    options: RollinOptions
    main: SACLearner
    exp: SACLearner
    guide: SACLearner
    D: Replay
    D_exp: Selection
    teacher: CurriculumTeacher
    streams: Streams
    better: Better
    step: int = 0
    episode: int = 0

    @classmethod
    def begin(
        cls,
        env: ContextEnv,
        curriculum: Curriculum,
        options: RollinOptions,
        sac: SACConfig,
        *,
        seed: int,
        capacity: int,
        learner: LearnerName = "cpu",
        replay_path: Path | None = None,
        teacher: CurriculumTeacher | None = None,
    ) -> "DeepState":
        """Return the beginning of a run: two fresh agents, empty buffers, the first context.

        capacity: transitions that D holds; replay_path: a file that keeps them all; teacher: the
        curriculum's own rule and list if not given.
        """
        for context in curriculum.contexts:
            check_context(context, env.context_space)
        check_warmup(options.warmup, sac.batch)
        if options.relabel:
            check_relabelling(env)
        streams = Streams(seed)
        sizes = env.observation_size + env.context_size, env.action_size
        main = make_learner(learner, *sizes, sac, streams.under("main"))
        exp = make_learner(learner, *sizes, sac, streams.under("exp"))
        guide = main
        if options.guide == "frozen":  # it only acts: one thread will do
            guide = make_learner(learner, *sizes, replace(sac, threads=1), streams.under("guide"))
            guide.set_state(main.get_state())
        layout = RowLayout(
            env.observation_size, env.action_size, env.context_size, env.outcome_size
        )
        D = Replay(layout, capacity, replay_path)
        teacher = teacher or SequentialTeacher(
            curriculum,
            options.rolls_in,
            counted=options.counted,
            scratch=options.method == "scratch",
        )
        return cls(
            env, curriculum, options, main, exp, guide, D, Selection(D), teacher, streams, Better(D)
        )

    def __repr__(self) -> str:
        return short_repr(
            self, step=self.step, episode=self.episode, k=self.progress.k, K=self.progress.K
        )

    @property
    def progress(self) -> Progress:
        """Progress along the curriculum."""
        return self.teacher.progress

    @property
    def window(self) -> Window:
        """The last episodes under ω_k."""
        return self.teacher.window

    @property
    def agents(self) -> dict[str, SACLearner]:
        """All networks that there are, by name: two agents, and the guide if it is frozen."""
        guide = {} if self.guide is self.main else {"guide": self.guide}
        return {"main": self.main, "exp": self.exp, **guide}

    @property
    def _parts(self) -> dict[str, Any]:
        """Parts with a state of their own, in the order in which it is restored."""
        names = ["D", "D_exp", "progress", "window", "streams"]
        names += ["teacher"] if self.teacher.adapts else []
        names += ["better"] if self.options.better else []
        return {**self.agents, **{name: getattr(self, name) for name in names}}

    def freeze_guide(self) -> None:
        """At a switch: a frozen guide becomes π_main as it is now; a current one is π_main."""
        if self.guide is not self.main:
            self.guide.set_state(self.main.get_state())

    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume at the end of an episode, by part."""
        parts = {name: part.get_state() for name, part in self._parts.items()}
        return {**parts, "step": self.step, "episode": self.episode}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        for name, part in self._parts.items():
            part.set_state(state[name])
        self.step = int(state["step"])
        self.episode = int(state["episode"])
        self.teacher.resume_at(self.step)

    def close(self) -> None:
        """Release the learners' threads; the environment stays open."""
        for agent in self.agents.values():
            agent.close()


def check_relabelling(env: ContextEnv) -> None:
    """Raise if outcomes of an env cannot serve as contexts, or as goals that it draws."""
    env.require_relabelling()
    if env.drawn_goal is not None:
        return
    outcomes = np.zeros((2, env.outcome_size), np.float32)
    contexts = env.to_context(outcomes).shape
    if contexts != (2, env.context_size):
        raise RollinError(
            f"Relabelling needs contexts of shape {(2, env.context_size)} from outcomes of shape "
            f"{outcomes.shape}, got {contexts}: say which context an outcome fulfils, by a method "
            "to_context(outcome) of the env, or by to_context=… where rollin.Contextual is made."
        )
