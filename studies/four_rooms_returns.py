"""Which final returns four rooms can give at all: exact, without a run.

The paper prints 10.620 (easy) and 1.067 (hard) for ROLLIN at α = 0.001 and does not say how the
final return is computed. Here are the returns of three policies that need no training under every
reading of it that we could think of: the soft-optimal one, the one that collects at the nearest
rewarded cell for ever (where the sampled gradient settles), and the one that collects on the goal.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar, root_scalar
from threadpoolctl import threadpool_limits

from rollin.paper.four_rooms import HEADLINE_BETA, RETURN
from rollin.tabular import soft
from rollin.tabular.families import COLLECT, REWARDS, four_rooms
from rollin.tabular.mdp import Array, ContextualMDP, TabularTask
from rollin.tabular.start import Start, roll_in

HORIZON = 50
ALPHA = 0.001  # of the rows in which every seed collects
GAMMAS = (0.93, 0.95, 0.96, 0.963, 0.97, 0.973, 0.975)
HORIZONS = (28, 29, 30, 32, 33, 35, 40, 50, 100)
NEVER = -1e3  # log π of an action that is not taken: e^-1000 is 0, and 0 · log 0 stays 0
EASY = RETURN["easy", ALPHA][HEADLINE_BETA].mean
HARD = RETURN["hard", ALPHA][HEADLINE_BETA].mean


def collector(task: TabularTask, cells: NDArray[np.bool_]) -> Array:
    """log π of walking the shortest way to one of the cells (S,) and collecting there for ever."""
    after = task.mdp.transitions[:, :COLLECT]
    distance = np.where(cells, 0.0, np.inf)
    while not np.isfinite(distance).all():
        distance = np.minimum(distance, 1 + distance[after].min(1))
    action = np.where(cells, COLLECT, distance[after].argmin(1))
    log_pi = np.full(task.r.shape, NEVER)
    log_pi[np.arange(len(action)), action] = 0.0
    return log_pi


def edge_collector(task: TabularTask) -> Array:
    """Collects at the nearest rewarded cell."""
    return collector(task, task.r[:, COLLECT] > 0)


def goal_collector(task: TabularTask) -> Array:
    """Collects on the goal, where the reward is largest."""
    return collector(task, task.r[:, COLLECT] == task.r.max())


def soft_optimal(task: TabularTask, alpha: float = ALPHA) -> Array:
    """The optimal policy with the entropy bonus."""
    return soft.soft_value_iteration(task, alpha).log_pi


Policy = Callable[[TabularTask], Array]
Return = Callable[[TabularTask, Array], float]
POLICIES: dict[str, Policy] = {
    "edge": edge_collector,
    "goal": goal_collector,
    "soft-optimal": soft_optimal,
}


def discounted(task: TabularTask, log_pi: Array) -> float:
    """Our reading: 50 steps from ρ, discounted."""
    return soft.expected_sum(task.mdp, log_pi, task.r, HORIZON, task.mdp.gamma)


def undiscounted(task: TabularTask, log_pi: Array) -> float:
    """50 steps from ρ, not discounted."""
    return soft.expected_sum(task.mdp, log_pi, task.r, HORIZON)


def infinite(task: TabularTask, log_pi: Array) -> float:
    """The value of π at ρ."""
    return float(task.mdp.rho @ soft.evaluate(task, log_pi).v)


def with_entropy(task: TabularTask, log_pi: Array) -> float:
    """V^π as the paper defines it: the value with the discounted entropy, α = 0.001."""
    return float(task.mdp.rho @ soft.evaluate(task, log_pi, ALPHA).v)


def mean_to_go(task: TabularTask, log_pi: Array) -> float:
    """Mean of the rewards-to-go R_t over the 50 steps of a batch: what the gradient averages."""
    gamma, pi = task.mdp.gamma, np.exp(log_pi)
    immediate, kernel = (pi * task.r).sum(1), task.mdp.policy_kernel(pi)
    at, total = task.mdp.rho, 0.0
    for t in range(HORIZON):
        # r_t is in R_0 … R_t, with γ^t … γ^0
        total += float(at @ immediate) * (1 - gamma ** (t + 1)) / (1 - gamma)
        at = at @ kernel
    return total / HORIZON


def from_mu(task: TabularTask, log_pi: Array) -> float:
    """50 steps, discounted, from μ at β = 0.75 as if the policy before were the same."""
    return float(_mu(task, log_pi) @ soft.evaluate(task, log_pi, 0.0, HORIZON).v)


def from_mu_infinite(task: TabularTask, log_pi: Array) -> float:
    """The value at μ at β = 0.75, likewise."""
    return float(_mu(task, log_pi) @ soft.evaluate(task, log_pi).v)


def _mu(task: TabularTask, log_pi: Array) -> Array:
    return roll_in(task.mdp, Start(task.mdp.rho), log_pi, HEADLINE_BETA).mu


READINGS: dict[str, Return] = {
    "discounted, 50 steps (rollin)": discounted,
    "discounted, infinite horizon": infinite,
    "infinite horizon with entropy": with_entropy,
    "undiscounted, 50 steps": undiscounted,
    "mean reward-to-go of a batch": mean_to_go,
    "from μ (β = 0.75), 50 steps": from_mu,
    "from μ (β = 0.75), infinite horizon": from_mu_infinite,
}


@cache
def _four_rooms(reward: str) -> ContextualMDP:
    return four_rooms(reward)


def last_task(reward: str, gamma: float) -> TabularTask:
    """Four rooms on its last context."""
    mdp = _four_rooms(reward).replace(gamma=gamma)
    return mdp.task(mdp.K)


def value(reading: Return, policy: Policy, reward: str, gamma: float) -> float:
    """The return of a policy as a reading has it."""
    task = last_task(reward, gamma)
    with threadpool_limits(1):  # many small products, which threads only slow down
        return reading(task, policy(task))


def pays_until(reward: str, alpha: float, gamma: float) -> int:
    """The last context on which the edge collector's 50 steps are worth more than acting at random.

    With the entropy: the uniform policy earns α log 105 a step, the collector none.
    """
    mdp = _four_rooms(reward).replace(gamma=gamma)
    uniform = np.full(mdp.rewards.shape[1:], -np.log(mdp.n_actions))
    worth = []
    for k in range(mdp.K + 1):
        task = mdp.task(k)
        collecting, random = (
            float(mdp.rho @ soft.evaluate(task, log_pi, alpha, HORIZON).v)
            for log_pi in (edge_collector(task), uniform)
        )
        worth.append(collecting > random)
    return int(np.flatnonzero(worth)[-1])


class Fit(NamedTuple):
    """The γ at which a policy's easy return is the published one, and its hard return there."""

    gamma: float
    hard: float

    @property
    def ratio(self) -> float:
        """Easy over hard."""
        return EASY / self.hard


def solve(excess: Callable[[float], float]) -> float | None:
    """The γ at which a growing excess is 0; None if there is none."""
    low, high = 0.5, 0.999
    if excess(low) * excess(high) > 0:
        return None
    return float(root_scalar(excess, bracket=(low, high), xtol=1e-8).root)


def fit(reading: Return, policy: Policy) -> Fit | None:
    """Solve for γ; None if no γ gives the published easy return."""
    gamma = solve(lambda g: value(reading, policy, "easy", g) - EASY)
    return None if gamma is None else Fit(gamma, value(reading, policy, "hard", gamma))


class HorizonFit(NamedTuple):
    """The edge collectors' returns over some steps with a discount, beside the published ones."""

    horizon: int
    gamma: float
    easy: float
    hard: float

    @property
    def error(self) -> float:
        """The larger of the two relative errors."""
        return max(abs(self.easy / EASY - 1), abs(self.hard / HARD - 1))


def with_horizon(horizon: int, gamma: float) -> HorizonFit:
    """Returns of the edge collectors; γ = 1 is allowed."""
    returns = []
    for reward in ("easy", "hard"):
        task = last_task(reward, 0.95)  # the collector is the same at every γ
        log_pi = edge_collector(task)
        returns.append(soft.expected_sum(task.mdp, log_pi, task.r, horizon, gamma))
    return HorizonFit(horizon, gamma, *returns)


def fit_with_horizon(horizon: int) -> HorizonFit:
    """The γ ≤ 1 with the smallest error: both returns grow with γ, so the error has one minimum."""
    with threadpool_limits(1):
        found: Any = minimize_scalar(
            lambda gamma: with_horizon(horizon, gamma).error,
            bounds=(0.9, 1), method="bounded", options={"xatol": 1e-8},
        )  # fmt: skip
        fits = (with_horizon(horizon, gamma) for gamma in (float(found.x), 1.0))
        return min(fits, key=lambda fit: fit.error)


class Pair(NamedTuple):
    """Two policies that collect for ever at a distance to the goal, one for each reward."""

    easy: int
    hard: int
    gamma: float
    value: float


def pairs(horizon: int | None) -> Iterator[Pair]:
    """For any two distances D at which the policies may collect: γ from easy, then hard.

    In closed form, γ_reward^D Σ_t γ^t: whatever the walls are, a cell at distance D of (8, 8) is
    at least 16 - D moves from (0, 0), and our walls let one get there in as many.
    """

    def collects(gamma: float, distance: int) -> float:
        rest = 0.0 if horizon is None else gamma**horizon
        return (gamma ** (16 - distance) - rest) / (1 - gamma)

    (easy, easy_reach), (hard, hard_reach) = REWARDS["easy"], REWARDS["hard"]
    for at in range(easy_reach + 1):
        gamma = solve(lambda g, at=at: easy**at * collects(g, at) - EASY)
        assert gamma is not None  # at γ → 1 every one of them is worth more
        for other in range(hard_reach + 1):
            yield Pair(at, other, gamma, hard**other * collects(gamma, other))
