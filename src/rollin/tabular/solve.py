"""ROLLIN on an MDP in one call, for notebooks and scripts; `rollin train` adds files and resume."""

from dataclasses import dataclass
from itertools import islice

from threadpoolctl import threadpool_limits

from rollin.checks import at_least, shown
from rollin.curriculum.progress import Progress
from rollin.curriculum.rules import AdvanceRule, SuccessRate
from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.learner import TabularLearner
from rollin.tabular.mdp import Array, ContextualMDP, check_mdp
from rollin.tabular.policy_gradient import BatchSPG
from rollin.tabular.provable import TabularState, check_first_context, rollin
from rollin.texts import short_repr


@dataclass(frozen=True, repr=False)
class Solution:
    """The result of `rollin.solve`.

    log_pi: (S, A) logarithms of the policy. progress: k, K and all advances. final_return: exact
    return of the policy on the final context.
    """

    log_pi: Array
    progress: Progress
    final_return: float

    def __repr__(self) -> str:
        p = self.progress
        return short_repr(self, kappa=p.kappa, k=p.k, K=p.K, final_return=self.final_return)

    @property
    def kappa(self) -> float:
        """Curriculum progress κ ∈ [0, 1]."""
        return self.progress.kappa


def solve(
    mdp: ContextualMDP,
    *,
    beta: float = 0.75,
    alpha: float = 0.01,
    steps: int = 50_000,
    seed: int = 0,
    threshold: float = 0.5,
    rule: AdvanceRule | None = None,
    learner: TabularLearner | None = None,
) -> Solution:
    """Train a tabular policy along the curriculum of `mdp`, with ROLLIN or its baseline.

    beta: share of trajectories that roll in; 0 is the baseline.
    rule: when to advance: `SuccessRate(threshold)` if None; `SubOptimality(ε)` is the theory's;
        `StepGap()` needs no threshold.
    learner: any of the policy-gradient learners, which then has its own α and seed; the
        experiment's BatchSPG with `alpha` and `seed` if None.

    >>> import rollin
    >>> goals = [(x, 0) for x in range(8)]
    >>> mdp = rollin.grid_world(rollin.Grid(8, 1), goals, reward=lambda d: (d == 0) * 1.0)
    >>> solution = rollin.solve(mdp, beta=0.5, alpha=0.01, steps=500, seed=0)
    >>> solution.kappa, solution.log_pi.shape
    (1.0, (8, 5))
    >>> [advance.k for advance in solution.progress.advances]
    [1, 2, 3, 4, 5, 6, 7]
    """
    check_mdp(mdp)
    at_least(1, "steps", steps)
    rule = SuccessRate(threshold) if rule is None else rule
    if not hasattr(rule, "mastered"):
        raise RollinError(
            f"rule must have a method mastered, such as rollin.SuccessRate(0.5), got {shown(rule)}:"
            " for a success rate of 0.5, write threshold=0.5."
        )
    if learner is not None and not isinstance(learner, TabularLearner):
        raise RollinError(
            "learner must be a policy-gradient learner, such as rollin.BatchSPG(mdp, 0.01), got "
            f"{shown(learner)}."
        )
    learner = BatchSPG(mdp, alpha, seed) if learner is None else learner
    check_first_context(mdp, rule, learner.horizon)
    state = TabularState.initial(mdp)
    with threadpool_limits(1):  # many small solves, which threads only slow down
        for _ in islice(rollin(mdp, learner, beta, rule, state), steps):
            pass
    learner.check(steps)
    last = mdp.task(mdp.K)
    value = soft.evaluate(last, learner.log_pi, horizon=learner.horizon).v
    return Solution(learner.log_pi, state.progress, float(mdp.rho @ value))
