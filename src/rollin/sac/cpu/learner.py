"""The default learner: hand-derived gradients, compiled, nothing allocated per update."""

import os
import threading
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.errors import RollinError
from rollin.sac.config import SACConfig
from rollin.sac.cpu import gemm, kernels
from rollin.sac.cpu.memory import TEAM, Memory, addresses, allocate, pack
from rollin.sac.cpu.rng import Source, source
from rollin.sac.cpu.simd import PANEL
from rollin.sac.learner import (
    Float,
    Layout,
    UpdateInfo,
    check_batch,
    check_noise,
    check_observation,
    check_state,
    diverged,
    first_state,
)
from rollin.streams import Streams

NOWHERE: Source = (0, 0)  # no random numbers
GRAIN = 1.5e7  # floating-point operations of an update that are worth a thread: about 0.1 ms


class CpuLearner:
    """SAC on a CPU; streams `init`, `act` and `noise` give all its random numbers."""

    def __init__(self, layout: Layout, config: SACConfig, streams: Streams) -> None:
        self.layout = layout
        self.config = config
        self.streams = streams
        self.count = 0
        self._begun = False
        self.threads = min(config.threads, 1 + int(_operations(layout, config.batch) / GRAIN))
        pairs = config.precision == "bfloat16"
        if pairs:
            from rollin.sac.cpu import update_steps_bf16  # few ask for it

            self._update = update_steps_bf16.update_pairs
            self._derive = update_steps_bf16.round_all
        else:
            self._update = kernels.update
            self._derive = kernels.turn_all
        self._packing = pack(layout, pairs)
        self.memory = allocate(
            self._packing, config.batch, config.hidden, gemm.WIDE, self.threads, pairs
        )
        self.memory.settings[:] = (
            config.gamma,
            config.tau,
            config.learning_rate,
            config.entropy_target(layout.action_size),
            config.log_std_min,
            config.log_std_max,
        )
        self._table = addresses(self.memory)  # what all threads work on
        self.batch = self.memory.batch
        self.reset()
        self._helpers = [self._start(rank) for rank in range(1, self.threads)]
        self._process = os.getpid()
        if self._helpers:
            kernels.stop(np.zeros(TEAM, np.int64))  # compiled now, not in the garbage collector
            self._finalizer = weakref.finalize(self, kernels.stop, self.memory.team)

    def _start(self, rank: int) -> threading.Thread:
        """Start a thread that helps with every update; it holds no reference to the learner."""
        # the memory goes along, so that it lives as long as its addresses are in use
        thread = threading.Thread(
            target=_serve,
            args=(self._update, self._table, rank, self.threads, self.memory),
            daemon=True,
        )
        thread.start()
        _keep_off_first_core(thread)
        return thread

    def act(self, observation: NDArray[Any], *, deterministic: bool = False) -> Float:
        """Return an action in (-1, 1)^A for one observation: a draw, or the squashed mean."""
        observation = check_observation(observation, self.layout)
        where = NOWHERE if deterministic else self._source("act")
        action = np.empty(self.layout.action_size, np.float32)
        kernels.act(self._table, observation, *where, action)
        return action

    @property
    def starts_early(self) -> bool:
        """Whether `begin` gives other threads something to do."""
        return bool(self._helpers)

    def begin(self) -> None:
        """Let the other threads start on the next update, from what `batch` holds now."""
        if self._helpers and not self._begun:
            self._require_team()
            self._begun = True
            kernels.begin(self._table)

    def update(self, batch: Float, noise: Float | None = None) -> UpdateInfo:
        """Make one step of critics, targets, actor, temperature; see `SACLearner.update`."""
        if batch is not self.batch:
            self._withdraw()
            check_batch(batch, self.layout, self.config)
            self.batch[:] = batch
        if noise is not None:
            check_noise(noise, self.layout, self.config)
            self.memory.noise[:] = noise
        if self._helpers:
            self._require_team()
        where = NOWHERE if noise is not None else self._source("noise")
        begun, self._begun = self._begun, False
        outcome = self._update(self._table, 0, self.threads, self.count + 1, begun, *where)
        if outcome != kernels.FINE:
            what = "critics'" if outcome == kernels.CRITIC_DIVERGED else "actor's"
            raise diverged(what, self.count + 1)
        self.count += 1
        return UpdateInfo(*self.memory.info.tolist())

    def _source(self, name: str) -> Source:
        """Return where compiled code finds the numbers of a stream."""
        where = source(self.streams[name])
        assert where is not None, "all streams are of one kind"
        return where

    def _withdraw(self) -> None:
        """Undo `begin`, so that no thread reads what is going to be written."""
        if self._begun:
            kernels.withdraw(self._table, self.threads)
            self._begun = False

    def _require_team(self) -> None:
        """Refuse an update that would wait for a missing helper for ever."""
        alive = all(thread.is_alive() for thread in self._helpers)
        if not (alive and self._finalizer.alive and os.getpid() == self._process):
            raise RollinError(
                "The learner's threads have ended (it was closed, or this is a forked process): "
                "make a new learner and give it the state."
            )

    def get_state(self) -> dict[str, Any]:
        """Return copies of theta, m, v and target, and the count of updates."""
        places = self._packing.places
        state = {name: getattr(self.memory, name)[places] for name in ("theta", "m", "v")}
        return {**state, "target": self.memory.target[self._target_places], "count": self.count}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that any learner of this layout gave."""
        check_state(state, self.layout)
        self._withdraw()
        for name in ("theta", "m", "v"):
            getattr(self.memory, name)[self._packing.places] = state[name]
        self.memory.target[self._target_places] = state["target"]
        self._derive(self._table)
        self.count = int(state["count"])

    @property
    def _target_places(self) -> NDArray[np.int64]:
        critics = slice(self.layout.critic_begin, self.layout.log_temperature)
        return self._packing.places[critics] - PANEL * self._packing.critic_begin

    def reset(self) -> None:
        """Reinitialise the parameters from the stream `init`."""
        self.set_state(first_state(self.layout, self.config, self.streams))

    def close(self) -> None:
        """Let the helping threads end."""
        if self._helpers:
            self._finalizer()
        for thread in self._helpers:
            thread.join()


def _keep_off_first_core(thread: threading.Thread) -> None:
    """Leave one core to the main thread: a scheduler may else put both on one for seconds."""
    if hasattr(os, "sched_setaffinity") and thread.native_id is not None:
        cores = os.sched_getaffinity(0)
        with suppress(OSError):
            os.sched_setaffinity(thread.native_id, cores - {min(cores)} or cores)


def _serve(update: Any, table: NDArray[np.int64], rank: int, threads: int, memory: Memory) -> None:
    """Take part in all updates until the team stops."""
    update(table, rank, threads, 0, False, *NOWHERE)


def _operations(layout: Layout, batch: int) -> float:
    """Return floating-point operations of an update, roughly: eight passes over three networks."""
    return 2.0 * batch * 8 / 3 * (layout.size - 1)
