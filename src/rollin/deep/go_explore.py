"""Go-Explore: once an episode has come to the previous goal, its actions are made noisy.

While ω_k is learned, from the first outcome that fulfils ω_{k-1} to the end of the episode, whoever
acts: a + EN · N(0, I), clipped to the box (section on goal reaching).
"""

import numpy as np

from rollin.arrays import Float
from rollin.envs.context_env import ContextEnv
from rollin.streams import Streams


class GoExplore:
    """The noise of one run; a scale of 0 does nothing."""

    def __init__(self, scale: float, env: ContextEnv, streams: Streams) -> None:
        self.scale, self._env, self._streams = scale, env, streams
        self._previous: Float | None = None
        self._reached = False

    def begin(self, previous: Float | None) -> None:
        """A new episode; `previous` is ω_{k-1}, None on the first context."""
        self._previous, self._reached = previous, False

    def __call__(self, action: Float, outcome: Float) -> Float:
        """The action to take after this outcome."""
        if self.scale == 0 or self._previous is None:
            return action
        self._reached = self._reached or self._env.is_success(outcome, self._previous)
        if not self._reached:
            return action
        noise = self._streams["go-explore"].standard_normal(len(action), np.float32)
        return np.clip(action + np.float32(self.scale) * noise, -1, 1).astype(np.float32)
