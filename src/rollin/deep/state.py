"""All that the practical algorithm keeps from step to step: two agents, D, D_exp, the progress."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rollin.checks import check_warmup
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import Progress
from rollin.curriculum.rules import Window
from rollin.curriculum.teacher import Course
from rollin.curriculum.walk import Walk
from rollin.deep.better import Better
from rollin.deep.options import RollinOptions
from rollin.deep.redraw import Redraw
from rollin.envs.context_env import ContextEnv
from rollin.envs.contextual import check_context
from rollin.errors import RollinError
from rollin.sac.config import SACConfig
from rollin.sac.learner import LearnerName, SACLearner
from rollin.sac.make import make_learner
from rollin.sac.replay import Replay, RowLayout
from rollin.sac.selection import Selection
from rollin.streams import Streams
from rollin.texts import short_repr


@dataclass(repr=False)
class DeepState:
    """Where a run of the practical algorithm stands.

    main, exp: the agents π_main and π_exp; guide: who rolls in, π_main itself unless it is frozen;
    D: all transitions that are recorded; D_exp: those that π_exp collected since the last switch;
    teacher: who says what is learned next; redraw, better: what the options of these names need;
    step, episode: how many so far.
    """

    env: ContextEnv
    curriculum: Curriculum
    options: RollinOptions
    main: SACLearner
    exp: SACLearner
    guide: SACLearner
    D: Replay
    D_exp: Selection
    teacher: Course
    streams: Streams
    redraw: Redraw
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
        teacher: Course | None = None,
    ) -> "DeepState":
        """The beginning of a run: two fresh agents, empty buffers, the first context.

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
        teacher = teacher or Walk(
            curriculum,
            options.rolls_in,
            counted=options.counted,
            scratch=options.method == "scratch",
            need=options.need,
        )
        D_exp = Selection(D)
        redraw, better = Redraw(options.redraw, exp, D_exp), Better(D)
        parts = (main, exp, guide, D, D_exp, teacher, streams, redraw, better)
        return cls(env, curriculum, options, *parts)

    def __repr__(self) -> str:
        return short_repr(
            self, step=self.step, episode=self.episode, k=self.progress.k, K=self.progress.K
        )

    @property
    def progress(self) -> Progress:
        """Where the run stands on its curriculum."""
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
        """What has a state of its own, in the order in which it is put back."""
        names = ["D", "D_exp", "progress", "window", "streams"]
        names += ["teacher"] if self.teacher.adapts else []
        names += [name for name in ("redraw", "better") if getattr(self.options, name)]
        return {**self.agents, **{name: getattr(self, name) for name in names}}

    def freeze_guide(self) -> None:
        """At a switch: a frozen guide becomes π_main as it is now; a current one is π_main."""
        if self.guide is not self.main:
            self.guide.set_state(self.main.get_state())

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on at the end of an episode, by part."""
        parts = {name: part.get_state() for name, part in self._parts.items()}
        return {**parts, "step": self.step, "episode": self.episode}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to a state that `get_state` gave."""
        for name, part in self._parts.items():
            part.set_state(state[name])
        self.step, self.episode = int(state["step"]), int(state["episode"])
        self.teacher.go_on(self.step)

    def close(self) -> None:
        """Release the learners' threads; the environment stays open."""
        for agent in self.agents.values():
            agent.close()


def check_relabelling(env: ContextEnv) -> None:
    """Refuse an env whose outcomes cannot stand for contexts before anything is run."""
    env.require_relabelling()
    outcomes = np.zeros((2, env.outcome_size), np.float32)
    contexts = env.to_context(outcomes).shape
    if contexts != (2, env.context_size):
        raise RollinError(
            f"Relabelling needs contexts of shape {(2, env.context_size)} from outcomes of shape "
            f"{outcomes.shape}, got {contexts}: say which context an outcome fulfils, by a method "
            "to_context(outcome) of the env, or by to_context=… where rollin.Contextual is made."
        )
