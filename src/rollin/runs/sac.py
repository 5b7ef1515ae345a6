"""Drives plain SAC on a Gymnasium environment: logs, evaluates, checkpoints at episode ends."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from safetensors.numpy import save

from rollin.deep.sac import Event, evaluate, train_sac
from rollin.envs.box import make_env
from rollin.errors import RollinError
from rollin.runs.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from rollin.runs.driver import Driver, Pace
from rollin.runs.files import write_atomically
from rollin.runs.loggers import TensorBoardLogger
from rollin.runs.spec import RunSpec, SACRunConfig
from rollin.runs.store import RunDirectory
from rollin.runs.versions import versions
from rollin.sac.learner import UpdateInfo, make_learner
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
    seconds: float = 0.0
    returns: float = 0.0
    lengths: int = 0
    since: int = 0
    last_return: float = 0.0
    last_length: int = 0
    eval_return: float = 0.0


class SACRun(Driver[SACRunConfig]):
    """One run: environment, learner, replay, streams and counters."""

    columns = COLUMNS

    def __init__(self, spec: RunSpec[SACRunConfig], directory: RunDirectory) -> None:
        super().__init__(spec, directory)
        config = self.config
        self.counters = Counters()
        self.streams = Streams(config.seed)
        self.env, self.test_env = make_env(spec.task), make_env(spec.task)
        sizes = self.env.observation_size, self.env.action_size
        self.learner = make_learner(config.learner, *sizes, config.sac, self.streams)
        capacity = min(config.capacity or config.steps, config.steps)
        self.replay = Replay(RowLayout(*sizes), capacity, directory.path / REPLAY)
        self._seen = UpdateInfo(0.0, 0.0, 0.0, 0.0, config.sac.initial_temperature)

    @property
    def step(self) -> int:
        """Environment steps so far."""
        return self.counters.step

    def fingerprint(self) -> str:
        """Of the environment's spaces."""
        return f"{self.env.observation_size} observed, {self.env.action_size} acted"

    def loop(self, board: TensorBoardLogger, pace: Pace) -> bool:
        """Consume the algorithm's events; checkpoints and stops fall on episode ends."""
        config, counters = self.config, self.counters
        spent_before = counters.seconds
        events = train_sac(
            self.env,
            self.learner,
            self.replay,
            self.streams,
            warmup=config.warmup,
            p=config.p if config.sampling == "geometric" else None,
            step=counters.step,
        )
        save_soon = False
        while counters.step < config.steps:
            event = next(events)
            self._count(event)
            if event.step % config.log_every == 0 or event.step == config.steps:
                self.log(self._row(), board)
            counters.seconds = spent_before + pace.tick(event.step)
            if pace.status_due():
                self.report(pace)
            save_soon = save_soon or pace.stopped or pace.checkpoint_due()
            if save_soon and event.episode_end:
                self._checkpoint()
                save_soon = False
                if pace.stopped:
                    return False
        return True

    def _count(self, event: Event) -> None:
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

    def _row(self) -> dict[str, Any]:
        counters = self.counters
        returns = evaluate(self.test_env, self.learner, self.config.eval_episodes)
        counters.eval_return = float(np.mean(returns))
        episodes = max(counters.since, 1)
        row = {
            "step": counters.step,
            "eval_return": counters.eval_return,
            "eval_return_std": float(np.std(returns)),
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
            "figures": {
                "return": f"{self.counters.eval_return:.1f}" if self.metrics.rows else "–",
                "entropy": f"{self._seen.entropy:.2f}",
                "temperature": f"{self._seen.temperature:.3f}",
            },
        }

    def _checkpoint(self) -> None:
        self.metrics.flush()
        learner = self._good_state()
        arrays = {f"learner.{n}": a for n, a in learner.items() if isinstance(a, np.ndarray)}
        arrays |= {f"streams.{n}": a for n, a in self.streams.get_state().items()}
        values = {
            "updates": learner["count"],
            "replay": self.replay.get_state(),
            "metrics": self.metrics.get_state(),
            "counters": asdict(self.counters),
            "seen": asdict(self._seen),
        }
        saved = Checkpoint(self.step, self.spec.hash, arrays, values)
        write_checkpoint(self.directory.checkpoint, saved)

    def _good_state(self) -> dict[str, Any]:
        """The learner's state, if it is one to keep."""
        state = self.learner.get_state()
        if not all(np.isfinite(state[name]).all() for name in ("theta", "m", "v", "target")):
            raise RollinError(
                f"The learner's parameters are no longer finite at step {self.step}: it diverged. "
                "The last good checkpoint is kept; a smaller --learning-rate may help."
            )
        return state

    def restore(self) -> None:
        """Go back to the last checkpoint, or to the beginning if there is none."""
        saved = read_checkpoint(self.directory.checkpoint, self.spec.hash)
        if saved is None:
            self.metrics.set_state({"rows": 0})
            return
        arrays, values = saved.arrays, saved.values
        parts: dict[str, dict[str, Any]] = {"learner": {}, "streams": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = array
        self.learner.set_state({**parts["learner"], "count": values["updates"]})
        self.streams.set_state(parts["streams"])
        self.replay.set_state(values["replay"])
        self.metrics.set_state(values["metrics"])
        self.counters = Counters(**values["counters"])
        self._seen = UpdateInfo(**values["seen"])

    def finish(self) -> None:
        """Write the networks and the final figures; the replay file has then done its duty."""
        if self.config.keep_replay:
            self.replay.flush()
        layout, state = self.learner.layout, self._good_state()
        tables = {"actor": layout.actor, "critic1": layout.critics[0], "critic2": layout.critics[1]}
        tensors = {
            f"{network}.{i}": layer
            for network, table in tables.items()
            for i, layer in enumerate(layout.layers(state["theta"], table))
        }
        write_atomically(self.directory.path / "policy.safetensors", save(tensors))
        self.directory.write_result(
            {
                "eval_return": self.counters.eval_return,
                "env_steps": self.step,
                "episodes": self.counters.episodes,
                "updates": self.learner.count,
                "seconds": round(self.counters.seconds, 3),
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
