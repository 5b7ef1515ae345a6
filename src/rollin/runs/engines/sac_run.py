"""A run of plain SAC on a Gymnasium environment: its parts, its rows of metrics, its result."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from safetensors.numpy import save

from rollin.deep.evaluate import evaluate, mode_of
from rollin.deep.plain_sac import SACStep, train_sac
from rollin.envs.box_env import make_env
from rollin.runs.checkpoint import check_streams
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.deep import replay_rows
from rollin.runs.engines.sac_options import SACRunConfig
from rollin.runs.engines.sac_record import SACResult
from rollin.runs.files import write_atomically
from rollin.runs.formats import as_dataclass
from rollin.runs.networks import good_state, policy_tensors
from rollin.runs.spec import RunSpec
from rollin.runs.versions import versions
from rollin.sac.learner import UpdateInfo
from rollin.sac.make import make_learner
from rollin.sac.replay import Replay, RowLayout
from rollin.streams import Streams

COLUMNS = (
    "step",
    "eval_return",
    "eval_return_std",
    "train_return",
    "train_length",
    "episodes",
    "updates",
    "critic_loss",
    "q_mean",
    "actor_loss",
    "entropy",
    "temperature",
)
REPLAY = "replay.f32"


@dataclass
class Counters:
    """Where the run stands, and sums over the episodes since the last row of metrics."""

    step: int = 0
    episodes: int = 0
    returns: float = 0.0
    lengths: int = 0
    since: int = 0
    last_return: float = 0.0
    last_length: int = 0
    eval_return: float = 0.0


class SACRun(Driver[SACRunConfig]):
    """One run: environment, learner, replay, streams and counters."""

    columns = COLUMNS
    files = (REPLAY,)

    def __init__(self, spec: RunSpec[SACRunConfig], directory: RunDirectory) -> None:
        super().__init__(spec, directory)
        config = self.config
        self.counters = Counters()
        self.streams = Streams(config.seed)
        self.env, self.test_env = make_env(spec.task), make_env(spec.task)
        sizes = self.env.observation_size, self.env.action_size
        self.learner = make_learner(config.learner, *sizes, config.sac, self.streams)
        self.replay = Replay(RowLayout(*sizes), replay_rows(config), directory.path / REPLAY)
        self._seen = UpdateInfo(0.0, 0.0, 0.0, 0.0, config.sac.initial_temperature)

    @property
    def step(self) -> int:
        """Environment steps so far."""
        return self.counters.step

    def fingerprint(self) -> str:
        """Of the environment's spaces."""
        return f"{self.env.observation_size} observed, {self.env.action_size} acted"

    def events(self) -> Iterator[SACStep]:
        """The algorithm's events."""
        config = self.config
        return train_sac(
            self.env,
            self.learner,
            self.replay,
            self.streams,
            warmup=config.warmup,
            p=config.p if config.sampling == "geometric" else None,
            step=self.counters.step,
        )

    def take(self, event: SACStep) -> bool:
        """Count a step; checkpoints fall on episode ends."""
        counters = self.counters
        counters.step = event.step
        counters.last_return += event.reward
        counters.last_length += 1
        if event.update is not None:
            self._seen = event.update
        if event.episode_end:
            counters.episodes += 1
            counters.since += 1
            counters.returns += counters.last_return
            counters.lengths += counters.last_length
            counters.last_return, counters.last_length = 0.0, 0
        return event.episode_end

    def row(self) -> dict[str, Any]:
        """An evaluation, and what was counted since the last row."""
        counters = self.counters
        act, episodes = mode_of(self.learner), self.config.eval_episodes
        found = evaluate(self.test_env, act, episodes, self.pause)
        counters.eval_return = found.mean
        episodes = max(counters.since, 1)
        row = {
            "step": counters.step,
            "eval_return": counters.eval_return,
            "eval_return_std": float(np.std(found.returns)),
            "train_return": counters.returns / episodes,
            "train_length": counters.lengths / episodes,
            "episodes": counters.episodes,
            "updates": self.learner.count,
            **asdict(self._seen),
        }
        counters.returns, counters.lengths, counters.since = 0.0, 0, 0
        return row

    def status(self) -> dict[str, Any]:
        """Where the run stands."""
        return {
            "episodes": self.counters.episodes,
            "eval_return": self.counters.eval_return,
            "shown": {
                "evaluated return": f"{self.counters.eval_return:.1f}"
                if self.metrics.rows
                else "–",
                "entropy": f"{self._seen.entropy:.2f}",
                "temperature": f"{self._seen.temperature:.3f}",
            },
        }

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        return {
            "learner": good_state(self.learner.get_state(), self.step),
            "streams": self.streams.get_state(),
            "replay": self.replay.get_state(),
            "counters": asdict(self.counters),
            "seen": asdict(self._seen),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""
        self.counters = as_dataclass(Counters, state["counters"])
        self._seen = as_dataclass(UpdateInfo, state["seen"])
        check_streams(state["streams"])
        if state["replay"]["total"] != self.counters.step:
            raise ValueError(f"a replay of {state['replay']['total']} steps")
        for name in ("learner", "streams", "replay"):
            getattr(self, name).set_state(state[name])

    def check_result(self) -> None:
        """Refuse a result of another form, and files that are not those it was written with."""
        super().check_result()
        self.directory.read_result(SACResult)

    def finish(self) -> None:
        """Write the networks and the final quantities; the replay file has then done its duty."""
        if self.config.keep_replay:
            self.replay.flush()
        theta = good_state(self.learner.get_state(), self.step)["theta"]
        layout, sac = self.learner.layout, self.config.sac
        policy = policy_tensors(layout, sac, theta, self.env.actions)
        write_atomically(self.directory.path / "policy.safetensors", save(policy))
        self.directory.write_result(
            {
                "eval_return": self.counters.eval_return,
                "env_steps": self.step,
                "episodes": self.counters.episodes,
                "updates": self.learner.count,
                "seconds": round(self.seconds, 3),
                "spec_hash": self.spec.hash,
                "versions": versions(),
            }
        )

    def tidy(self) -> None:
        """Delete checkpoint and replay file, unless that is to be kept."""
        super().tidy()
        if not self.config.keep_replay:
            self.replay.discard()

    def close(self) -> None:
        """Release the environments and the learner's threads."""
        for part in (self.env, self.test_env, self.learner):
            part.close()
