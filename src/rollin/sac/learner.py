"""What the learners have in common: contract, report of an update, checks of what comes in."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rollin.arrays import Float
from rollin.errors import RollinError
from rollin.sac.config import SACConfig
from rollin.sac.network import Layout
from rollin.streams import Streams

LearnerName = Literal["cpu", "jax"]

_FLOAT32 = np.dtype(np.float32)


@dataclass(slots=True)  # made at every step: a frozen one takes three times as long
class UpdateInfo:
    """What one update saw, before its steps: losses, mean Q, entropy -E log π, temperature."""

    critic_loss: float
    q_mean: float
    actor_loss: float
    entropy: float
    temperature: float


class SACLearner(Protocol):
    """A SAC learner. All have the same state, so that one can go on with another's."""

    config: SACConfig
    layout: Layout
    streams: Streams
    count: int
    """Updates so far."""
    batch: Float
    """Where a batch may be gathered, (B, row), so that an update need not copy it."""

    def act(self, observation: NDArray[Any], *, deterministic: bool = False) -> Float:
        """An action in (-1, 1)^A for one observation: a draw, or the squashed mean."""
        ...

    @property
    def starts_early(self) -> bool:
        """Whether `begin` gives other threads something to do."""
        ...

    def begin(self) -> None:
        """Say that the next update will be from what `batch` holds now."""
        ...

    def update(self, batch: Float, noise: Float | None = None) -> UpdateInfo:
        """One step of critics, targets, actor and temperature.

        batch: (B, row) of action, observation, next observation, reward, mask (0 where the
        episode terminated, else 1). noise: (2, A, B) standard normal numbers for π(s) and
        π(s'), drawn if not given.
        """
        ...

    def get_state(self) -> dict[str, Any]:
        """theta, m, v (float32, in the order of `Layout`), target, count."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to a state that `get_state` of any learner of this layout gave."""
        ...

    def reset(self) -> None:
        """Begin anew with other first parameters, from where the stream `init` stands."""
        ...

    def close(self) -> None:
        """Release threads and memory; the learner cannot be used afterwards."""
        ...


def first_state(layout: Layout, config: SACConfig, streams: Streams) -> dict[str, Any]:
    """A state before any update, with parameters drawn from the stream `init`."""
    theta = layout.initial(streams["init"], config.initial_temperature, config.head_gain)
    target = theta[layout.critic_begin : layout.log_temperature]
    m, v = np.zeros((2, layout.size), np.float32)
    return {"theta": theta, "m": m, "v": v, "target": target, "count": 0}


def check_batch(batch: Float, layout: Layout, config: SACConfig) -> None:
    """Refuse a batch of another shape or type."""
    expected = (config.batch, layout.row)
    if not isinstance(batch, np.ndarray) or batch.dtype != np.float32 or batch.shape != expected:
        raise RollinError(
            f"batch must be a float32 array of shape {expected} (action, observation, next "
            f"observation, reward, mask), got {describe(batch)}."
        )


def check_observation(observation: NDArray[Any], layout: Layout) -> Float:
    """An observation as float32, or an error that says what came."""
    if type(observation) is np.ndarray and observation.dtype is _FLOAT32:
        array = observation
        if array.shape == (layout.observation_size,):  # as nearly always
            return array
    else:
        array = np.asarray(observation)
    if array.shape != (layout.observation_size,) or array.dtype.kind not in "fiu":
        raise RollinError(
            f"observation must hold {layout.observation_size} real numbers in one dimension, "
            f"got {describe(array)}."
        )
    return array.astype(np.float32, copy=False)


def check_state(state: dict[str, Any], layout: Layout) -> None:
    """Refuse the state of another network, or a damaged one."""
    sizes = {"theta": layout.size, "m": layout.size, "v": layout.size}
    sizes["target"] = layout.log_temperature - layout.critic_begin
    for name, size in sizes.items():
        array = np.asarray(state.get(name))
        if array.shape != (size,) or array.dtype != np.float32:
            raise RollinError(
                f"The learner's {name} must be float32 of shape {(size,)}, got {describe(array)}: "
                "the state belongs to a network of other sizes."
            )
        if not np.isfinite(array).all():
            raise RollinError(f"The learner's {name} holds NaN or infinity: the state is damaged.")
    if "count" not in state:
        raise RollinError("The learner's state lacks its count of updates: it is damaged.")


def diverged(what: str, count: int) -> RollinError:
    """The error of a step that was not made because its loss is not a finite number."""
    return RollinError(
        f"The {what} loss is not a finite number at update {count}: the learner diverged, and this "
        "step was not made. A smaller learning rate, or rewards of smaller scale, may help."
    )


def check_noise(noise: Float, layout: Layout, config: SACConfig) -> None:
    """Refuse noise of another shape."""
    expected = (2, layout.action_size, config.batch)
    if np.shape(noise) != expected:
        raise RollinError(f"noise must have shape {expected}, got {np.shape(noise)}.")


def describe(value: object) -> str:
    """Type and shape, for errors."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
