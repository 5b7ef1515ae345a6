"""All that the practical algorithm keeps from step to step: two agents, D, D_exp, the progress."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollin.checks import check_warmup
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import Progress
from rollin.curriculum.rules import Window
from rollin.deep.options import RollinOptions
from rollin.envs.context_env import ContextEnv
from rollin.envs.contextual import check_context
from rollin.errors import RollinError
from rollin.sac.config import SACConfig
from rollin.sac.learner import LearnerName, SACLearner
from rollin.sac.make import make_learner
from rollin.sac.replay import Replay, RowLayout
from rollin.sac.selection import Selection
from rollin.streams import Streams


@dataclass
class DeepState:
    """Where a run of the practical algorithm stands.

    main, exp: the agents π_main and π_exp; D: all transitions; D_exp: those that π_exp collected
    since the last switch; window: the last episodes under ω_k; step, episode: how many so far.
    """

    env: ContextEnv
    curriculum: Curriculum
    options: RollinOptions
    main: SACLearner
    exp: SACLearner
    D: Replay
    D_exp: Selection
    progress: Progress
    window: Window
    streams: Streams
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
    ) -> "DeepState":
        """The beginning of a run: two fresh agents, empty buffers, the first context.

        capacity: transitions that D holds; replay_path: a file that keeps them all.
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
        layout = RowLayout(
            env.observation_size, env.action_size, env.context_size, env.outcome_size
        )
        D = Replay(layout, capacity, replay_path)
        progress = curriculum.progress(scratch=options.method == "scratch")
        window = Window(curriculum.episodes)
        return cls(env, curriculum, options, main, exp, D, Selection(D), progress, window, streams)

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on at the end of an episode, by part."""
        return {
            "main": self.main.get_state(),
            "exp": self.exp.get_state(),
            "D": self.D.get_state(),
            "D_exp": self.D_exp.get_state(),
            "progress": self.progress.get_state(),
            "window": self.window.get_state(),
            "streams": self.streams.get_state(),
            "step": self.step,
            "episode": self.episode,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to a state that `get_state` gave."""
        for name in ("main", "exp", "D", "D_exp", "progress", "window", "streams"):
            getattr(self, name).set_state(state[name])
        self.step, self.episode = int(state["step"]), int(state["episode"])

    def close(self) -> None:
        """Release the learners' threads; the environment stays open."""
        self.main.close()
        self.exp.close()


def check_relabelling(env: ContextEnv) -> None:
    """Refuse an env whose outcomes cannot stand for contexts before anything is run."""
    env.require_relabelling()
    outcomes = np.zeros((2, env.outcome_size), np.float32)
    contexts = env.to_context(outcomes).shape
    if contexts != (2, env.context_size):
        raise RollinError(
            f"Relabelling needs contexts of shape {(2, env.context_size)} from outcomes of shape "
            f"{outcomes.shape}, got {contexts}: give the env a method to_context(outcome)."
        )
