"""point-umaze and dead-end: a point mass in a maze, compiled; `PointEnv`, `Maze` and `Canvas`.

point-umaze has the maze, path, reward and contexts of antmaze-umaze, and trains in seconds. Other
tasks with a point mass share its base, the mazes and the pictures, which need no display.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from rollin.checks import positive
from rollin.compiling import cached_njit
from rollin.curriculum.contexts import Curriculum
from rollin.envs.contextual import TaskEnv, check_context

SIZE = 320  # pixels on both sides of a picture
MARGIN = 0.5  # metres around what it shows
FLOOR = "#f4f4f5"
STONE = "#52525b"
GOAL = "#a7f3d0"
EDGE = "#059669"
POINT = "#7c3aed"

Array = NDArray[Any]


class Canvas:
    """A square picture of the box from (left, bottom) to (right, top), in metres; y goes up.

    size: pixels on both sides.
    """

    def __init__(
        self, left: float, right: float, bottom: float, top: float, size: int = SIZE
    ) -> None:
        self._left = left - MARGIN
        self._top = top + MARGIN
        self._scale = size / (max(right - left, top - bottom) + 2 * MARGIN)
        self._image = Image.new("RGB", (size, size), STONE)
        self._draw = ImageDraw.Draw(self._image)

    def _pixel(self, x: float, y: float) -> tuple[float, float]:
        return (x - self._left) * self._scale, (self._top - y) * self._scale

    def block(self, x0: float, x1: float, y0: float, y1: float, colour: str) -> None:
        """Draw a filled rectangle."""
        self._draw.rectangle([self._pixel(x0, y1), self._pixel(x1, y0)], fill=colour)

    def disc(
        self, place: Iterable[float], radius: float, colour: str, edge: str | None = None
    ) -> None:
        """Draw a filled circle."""
        x, y = place
        box = [self._pixel(x - radius, y + radius), self._pixel(x + radius, y - radius)]
        self._draw.ellipse(box, fill=colour, outline=edge, width=2 if edge else 0)

    def array(self) -> NDArray[np.uint8]:
        """Return the pixels, (size, size, 3)."""
        return np.asarray(self._image)


class PointEnv(TaskEnv):
    """A fully observed state, a force in [-1, 1]², a compiled step; episodes end by time only."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 (Gymnasium's)

    def __init__(
        self,
        states: spaces.Box,
        contexts: spaces.Box,
        curriculum: Curriculum,
        horizon: int,
        render_mode: str | None,
    ) -> None:
        force = spaces.Box(-1.0, 1.0, (2,), np.float32)
        super().__init__(states, force, contexts, curriculum, horizon)
        self.render_mode = render_mode
        self._state = np.zeros(states.shape[0])

    @abstractmethod
    def _first_state(self, start: Any) -> Any:
        """Return the first state of an episode; start: None, or the place to begin at."""

    @abstractmethod
    def _move(self, action: Array) -> float:
        """Change the state by an action; return the reward."""

    @abstractmethod
    def _outcome(self) -> Array:
        """Return all that the reward of the last step needs."""

    @abstractmethod
    def _picture(self) -> Canvas:
        """Draw the current state."""

    def _begin(self, seed: int | None, start: Any) -> tuple[Array, dict[str, Any]]:
        self._state[:] = self._first_state(start)
        return self._state.copy(), {"outcome": self._outcome()}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Push the point."""
        reward = self._move(np.asarray(action, np.float64))
        self._steps += 1  # without `_over` and `_observed`: each call costs a step 1 %
        observed = {"observation": self._state.copy(), "context": self.context.copy()}
        over = self._steps >= self.horizon
        return observed, reward, False, over, {"outcome": self._outcome()}

    def render(self) -> NDArray[np.uint8] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a picture from above or from the side."""
        return self._picture().array() if self.render_mode == "rgb_array" else None


RADIUS = 0.5  # reward exp(-5 D) within 0.5 m of the goal, else 0
SHARPNESS = 5.0

Block = tuple[float, float, float, float]
"""x from, to, y from, to."""


@dataclass(frozen=True)
class Maze:
    """A square with blocks in it; path: corners of the curriculum, the first is the start.

    bounds: the outer walls; blocks that touch one must reach beyond it, or a point slips through.
    """

    path: tuple[tuple[float, float], ...]
    bounds: Block
    blocks: tuple[Block, ...]

    def draw(self, axes: Any, goal: ArrayLike, visited: Sequence[NDArray[Any]]) -> None:
        """Draw maze, path, goal and the places (T, 2) of episodes, which darken with time."""
        left, right, bottom, top = self.bounds
        axes.set_facecolor(STONE)
        axes.fill_between([left, right], bottom, top, color=FLOOR, lw=0, zorder=0)
        for x0, x1, y0, y1 in self.blocks:  # which may reach beyond the bounds
            wide = [max(x0, left), min(x1, right)]
            axes.fill_between(wide, max(y0, bottom), min(y1, top), color=STONE, lw=0, zorder=0)
        axes.plot(*np.transpose(self.path), ":", color=EDGE, lw=1.5, zorder=1)
        for places in visited:
            x, y = np.asarray(places).T
            axes.scatter(x, y, c=np.linspace(0.25, 1, len(x)), cmap="Purples", vmin=0, vmax=1, s=3)
        turn = np.linspace(0, 2 * np.pi, 60)
        x, y = np.asarray(goal, np.float64)
        axes.plot(x + RADIUS * np.cos(turn), y + RADIUS * np.sin(turn), color=EDGE, lw=1.5)
        axes.set(xlim=(left - 0.5, right + 0.5), ylim=(bottom - 0.5, top + 0.5), aspect="equal")
        axes.grid(visible=False)


PATH = ((0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0))  # the paper's corners, 24 m
LOW = -2.0  # outer walls of the U-maze, on both axes
HIGH = 10.0
UMAZE = Maze(PATH, (LOW, HIGH, LOW, HIGH), ((LOW - 1, 6.0, 2.0, 6.0),))
"""The maze of point-umaze and antmaze-umaze."""


def goal_reward(outcome: ArrayLike, context: ArrayLike) -> NDArray[Any]:
    """Return exp(-5 D) within 0.5 m of the goal, else 0; batched over leading axes."""
    apart = np.asarray(outcome, np.float64) - np.asarray(context, np.float64)
    distance = np.sqrt(apart[..., 0] ** 2 + apart[..., 1] ** 2)
    return np.where(distance <= RADIUS, np.exp(-SHARPNESS * distance), 0.0)


def reward_at(place: NDArray[Any], goal: NDArray[Any]) -> float:
    """Return `goal_reward` of one place, bit for bit, without the 10 µs of arrays."""
    goal_x, goal_y = goal.tolist()
    x, y = place.tolist()
    x -= goal_x
    y -= goal_y
    # neither x ** 2 nor math.exp: Python's may round otherwise than NumPy's
    distance = math.sqrt(x * x + y * y)
    return float(np.exp(-SHARPNESS * distance)) if distance <= RADIUS else 0.0


FRICTION = 0.7  # v ← 0.7 v + 0.15 a
FORCE = 0.15
RESET_NOISE = 0.1  # of the first position, uniform, as in antmaze-umaze


class PointMaze(PointEnv):
    """Observation (x, y, v_x, v_y), action a force in [-1, 1]², context the goal, outcome (x, y).

    max_speed: metres a step; horizon: steps of an episode; R: return that masters a context;
    delta: step of the curriculum along the path of length 1.
    """

    takes_start = True
    maze: ClassVar[Maze]
    more: ClassVar[int] = 0
    """Numbers in [0, 1] in the observation, after position and velocity."""

    def __init__(
        self,
        max_speed: float = 0.5,
        horizon: int = 200,
        R: float = 80.0,
        delta: float = 1 / 12,
        render_mode: str | None = None,
    ) -> None:
        self.max_speed = positive("max_speed", max_speed)
        left, right, bottom, top = self.maze.bounds
        low = np.array([left, bottom, -max_speed, -max_speed, *[0.0] * self.more])
        high = np.array([right, top, max_speed, max_speed, *[1.0] * self.more])
        super().__init__(
            spaces.Box(low, high, dtype=np.float64),
            spaces.Box(low[:2], high[:2], dtype=np.float64),
            Curriculum.along(self.maze.path, delta, R),
            horizon,
            render_mode,
        )
        self._bounds = np.array(self.maze.bounds)
        self._blocks = np.array(self.maze.blocks)

    def _first_state(self, start: Any) -> Any:
        box = self.context_space
        place = self.maze.path[0] if start is None else check_context(start, box)
        noise = self.np_random.uniform(-RESET_NOISE, RESET_NOISE, 2)
        return (*np.clip(noise + place, box.low, box.high), *[0.0] * (2 + self.more))

    def _move(self, action: Array) -> float:
        return push(self._state, action, self.context, self.max_speed, self._bounds, self._blocks)

    def _outcome(self) -> Array:
        return self._state[:2].copy()

    def context_reward(self, outcome: ArrayLike, context: ArrayLike) -> Array:
        """Return exp(-5 D) within 0.5 m of the goal, else 0."""
        return goal_reward(outcome, context)

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw the maze from above, with the path, the goal and the places of episodes."""
        self.maze.draw(axes, context, [np.asarray(places)[:, :2] for places in outcomes])

    def _picture(self) -> Canvas:
        picture = Canvas(*self.maze.bounds)
        picture.block(*self.maze.bounds, FLOOR)
        for block in self.maze.blocks:
            picture.block(*block, STONE)
        picture.disc(self.context, RADIUS, GOAL, EDGE)
        picture.disc(self._state[:2], 0.25, POINT)
        return picture


class PointUmaze(PointMaze):
    """A point in the U-maze; options as `PointMaze`."""

    maze = UMAZE


class DeadEnd(PointMaze):
    """A point in a maze where the straight line to the goal ends at a wall; options as `PointMaze`.

    From the start (0, 0) a closed room opens towards the final goal (8, 4.5). The path of 21.5 m
    leads around the room, by (0, -4.5) and (8, -4.5).
    """

    maze = Maze(
        path=((0.0, 0.0), (0.0, -4.5), (8.0, -4.5), (8.0, 4.5)),
        bounds=(-2.0, 10.0, -6.0, 6.0),
        blocks=(
            (5.0, 6.0, -3.0, 7.0),  # the end of the room
            (1.5, 6.0, -3.0, -2.0),  # and its floor
        ),
    )


@cached_njit(error_model="numpy")
def push(state, action, goal, max_speed, bounds, blocks):
    """Move the point in place and return the reward; a wall stops the axis that runs into it."""
    for i in range(2):
        force = min(max(action[i], -1.0), 1.0)
        state[2 + i] = FRICTION * state[2 + i] + FORCE * force
    speed = np.sqrt(state[2] ** 2 + state[3] ** 2)
    if speed > max_speed:
        for i in range(2, 4):  # rounding must not leave the observation's box
            state[i] = min(max(state[i] * max_speed / speed, -max_speed), max_speed)
    for i in range(2):
        before = state[i]
        after = state[i] + state[2 + i]
        other = state[1 - i]
        low = bounds[2 * i]
        high = bounds[2 * i + 1]
        for b in range(len(blocks)):  # those in the path of the point narrow the room
            if blocks[b, 2 - 2 * i] < other < blocks[b, 3 - 2 * i]:
                if before <= blocks[b, 2 * i]:
                    high = min(high, blocks[b, 2 * i])
                else:
                    low = max(low, blocks[b, 2 * i + 1])
        if after < low or after > high:
            after = min(max(after, low), high)
            state[2 + i] = 0.0
        state[i] = after
    distance = np.sqrt((state[0] - goal[0]) ** 2 + (state[1] - goal[1]) ** 2)
    return np.exp(-SHARPNESS * distance) if distance <= RADIUS else 0.0
