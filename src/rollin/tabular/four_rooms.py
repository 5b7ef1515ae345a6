"""The paper's four rooms (Section 4.4 and Appendix F): 12 × 12 cells, 105 actions, 17 goals.

Not stated in the paper: the walls, the path and γ. The choices here are those under which its
pattern of results appears; `docs/choices.md` lists them.
"""

from functools import partial

import numpy as np

from rollin.errors import RollinError
from rollin.tabular.grid import Cell, Grid, Wall, grid_world
from rollin.tabular.mdp import Array, ContextualMDP

DUMMY_ACTIONS = 100
GAMMA = 0.95
GRID = Grid(12, 12, walls=(Wall("x", 5, doors=(4, 8)), Wall("y", 5, doors=(3, 8))))

# (γ_reward, D_threshold) of the reward γ_reward^D if D ≤ D_threshold else 0 (Appendix F.1)
REWARDS: dict[str, tuple[float, int]] = {"easy": (0.9, 5), "hard": (0.5, 4)}


def path() -> list[Cell]:
    """The goals ω_0 … ω_16: adjacent cells from (0, 0) by a staircase to (4, 4), then to (8, 8)."""
    staircase = [((i + 1) // 2, i // 2) for i in range(9)]
    right = [(x, 4) for x in range(5, 9)]
    up = [(8, y) for y in range(5, 9)]
    return staircase + right + up


def reward_of_distance(distance: Array, base: float, threshold: int) -> Array:
    """r_four_room: base^D within the threshold, 0 beyond."""
    return np.where(distance <= threshold, base**distance, 0.0)


def four_rooms(
    reward: str = "easy", gamma: float = GAMMA, success: str = "rewarded"
) -> ContextualMDP:
    """The contextual MDP of the four-room experiment with the easy or the hard reward.

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
