"""Our learner as a pupil of `learn.py`, with its defaults."""

from typing import Any

from benchmarks.peers.sac.case import make
from benchmarks.peers.sac.learn import Trial
from rollin.deep.plain_sac import train_sac
from rollin.envs.box_env import BoxEnv
from rollin.sac import make_learner
from rollin.sac.config import SACConfig
from rollin.sac.replay import Replay, RowLayout
from rollin.streams import Streams


class Rollin:
    """The compiled learner."""

    libraries = ("rollin", "numpy", "numba", "llvmlite")

    def __init__(self, trial: Trial) -> None:
        env, streams = BoxEnv(make(trial.env)), Streams(trial.seed)
        sizes = env.observation_size, env.action_size
        self.learner = make_learner("cpu", *sizes, SACConfig(), streams)
        replay = Replay(RowLayout(*sizes), 1_000_000)
        self.events = train_sac(env, self.learner, replay, streams, warmup=trial.warmup)

    def steps(self, count: int) -> None:
        """So many training steps."""
        for _ in range(count):
            next(self.events)

    def act(self, observation: Any) -> Any:
        """The deterministic action."""
        return self.learner.act(observation, deterministic=True)
