"""ROLLIN in theory: Algorithm 1 of the paper, line by line, and `solve`, which runs it.

The loop yields after every gradient step and knows nothing of files or screens: its consumer
decides when to stop, what to log and when to write a checkpoint. `rollin train` adds files and
resume.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from threadpoolctl import threadpool_limits

from rollin.checks import at_least, check_beta, shown
from rollin.curriculum.contexts import AdvanceRule, SubOptimality, SuccessRate
from rollin.curriculum.mastery import StepGap
from rollin.curriculum.progress import Progress
from rollin.errors import RollinError, short_repr
from rollin.tabular import soft
from rollin.tabular.kernels.exact import structure_of, success_from
from rollin.tabular.learners import BatchSPG, StepInfo, TabularLearner
from rollin.tabular.mdp import Array, ContextualMDP, check_mdp
from rollin.tabular.start import Start, roll_in


@dataclass
class TabularState:
    """The state of Algorithm 1 besides the learner.

    progress: the context k; step: gradient steps so far; start: μ_k;
    policies: log π of each mastered context when it was mastered.
    """

    progress: Progress
    start: Start
    policies: list[Array]
    step: int = 0

    @classmethod
    def initial(cls, mdp: ContextualMDP) -> "TabularState":
        """Return the state of line 2: μ_0 = ρ, at context 0."""
        return cls(Progress(mdp.K), Start(mdp.rho), [])


@dataclass(frozen=True)
class GradientStep:
    """One gradient step on context k; advance: why it was mastered, None if it was not."""

    step: int
    k: int
    info: StepInfo
    advance: str | None


Measure = Callable[[TabularLearner, StepInfo], float]
"""The number after a gradient step by which a rule decides."""


def success_rate(learner: TabularLearner, info: StepInfo) -> float:
    """Return the measure of the experiment: the success rate of the batch, from μ_k."""
    return info.success


def measure_success_from_rho(mdp: ContextualMDP) -> Measure:
    """Return the measure of success within the horizon from ρ after the step, exact."""
    structure = structure_of(mdp) if mdp.deterministic else None

    def measure(learner: TabularLearner, info: StepInfo) -> float:
        task = learner.task
        horizon = learner.horizon
        if structure is None:
            return soft.success_probability(task, learner.log_pi, mdp.rho, horizon)
        theta = learner.theta.astype(np.float64)
        return success_from(theta, task.success, mdp.rho, horizon, structure)

    return measure


def measure_sub_optimality() -> Measure:
    """Return the measure of the theory, V*(ρ) - V^π(ρ), exact; π* is computed once a context."""
    optima: dict[int, soft.SoftOptimum] = {}

    def measure(learner: TabularLearner, info: StepInfo) -> float:
        task = learner.task
        if task.k not in optima:
            optima[task.k] = soft.soft_value_iteration(task, learner.alpha)
        rho = learner.mdp.rho
        return soft.sub_optimality(task, learner.log_pi, learner.alpha, rho, optima[task.k])

    return measure


def measure_of(rule: AdvanceRule) -> Measure:
    """Return the measure of a rule."""
    return measure_sub_optimality() if isinstance(rule, SubOptimality) else success_rate


def check_first_context(mdp: ContextualMDP, rule: AdvanceRule, horizon: int) -> None:
    """Raise if a rule of successes can never advance from the first context."""
    counts = isinstance(rule, SuccessRate | StepGap)
    if counts and not mdp.rho @ soft.most_success(mdp.task(0), horizon) > 0:
        raise RollinError(
            f"The rule needs successes, and no trajectory of {horizon} steps from ρ can have one "
            "under the first context: give a longer horizon, or an easier first context."
        )


def rollin(
    mdp: ContextualMDP,
    learner: TabularLearner,
    beta: float,
    rule: AdvanceRule,
    state: TabularState | None = None,
    *,
    measure: Measure | None = None,
    recursive: bool = False,
    sampled: bool = False,
    stop_when_mastered: bool = False,
) -> Iterator[GradientStep]:
    """Run Algorithm 1 with any learner; β = 0 is the baseline.

    measure: the number by which the rule decides. Default: `measure_of` the rule. On the final
    context the loop is endless, unless `stop_when_mastered`. To resume, pass the saved state and a
    learner that has begun the current task and has its state restored.
    """
    check_beta(beta)
    measure = measure or measure_of(rule)
    state = TabularState.initial(mdp) if state is None else state  # line 2: μ_0 = ρ
    progress = state.progress
    if state.step == 0:
        learner.begin(mdp.task(progress.k), state.start)  # line 3
    while True:  # lines 4 to 8: for k = 1, …, K
        k = progress.k
        info = learner.step()  # line 7, one step of it (line 3 for k = 0)
        state.step += 1
        mastered = rule.mastered(measure(learner, info))
        if mastered and k < mdp.K:
            learner.check(state.step)
            log_pi = learner.log_pi  # line 5: θ_0^(k+1) = θ*_k, as the learner keeps its parameters
            state.policies.append(log_pi)
            state.start = roll_in(  # line 6: μ_{k+1} = β d + (1-β) ρ
                mdp, state.start, log_pi, beta, recursive=recursive, sampled=sampled
            )
            progress.advance(state.step, mastered)
            learner.begin(mdp.task(progress.k), state.start)
        elif mastered:
            progress.complete(state.step, mastered)
        ends = k < mdp.K or stop_when_mastered
        yield GradientStep(state.step, k, info, mastered if ends else None)
        if mastered and k == mdp.K and stop_when_mastered:
            return  # line 9: θ*_K


@dataclass(frozen=True, repr=False)
class Solution:
    """The result of `rollin.solve`.

    log_pi: (S, A) logarithms of the policy; progress: k, K and all advances; final_return: exact
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
        """Return the curriculum progress κ ∈ [0, 1]."""
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

    beta: fraction of trajectories that roll in; 0 is the baseline.
    rule: when to advance. Default: `SuccessRate(threshold)`; `SubOptimality(ε)` is the theory's;
        `StepGap()` needs no threshold.
    learner: a policy-gradient learner, which has its own α and seed. Default: the experiment's
        BatchSPG with `alpha` and `seed`.

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
