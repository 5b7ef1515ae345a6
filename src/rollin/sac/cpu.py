"""The default learner: hand-derived gradients, compiled, float32, nothing allocated per update."""

import os
import threading
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.errors import RollinError
from rollin.sac import kernels
from rollin.sac.config import SACConfig
from rollin.sac.learner import (
    UpdateInfo,
    check_batch,
    check_noise,
    check_observation,
    check_state,
    diverged,
    first_state,
)
from rollin.sac.network import Float, Layout
from rollin.sac.vector import TEAM
from rollin.streams import Streams

LINE = 16  # float32 numbers in a cache line
GRAIN = 1.5e7  # floating-point operations of an update that are worth a thread: about 0.1 ms


class CpuLearner:
    """SAC on a CPU; streams `init`, `act` and `noise` give all its random numbers."""

    def __init__(self, layout: Layout, config: SACConfig, streams: Streams) -> None:
        self.layout, self.config, self.streams = layout, config, streams
        self.count = 0
        self.threads = min(config.threads, 1 + int(_operations(layout, config.batch) / GRAIN))
        size, actions = layout.size, layout.action_size
        target = _aligned(layout.log_temperature - layout.critic_begin)
        theta, m, v = (_aligned(size) for _ in range(3))
        self.parameters = kernels.Parameters(theta, m, v, target)
        self.reset()
        critics = layout.critics
        targets = critics - np.array([0, 0, layout.critic_begin])
        self._shape = kernels.Shape(layout.actor, critics, targets, layout.log_temperature)
        self._settings = kernels.Settings(
            np.float32(config.gamma),
            np.float32(config.tau),
            np.float32(config.learning_rate),
            np.float32(config.entropy_target(actions)),
            np.float32(config.log_std_min),
            np.float32(config.log_std_max),
        )
        self._work = _work(layout, config.batch, self.threads)
        self._batch = _aligned(config.batch, layout.row)
        self._noise = _aligned(2, actions, config.batch)
        self._act_noise = _aligned(actions)
        self._act_zero = _aligned(actions)
        self._act_scratch = _aligned(
            2, max(*config.hidden, layout.observation_size, 2 * actions) + 1
        )
        self._team = np.zeros(TEAM, np.int64)
        self._job = (  # what all threads work on
            self.threads,
            self._team,
            self._shape,
            self.parameters,
            self._work,
            self._settings,
            self._batch,
            self._noise,
        )
        self._helpers = [self._start(rank) for rank in range(1, self.threads)]
        self._process = os.getpid()
        if self._helpers:
            kernels.stop(np.zeros(TEAM, np.int64))  # compiled now, not in the garbage collector
            self._finalizer = weakref.finalize(self, kernels.stop, self._team)

    def _start(self, rank: int) -> threading.Thread:
        """A thread that helps with every update; it holds no reference to the learner."""
        arguments = (rank, *self._job, 0)
        thread = threading.Thread(target=kernels.update, args=arguments, daemon=True)
        thread.start()
        _keep_off_first_core(thread)
        return thread

    def _team_is_there(self) -> bool:
        """Whether all helpers still run; an update would wait for a missing one for ever."""
        alive = all(thread.is_alive() for thread in self._helpers)
        return alive and self._finalizer.alive and os.getpid() == self._process

    def act(self, observation: NDArray[Any], *, deterministic: bool = False) -> Float:
        """An action in (-1, 1)^A for one observation: a draw, or the squashed mean."""
        observation = check_observation(observation, self.layout)
        noise = self._act_zero
        if not deterministic:
            noise = self._act_noise
            self.streams["act"].standard_normal(out=noise, dtype=np.float32)
        action = np.empty(self.layout.action_size, np.float32)
        settings = self._settings
        kernels.act(
            self._shape.actor,
            self.parameters.theta,
            observation,
            noise,
            settings.log_std_min,
            settings.log_std_max,
            self._act_scratch,
            action,
        )
        return action

    def update(self, batch: Float, noise: Float | None = None) -> UpdateInfo:
        """One step of critics, targets, actor and temperature; see `Learner.update`."""
        check_batch(batch, self.layout, self.config)
        self._batch[:] = batch
        if noise is None:
            self.streams["noise"].standard_normal(out=self._noise, dtype=np.float32)
        else:
            check_noise(noise, self.layout, self.config)
            self._noise[:] = noise
        if self._helpers and not self._team_is_there():
            raise RollinError(
                "The learner's threads have ended (it was closed, or this is a forked process): "
                "make a new learner and give it the state."
            )
        outcome = kernels.update(0, *self._job, self.count + 1)
        if outcome != kernels.FINE:
            what = "critics'" if outcome == kernels.CRITIC_DIVERGED else "actor's"
            raise diverged(what, self.count + 1)
        self.count += 1
        return UpdateInfo(*self._work.info.tolist())

    def get_state(self) -> dict[str, Any]:
        """Copies of theta, m, v and target, and the count of updates."""
        p = self.parameters
        arrays = {"theta": p.theta, "m": p.m, "v": p.v, "target": p.target}
        return {**{name: array.copy() for name, array in arrays.items()}, "count": self.count}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to a state that any learner of this layout gave."""
        check_state(state, self.layout)
        p = self.parameters
        p.theta[:], p.m[:], p.v[:] = state["theta"], state["m"], state["v"]
        p.target[:] = state["target"]
        self.count = int(state["count"])

    def reset(self) -> None:
        """Begin anew with other first parameters, from where the stream `init` stands."""
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


def _work(layout: Layout, batch: int, threads: int) -> kernels.Work:
    """Activations and what else an update needs, with rows of ones where biases read them."""
    inputs = layout.action_size + layout.observation_size + 1
    depth = len(layout.hidden) + 1
    layers = np.concatenate([layout.actor, layout.critics[0]])[:, :2] + [1, 0]
    width = max(*layout.hidden, 2 * layout.action_size)
    # an odd number of cache lines, so that the rows of a column do not fall on the same few sets
    columns, wide = _odd_lines(batch), _odd_lines(width)
    x = _aligned(3, inputs, columns)
    x[:, -1] = 1
    actor, critic = (_aligned(2, depth, width + 1, columns) for _ in range(2))
    for layer, size in enumerate(layout.hidden):
        actor[:, layer, size] = 1
        critic[:, layer, size] = 1
    return kernels.Work(
        x,
        actor,
        critic,
        _aligned(2, depth, width, columns),
        _aligned(2, depth, batch, wide),
        _aligned(kernels.ROWS, columns),
        np.zeros(kernels.INFO),
        np.zeros((2, columns), np.uint32),
        _aligned(2, width, columns),
        _aligned(layout.action_size, columns),
        _aligned(threads, int(max(layer.prod() for layer in layers))),
    )


def _operations(layout: Layout, batch: int) -> float:
    """Floating-point operations of an update, roughly: eight passes over three networks."""
    return 2.0 * batch * 8 / 3 * (layout.size - 1)


def _odd_lines(size: int) -> int:
    lines = -(-size // LINE)
    return LINE * (lines | 1)


def _aligned(*shape: int) -> Float:
    """Zeros that begin on a cache line."""
    size = int(np.prod(shape))
    raw = np.zeros(size + LINE, np.float32)
    begin = -raw.ctypes.data % (4 * LINE) // 4
    return raw[begin : begin + size].reshape(shape)
