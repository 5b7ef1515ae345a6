"""What our small compiled tasks share: a state vector, spaces, reset, and an end by time alone."""

from abc import abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.checks import at_least
from rollin.curriculum.contexts import Curriculum
from rollin.envs.contextual import ContextualEnv, context_of
from rollin.envs.picture import Picture

Array = NDArray[Any]


class SmallEnv(ContextualEnv):
    """A state that is observed in full, a force in [-1, 1]^A, a compiled step.

    observed: the box of states; contexts: that of contexts; the context is the curriculum's last
    until another is given.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 (Gymnasium's)

    def __init__(
        self,
        observed: spaces.Box,
        contexts: spaces.Box,
        actions: int,
        curriculum: Curriculum,
        horizon: int,
        render_mode: str | None,
    ) -> None:
        self.horizon = at_least(1, "horizon", horizon)
        self.render_mode = render_mode
        self.context_space = contexts
        self.observation_space = spaces.Dict(observation=observed, context=contexts)
        self.action_space = spaces.Box(-1.0, 1.0, (actions,), np.float32)
        self.curriculum = curriculum
        self.context: Array = curriculum.contexts[-1].copy()
        self._state = np.zeros(observed.shape[0])
        self._steps = 0

    @abstractmethod
    def _begin(self) -> Any:
        """The first state of an episode."""

    @abstractmethod
    def _move(self, action: Array) -> float:
        """Change the state by an action; returns the reward."""

    @abstractmethod
    def _outcome(self) -> Array:
        """All that the reward of the last step needs to know."""

    @abstractmethod
    def _picture(self) -> Picture:
        """The task as it stands."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin at the start, at rest."""
        super().reset(seed=seed)
        known = ["context", *(["start"] if self.takes_start else [])]
        self.context = context_of(options, self.context_space, self.context, known)
        self._state[:] = self._begin()
        self._steps = 0
        return self._observed()

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Push; episodes end by time alone."""
        reward = self._move(np.asarray(action, np.float64))
        self._steps += 1
        observed, info = self._observed()
        return observed, reward, False, self._steps >= self.horizon, info

    def render(self) -> NDArray[np.uint8] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The task from above or from the side."""
        return self._picture().array() if self.render_mode == "rgb_array" else None

    def _observed(self) -> tuple[dict[str, Array], dict[str, Any]]:
        observed = {"observation": self._state.copy(), "context": self.context.copy()}
        return observed, {"outcome": self._outcome()}
