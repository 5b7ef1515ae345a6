"""Contextual MDPs: grid worlds, the paper's four rooms, families of growing size.

Walls of a grid are lines between cells, as in the paper's four rooms. The agent moves in four
directions (a move into a wall or off the grid stays put); the fifth action collects the reward of
the cell.

The four rooms (Section 4.4 and Appendix F) have 12 × 12 cells, 105 actions and 17 goals. The paper
does not state the walls, the path and γ. With the choices here its pattern of results appears;
`docs/design-decisions.md` lists them.

The families measure how a method's cost grows with size. Context ω_k is solved k steps from the
start. The default is γ = 1 - 1/(K+1): the effective horizon 1/(1-γ) then is the number of steps
that solve the final context.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rollin.checks import MOST_ENTRIES, at_least, instance
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
        """Return the number of cells."""
        return self.width * self.height

    def state(self, cell: Cell) -> int:
        """Return the index of a cell."""
        x, y = cell
        if not (0 <= x < self.width and 0 <= y < self.height):
            raise RollinError(f"Cell {cell} lies outside the {self.width} × {self.height} grid.")
        return y * self.width + x

    def cell(self, state: int) -> Cell:
        """Return the cell of an index."""
        return state % self.width, state // self.width

    def blocked(self, cell: Cell, move: Cell) -> bool:
        """Return whether a wall or the border stops a move."""
        x, y = cell
        to_x = x + move[0]
        to_y = y + move[1]
        if not (0 <= to_x < self.width and 0 <= to_y < self.height):
            return True
        for wall in self.walls:
            here, there, along = (x, to_x, y) if wall.axis == "x" else (y, to_y, x)
            if {here, there} == {wall.at, wall.at + 1} and along not in wall.doors:
                return True
        return False

    def transitions(self, dummy_actions: int = 0) -> np.ndarray:
        """Return the next states, (S, 5 + dummies); collecting and the dummies stay put."""
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
        """Return the distances (S,) to a goal as if there were no walls."""
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
    """Return a contextual MDP whose context ω_k is the goal cell `goals[k]`.

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
    for k, cell in enumerate(map(grid.state, goals)):
        if success == "goal":
            flags[k] = False
            flags[k, cell, COLLECT] = True
        elif success == "reached":  # any action on the goal, or a move onto it
            flags[k] = transitions == cell
            flags[k, cell] = True
    rho = np.zeros(grid.n_states)
    rho[grid.state(start)] = 1.0
    return ContextualMDP(
        transitions, rewards, gamma, rho, np.asarray(goals, dtype=np.float64), flags
    )


# ------------------------------------------------------------------ the paper's four rooms

DUMMY_ACTIONS = 100
GAMMA = 0.95
GRID = Grid(12, 12, walls=(Wall("x", 5, doors=(4, 8)), Wall("y", 5, doors=(3, 8))))

# (γ_reward, D_threshold) of the reward γ_reward^D if D ≤ D_threshold else 0 (Appendix F.1)
REWARDS: dict[str, tuple[float, int]] = {"easy": (0.9, 5), "hard": (0.5, 4)}


def path() -> list[Cell]:
    """Return the goals ω_0 … ω_16: from (0, 0) by a staircase to (4, 4), then to (8, 8)."""
    staircase = [((i + 1) // 2, i // 2) for i in range(9)]
    right = [(x, 4) for x in range(5, 9)]
    up = [(8, y) for y in range(5, 9)]
    return staircase + right + up


def reward_of_distance(distance: Array, base: float, threshold: int) -> Array:
    """Return r_four_room: base^D within the threshold, 0 beyond."""
    return np.where(distance <= threshold, base**distance, 0.0)


def four_rooms(
    reward: str = "easy", gamma: float = GAMMA, success: str = "rewarded"
) -> ContextualMDP:
    """Return the contextual MDP of the four-room experiment with the easy or the hard reward.

    >>> import rollin
    >>> mdp = rollin.four_rooms("hard")
    >>> mdp.n_states, mdp.n_actions, mdp.K
    (144, 105, 16)
    >>> mdp.contexts[-1].tolist()
    [8.0, 8.0]
    """
    if not isinstance(reward, str) or reward not in REWARDS:
        raise RollinError(f'reward must be "easy" or "hard", got {reward!r}.')
    base, threshold = REWARDS[reward]
    return grid_world(
        GRID,
        path(),
        partial(reward_of_distance, base=base, threshold=threshold),
        dummy_actions=DUMMY_ACTIONS,
        gamma=gamma,
        success=success,
    )


# ------------------------------------------------------------------ families of growing size

FORWARD = slice(0, 2)  # actions of the lock; 3 is a dummy
CLAIM = 2
DEEP_ENOUGH = 2  # steps that the goal of a random MDP is away from the start at the least


def combination_lock(
    n: int, *, gamma: float | None = None, uniform_rho: bool = False
) -> ContextualMDP:
    """Return a combination lock: the last of n cells takes a forward move in every cell before it.

    Two of the four actions go forward (and stay in the last cell), one claims, one is a dummy;
    claim and dummy lead back to cell 0. ω_k pays 1 for a claim in cell k. A uniform policy reaches
    the last cell in n - 1 steps with probability 2^-(n-1). uniform_rho: start in every cell, as
    the theorems assume. Default: in cell 0.

    >>> import rollin
    >>> mdp = rollin.combination_lock(4)
    >>> mdp.transitions.tolist()  # forward, forward, claim, dummy
    [[1, 1, 0, 0], [2, 2, 0, 0], [3, 3, 0, 0], [3, 3, 0, 0]]
    >>> mdp.K, mdp.gamma
    (3, 0.75)
    """
    at_least(2, "The number of cells n", n)
    _check_size(n, n * n * 4)
    transitions = np.zeros((n, 4), np.int64)
    transitions[:, FORWARD] = np.minimum(np.arange(n) + 1, n - 1)[:, None]
    rho = np.full(n, 1 / n) if uniform_rho else np.eye(n)[0]
    return _with_goals(transitions, np.arange(n), CLAIM, rho, gamma)


def corridor(n: int, *, dummy_actions: int = 3, gamma: float | None = None) -> ContextualMDP:
    """Return a corridor of n cells, a grid world of one row, with the goal of ω_k in cell k.

    Collecting stays put and pays again; up and down run into walls; dummy actions stay put.

    >>> import rollin
    >>> mdp = rollin.corridor(5, dummy_actions=3)
    >>> mdp.n_states, mdp.n_actions, mdp.K
    (5, 8, 4)
    """
    at_least(2, "The number of cells n", n)
    _check_size(n, n * n * (5 + dummy_actions))
    goals = [(x, 0) for x in range(n)]
    return _grid_world(Grid(n, 1), goals, dummy_actions, gamma)


def square_grid(m: int, *, dummy_actions: int = 0, gamma: float | None = None) -> ContextualMDP:
    """Return an open m × m grid; the goals climb a staircase from one corner to the opposite one.

    >>> import rollin
    >>> mdp = rollin.square_grid(3)
    >>> mdp.n_states, mdp.K, mdp.contexts.tolist()
    (9, 4, [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0], [2.0, 2.0]])
    """
    at_least(2, "The side m of the grid", m)
    _check_size(m, m * m * (2 * m - 1) * (5 + dummy_actions))
    goals = [((step + 1) // 2, step // 2) for step in range(2 * m - 1)]
    return _grid_world(Grid(m, m), goals, dummy_actions, gamma)


def random_mdp(n: int, seed: int, *, actions: int = 4, gamma: float | None = None) -> ContextualMDP:
    """Return an MDP of n states whose actions lead to states drawn at random.

    The final goal is the state that takes the most steps from state 0; the contexts are the states
    on a shortest path to it. One more action claims: it pays in the goal and stays put. Draws in
    which the goal is less than two steps away are rejected.

    >>> import rollin
    >>> mdp = rollin.random_mdp(16, seed=0)
    >>> mdp.n_states, mdp.n_actions, mdp.K
    (16, 5, 3)
    """
    at_least(4, "The number of states n", n)
    at_least(1, "actions", actions)
    _check_size(n, n * (n + actions))
    rng = np.random.default_rng(at_least(0, "seed", seed))
    states = np.arange(n)
    while True:
        moves = rng.integers(n, size=(n, actions))
        path = _farthest(moves)
        if len(path) > DEEP_ENOUGH:
            break
    transitions = np.hstack([moves, states[:, None]])
    return _with_goals(transitions, np.array(path), actions, np.eye(n)[0], gamma)


def _check_size(n: int, entries: int) -> None:
    """Raise if the tables of an MDP would fill the memory, before they are made."""
    if entries > MOST_ENTRIES:
        raise RollinError(
            f"An MDP of size {n:,} has tables of {entries:,} entries, and at most {MOST_ENTRIES:,} "
            "can be held: choose a smaller n."
        )


def _farthest(moves: NDArray[np.int64]) -> list[int]:
    """Return a shortest path from state 0 to a state that is farthest from it, with both ends."""
    paths = {0: [0]}
    order = [0]
    for s in order:  # breadth first: it grows while it is read
        for after in moves[s].tolist():
            if after not in paths:
                paths[after] = [*paths[s], after]
                order.append(after)
    return paths[order[-1]]


def _with_goals(
    transitions: NDArray[np.int64],
    goals: NDArray[np.int64],
    claim: int,
    rho: NDArray[np.float64],
    gamma: float | None,
) -> ContextualMDP:
    rewards = np.zeros((len(goals), *transitions.shape))
    rewards[np.arange(len(goals)), goals, claim] = 1.0
    return ContextualMDP(transitions, rewards, _discount(len(goals), gamma), rho)


def _grid_world(
    grid: Grid, goals: list[Cell], dummy_actions: int, gamma: float | None
) -> ContextualMDP:
    return grid_world(
        grid,
        goals,
        reward=lambda distance: (distance == 0) * 1.0,
        dummy_actions=dummy_actions,
        gamma=_discount(len(goals), gamma),
    )


def _discount(contexts: int, gamma: float | None) -> float:
    return 1 - 1 / contexts if gamma is None else gamma
