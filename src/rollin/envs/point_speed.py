"""point-speed: a point that must run on a ring at the speed of its context.

The ring is a track 1 m wide around a circle of radius 5 m. A step pays 1 on the track and within
0.03 m a step of the target speed, counter-clockwise, else nothing. A higher speed takes longer to
reach and more of the force to stay on the track: 0.04 of 0.05 at 0.4 m a step. So the highest
possible return falls along the curriculum.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from rollin.compiling import cached_njit
from rollin.curriculum.contexts import Curriculum
from rollin.envs.point_umaze import EDGE, FLOOR, POINT, STONE, Canvas, PointEnv

CIRCLE = 5.0  # radius of the middle of the track, in metres
WIDTH = 0.5  # half the width of the track
ROOM = 8.0  # the point is kept within this of the centre, on both axes
FRICTION = 0.95  # v ← 0.95 v + 0.05 a
FORCE = 0.05
FASTEST = 0.4  # speed of the final context
BAND = 0.03  # half the width of a band
RESET_NOISE = 0.1

Array = NDArray[Any]


class PointSpeed(PointEnv):
    """Observation (x, y, v_x, v_y), action a force in [-1, 1]², context the target speed.

    Outcome (speed along the ring, distance from its middle). horizon: steps of an episode; R:
    return that masters a context; delta: step of the curriculum from rest to 0.4 m a step.
    """

    def __init__(
        self,
        horizon: int = 200,
        R: float = 100.0,
        delta: float = 1 / 12,
        render_mode: str | None = None,
    ) -> None:
        high = np.array([ROOM, ROOM, 1.0, 1.0])  # 0.05 / (1 - 0.95) = 1 is never passed
        super().__init__(
            spaces.Box(-high, high, dtype=np.float64),
            spaces.Box(0.0, FASTEST, (1,), np.float64),
            Curriculum.along([[0.0], [FASTEST]], delta, R),
            horizon,
            render_mode,
        )
        self._measured = np.zeros(2)

    def _first_state(self, start: Any) -> Any:
        x, y = self.np_random.uniform(-RESET_NOISE, RESET_NOISE, 2)
        self._measured[:] = 0.0, abs(np.hypot(CIRCLE + x, y) - CIRCLE)
        return CIRCLE + x, y, 0.0, 0.0

    def _move(self, action: Array) -> float:
        return _run(self._state, action, self.context, self._measured)

    def _outcome(self) -> Array:
        return self._measured.copy()

    def context_reward(self, outcome: ArrayLike, context: ArrayLike) -> Array:
        """Return 1 on the track and within the band of the target speed, else 0."""
        speed, distance = np.moveaxis(np.asarray(outcome, np.float64), -1, 0)
        target = np.asarray(context, np.float64)[..., 0]
        return np.where((distance <= WIDTH) & (np.abs(speed - target) <= BAND), 1.0, 0.0)

    def to_context(self, outcome: Array) -> Array:
        """Return the speed, clipped to the contexts."""
        return np.clip(np.asarray(outcome)[..., :1], 0.0, FASTEST)

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw the speed over time and the band; grey where the point was off the track."""
        axes.axhspan(context[0] - BAND, context[0] + BAND, color=EDGE, alpha=0.2, lw=0)
        for episode in outcomes:
            speed, distance = np.asarray(episode).T
            axes.plot(speed, color="#a1a1aa", lw=0.8)
            axes.plot(np.where(distance <= WIDTH, speed, np.nan), color=POINT, lw=1.0)
        axes.set(xlabel="step", ylabel="speed along the ring (m a step)")

    def _picture(self) -> Canvas:
        picture = Canvas(-ROOM, ROOM, -ROOM, ROOM)
        picture.disc((0, 0), CIRCLE + WIDTH, FLOOR)
        picture.disc((0, 0), CIRCLE - WIDTH, STONE)
        picture.disc(self._state[:2], 0.25, POINT)
        return picture


@cached_njit(error_model="numpy")
def _run(state, action, target, measured):
    """Move the point in place, measure speed and distance, and return the reward."""
    for i in range(2):
        force = min(max(action[i], -1.0), 1.0)
        state[2 + i] = FRICTION * state[2 + i] + FORCE * force
        state[i] += state[2 + i]
        if state[i] < -ROOM or state[i] > ROOM:
            state[i] = min(max(state[i], -ROOM), ROOM)
            state[2 + i] = 0.0
    radius = np.sqrt(state[0] ** 2 + state[1] ** 2)
    turned = state[0] * state[3] - state[1] * state[2]
    measured[0] = turned / radius if radius > 0.0 else 0.0
    measured[1] = abs(radius - CIRCLE)
    inside = measured[1] <= WIDTH and abs(measured[0] - target[0]) <= BAND
    return 1.0 if inside else 0.0
