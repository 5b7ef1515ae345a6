"""Our two learners in our plain SAC loop."""

from typing import Literal

import numpy as np

from benchmarks.peers.sac.case import WARMUP, Case, make
from rollin.deep.plain_sac import train_sac
from rollin.envs.box_env import BoxEnv
from rollin.sac import make_learner
from rollin.sac.config import LearnerName, SACConfig
from rollin.sac.replay import Replay, RowLayout
from rollin.streams import Streams


class Rollin:
    """A learner by name."""

    libraries = ("rollin", "numpy", "numba", "llvmlite")
    learner_name: LearnerName
    precision: Literal["float32", "bfloat16"] = "float32"

    def __init__(self, case: Case) -> None:
        env = BoxEnv(make(case.env))
        streams = Streams(0)
        sizes = env.observation_size, env.action_size
        config = SACConfig(
            hidden=case.hidden, batch=case.batch, threads=case.threads, precision=self.precision
        )
        self.learner = make_learner(self.learner_name, *sizes, config, streams)
        self.replay = Replay(RowLayout(*sizes), 1_000_000)
        self.events = train_sac(env, self.learner, self.replay, streams, warmup=WARMUP)
        for _ in range(WARMUP):
            next(self.events)
        self.case, self.stream = case, streams["replay"]
        self.batch = np.empty((case.batch, self.replay.layout.batch_width), np.float32)

    def steps(self, count: int) -> None:
        """So many training steps."""
        for _ in range(count):
            next(self.events)

    def updates(self, count: int) -> None:
        """So many updates."""
        for _ in range(count):
            picked = self.replay.draw(self.case.batch, self.stream)
            self.learner.update(self.replay.gather(picked, self.batch))


class RollinCpu(Rollin):
    """The compiled learner."""

    learner_name = "cpu"


class RollinCpuBfloat16(RollinCpu):
    """The compiled learner with bfloat16 products."""

    precision = "bfloat16"


class RollinJax(Rollin):
    """The JAX learner."""

    libraries = ("rollin", "numpy", "jax")
    learner_name = "jax"
