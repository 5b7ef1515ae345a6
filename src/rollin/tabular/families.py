"""Families of contextual MDPs of growing size, to see how a method's cost grows with the size.

In each of them context ω_k is solved k steps from the start, so that there are as many contexts as
steps to the last goal and one more. γ = 1 - 1/(K+1) unless it is given: the effective horizon
1/(1-γ) then is the number of steps that solve the last context.
"""

import numpy as np
from numpy.typing import NDArray

from rollin.checks import MOST_ENTRIES, at_least
from rollin.errors import RollinError
from rollin.tabular.grid import Cell, Grid, grid_world
from rollin.tabular.mdp import ContextualMDP

FORWARD, CLAIM, DUMMY = slice(0, 2), 2, 3  # the lock's actions
DEEP_ENOUGH = 2  # steps that the goal of a random MDP is away from the start at the least


def combination_lock(
    n: int, *, gamma: float | None = None, uniform_rho: bool = False
) -> ContextualMDP:
    """A combination lock: n cells, of which one comes to the next only by going forward each time.

    Two of the four actions go forward (and stay in the last cell), one claims, one is a dummy;
    claim and dummy lead back to cell 0. ω_k pays 1 for a claim in cell k. A uniform policy goes
    forward with probability 1/2, so that it comes through all n - 1 cells with 2^-(n-1).
    uniform_rho: start anywhere, as the theorems assume; else in cell 0.

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
    """A corridor of n cells: walk along it, collect in cell k (which stays put and pays again).

    It is a grid world of one row: up and down run into walls, and dummy actions stay put.

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
    """An open m × m grid; the goals climb a staircase from one corner to the opposite one.

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
    """n states whose actions lead to states drawn at random; the goal is as far away as can be.

    The goal is the state that takes the most steps from state 0, and the contexts are the states on
    a shortest way to it. One more action claims: it pays in the goal and stays put. A draw in which
    the goal is less than two steps away is drawn again.

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
        way = _farthest(moves)
        if len(way) > DEEP_ENOUGH:
            break
    transitions = np.hstack([moves, states[:, None]])
    return _with_goals(transitions, np.array(way), actions, np.eye(n)[0], gamma)


def _check_size(n: int, entries: int) -> None:
    """Refuse an MDP whose tables would fill the memory, before they are made."""
    if entries > MOST_ENTRIES:
        raise RollinError(
            f"An MDP of size {n:,} has tables of {entries:,} entries, and at most {MOST_ENTRIES:,} "
            "can be held: choose a smaller n."
        )


def _farthest(moves: NDArray[np.int64]) -> list[int]:
    """A shortest way from state 0 to a state that is farthest from it, both ends included."""
    came_from = {0: 0}
    order = [0]
    for s in order:  # breadth first: it grows while it is read
        for after in moves[s].tolist():
            if after not in came_from:
                came_from[after] = s
                order.append(after)
    way = [order[-1]]
    while way[-1] != 0:
        way.append(came_from[way[-1]])
    return way[::-1]


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
