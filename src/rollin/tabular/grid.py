"""Grid worlds as contextual MDPs: cells, walls between cells, goals, dummy actions.

Walls are lines between cells, as in the paper's four rooms. The agent moves in four directions
(a move into a wall or off the grid stays put); the fifth action collects the reward of the cell.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rollin.checks import at_least, instance
from rollin.errors import RollinError
from rollin.tabular.mdp import Array, ContextualMDP

Cell = tuple[int, int]
MOVES: tuple[Cell, ...] = ((1, 0), (-1, 0), (0, 1), (0, -1))  # right, left, up, down
COLLECT = 4  # index of the action that collects, after the four moves


@dataclass(frozen=True)
class Wall:
    """A straight wall on one side of a line of cells, with doors.

    axis "x": between columns `at` and `at + 1`; axis "y": between rows `at` and `at + 1`.
    The doors are the coordinates along the wall (y for axis "x") where one can pass.

    >>> import rollin
    >>> grid = rollin.Grid(4, 3, walls=(rollin.Wall("x", 1, doors=(2,)),))
    >>> grid.blocked((1, 0), move=(1, 0)), grid.blocked((1, 2), move=(1, 0))
    (True, False)
    """

    axis: str
    at: int
    doors: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.axis not in ("x", "y"):
            raise RollinError(f'A wall\'s axis must be "x" or "y", got {self.axis!r}.')


@dataclass(frozen=True)
class Grid:
    """Geometry of a grid world: cell (x, y) is state y · width + x.

    >>> import rollin
    >>> grid = rollin.Grid(4, 3)
    >>> grid.state((1, 2)), grid.cell(9)
    (9, (1, 2))
    >>> grid.transitions()[0].tolist()  # right, left, up, down, collect
    [1, 0, 4, 0, 0]
    """

    width: int
    height: int
    walls: tuple[Wall, ...] = ()

    def __post_init__(self) -> None:
        at_least(1, "width", self.width)
        at_least(1, "height", self.height)
        for wall in self.walls:
            across, along = self._extent(wall)
            if not 0 <= wall.at < across - 1:
                raise RollinError(
                    f"A wall on axis {wall.axis} must lie at 0 … {across - 2}, got {wall.at}."
                )
            if any(not 0 <= door < along for door in wall.doors):
                raise RollinError(
                    f"Doors of the wall at {wall.axis} = {wall.at} must lie in 0 … {along - 1}, "
                    f"got {wall.doors}."
                )

    def _extent(self, wall: Wall) -> tuple[int, int]:
        return (self.width, self.height) if wall.axis == "x" else (self.height, self.width)

    @property
    def n_states(self) -> int:
        """Number of cells."""
        return self.width * self.height

    def state(self, cell: Cell) -> int:
        """Index of a cell."""
        x, y = cell
        if not (0 <= x < self.width and 0 <= y < self.height):
            raise RollinError(f"Cell {cell} lies outside the {self.width} × {self.height} grid.")
        return y * self.width + x

    def cell(self, state: int) -> Cell:
        """Cell of an index."""
        return state % self.width, state // self.width

    def blocked(self, cell: Cell, move: Cell) -> bool:
        """Whether a wall or the border stops a move."""
        x, y = cell
        to_x, to_y = x + move[0], y + move[1]
        if not (0 <= to_x < self.width and 0 <= to_y < self.height):
            return True
        for wall in self.walls:
            here, there, along = (x, to_x, y) if wall.axis == "x" else (y, to_y, x)
            if {here, there} == {wall.at, wall.at + 1} and along not in wall.doors:
                return True
        return False

    def transitions(self, dummy_actions: int = 0) -> np.ndarray:
        """(S, 5 + dummies) next states; collecting and the dummies stay put."""
        if dummy_actions < 0:
            raise RollinError(f"The number of dummy actions must be ≥ 0, got {dummy_actions}.")
        states = np.arange(self.n_states)
        table = np.repeat(states[:, None], COLLECT + 1 + dummy_actions, axis=1)
        for s in states:
            cell = self.cell(int(s))
            for a, move in enumerate(MOVES):
                if not self.blocked(cell, move):
                    table[s, a] = self.state((cell[0] + move[0], cell[1] + move[1]))
        return table

    def manhattan(self, goal: Cell) -> Array:
        """(S,) distance to a goal if the walls did not exist."""
        self.state(goal)
        y, x = np.divmod(np.arange(self.n_states), self.width)
        return np.abs(x - goal[0]) + np.abs(y - goal[1]).astype(np.float64)


def grid_world(
    grid: Grid,
    goals: Sequence[Cell],
    reward: Callable[[Array], Array],
    *,
    start: Cell = (0, 0),
    dummy_actions: int = 0,
    gamma: float = 0.95,
    success: str = "rewarded",
) -> ContextualMDP:
    """A contextual MDP whose context ω_k is the goal cell `goals[k]`.

    reward: from the Manhattan distance to the goal (S,) to the reward of collecting there (S,).
    success: "rewarded", any rewarded collect counts; "goal", only a collect on the goal itself;
        "reached", being on the goal at any time, the state after the last step included.

    >>> import rollin
    >>> goals = [(0, 0), (1, 0), (2, 0), (2, 1)]
    >>> mdp = rollin.grid_world(rollin.Grid(3, 2), goals, reward=lambda d: (d <= 1) * 0.5**d)
    >>> mdp.K, mdp.n_actions
    (3, 5)
    >>> mdp.rewards[3, :, 4].tolist()  # of collecting, on the last goal's task
    [0.0, 0.0, 0.5, 0.0, 0.5, 1.0]
    """
    instance("grid", grid, Grid, "make one, such as rollin.Grid(8, 8)")
    if success not in ("rewarded", "goal", "reached"):
        raise RollinError(f'success must be "rewarded", "goal" or "reached", got {success!r}.')
    transitions = grid.transitions(dummy_actions)
    rewards = np.zeros((len(goals), *transitions.shape))
    for k, goal in enumerate(goals):
        rewards[k, :, COLLECT] = reward(grid.manhattan(goal))
    flags = rewards > 0
    cells = [grid.state(goal) for goal in goals]
    if success == "goal":
        flags = np.zeros_like(flags)
        flags[np.arange(len(goals)), cells, COLLECT] = True
    if success == "reached":  # any action on the goal, or a move onto it
        flags = np.stack([transitions == cell for cell in cells])
        flags[np.arange(len(goals)), cells] = True
    rho = np.zeros(grid.n_states)
    rho[grid.state(start)] = 1.0
    return ContextualMDP(
        transitions, rewards, gamma, rho, np.asarray(goals, dtype=np.float64), flags
    )
