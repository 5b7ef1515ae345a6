"""ROLLIN in theory: Algorithm 1 of the paper, line by line.

The loop yields after every gradient step and knows nothing of files or screens; whoever consumes
it decides when to stop, what to log and when to write a checkpoint.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rollin.checks import check_beta
from rollin.curriculum.progress import Progress
from rollin.curriculum.rules import AdvanceRule, SubOptimality, SuccessRate
from rollin.curriculum.step_gap import StepGap
from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.elimination import Elimination, success_from
from rollin.tabular.learner import StepInfo, TabularLearner
from rollin.tabular.mdp import Array, ContextualMDP
from rollin.tabular.start import Start, roll_in


@dataclass
class TabularState:
    """All that Algorithm 1 keeps besides the learner.

    progress: the context k; step: gradient steps so far; start: μ_k;
    policies: log π of each mastered context, at the moment of its switch.
    """

    progress: Progress
    start: Start
    policies: list[Array]
    step: int = 0

    @classmethod
    def initial(cls, mdp: ContextualMDP) -> "TabularState":
        """Line 2: μ_0 = ρ, at context 0."""
        return cls(Progress(mdp.K), Start(mdp.rho), [])


@dataclass(frozen=True)
class GradientStep:
    """One gradient step: what it was on, what it reported, and why the context advances, if so."""

    step: int
    k: int
    info: StepInfo
    advance: str | None


Measure = Callable[[TabularLearner, StepInfo], float]


def success_rate(learner: TabularLearner, info: StepInfo) -> float:
    """What the experiment's rule looks at: the success rate of the batch, which starts from μ_k."""
    return info.success


def measure_success_from_rho(mdp: ContextualMDP) -> Measure:
    """The probability of success within the horizon from ρ after the step, exact."""
    structure = Elimination.of(mdp).arrays if mdp.deterministic else None

    def measure(learner: TabularLearner, info: StepInfo) -> float:
        task, horizon = learner.task, learner.horizon
        if structure is None:
            return soft.success_probability(task, learner.log_pi, mdp.rho, horizon)
        theta = learner.theta.astype(np.float64)
        return success_from(theta, task.success, mdp.rho, horizon, structure)

    return measure


def measure_sub_optimality() -> Measure:
    """What the theory's rule looks at: V*(ρ) - V^π(ρ), exact, with π* computed once a context."""
    optima: dict[int, soft.SoftOptimum] = {}

    def measure(learner: TabularLearner, info: StepInfo) -> float:
        task = learner.task
        if task.k not in optima:
            optima[task.k] = soft.soft_value_iteration(task, learner.alpha)
        rho = learner.mdp.rho
        return soft.sub_optimality(task, learner.log_pi, learner.alpha, rho, optima[task.k])

    return measure


def measure_of(rule: AdvanceRule) -> Measure:
    """What a rule looks at."""
    return measure_sub_optimality() if isinstance(rule, SubOptimality) else success_rate


def check_first_context(mdp: ContextualMDP, rule: AdvanceRule, horizon: int) -> None:
    """Refuse a first context that a rule of successes can never leave."""
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
    """Algorithm 1 over any learner; β = 0 is the baseline.

    measure: what the rule looks at, if not what rules of its kind do (`measure_of`). On the last
    context it goes on for ever, unless `stop_when_mastered`. To resume, pass the saved
    state and a learner that has begun the current task and has its own state back.
    """
    check_beta(beta)
    measure = measure or measure_of(rule)
    state = TabularState.initial(mdp) if state is None else state
    progress = state.progress
    if state.step == 0:
        learner.begin(mdp.task(0), state.start)  # line 3
    while True:  # lines 4 to 8: for k = 1, …, K
        k = progress.k
        info = learner.step()  # line 7, one step of it (line 3 for k = 0)
        state.step += 1
        mastered = rule.mastered(measure(learner, info))
        if mastered and k == mdp.K:
            progress.complete(state.step, mastered)
        if mastered and k < mdp.K:
            learner.check(state.step)
            log_pi = learner.log_pi  # line 5: θ_0^(k+1) = θ*_k, as the learner keeps its parameters
            state.policies.append(log_pi)
            state.start = roll_in(  # line 6: μ_{k+1} = β d + (1-β) ρ
                mdp, state.start, log_pi, beta, recursive=recursive, sampled=sampled
            )
            progress.advance(state.step, mastered)
            learner.begin(mdp.task(progress.k), state.start)
        told = mastered if k < mdp.K or stop_when_mastered else None
        yield GradientStep(state.step, k, info, told)
        if mastered and k == mdp.K and stop_when_mastered:
            return  # line 9: θ*_K
