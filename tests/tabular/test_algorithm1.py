"""Algorithm 1: the start distributions, the order of its lines, and what it is for."""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rollin.curriculum.contexts import SubOptimality, SuccessRate
from rollin.curriculum.mastery import StepGap
from rollin.curriculum.progress import Progress
from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.algorithm1 import TabularState, rollin, solve
from rollin.tabular.families import Grid, grid_world
from rollin.tabular.kernels.tables import Dynamics, Stream
from rollin.tabular.learners import (
    BatchSPG,
    ExactPG,
    NaturalPG,
    RandomHorizonSPG,
    StepInfo,
    TabularLearner,
    constant_schedule,
)
from rollin.tabular.mdp import ContextualMDP, TabularTask
from rollin.tabular.start import Start, StartSampler, roll_in
from tests.conftest import mdps, random_log_pi, random_mdp


@given(mdps(), st.floats(0.01, 0.99), st.integers(0, 99))
@settings(max_examples=30)
def test_mu_has_its_closed_form(mdp: ContextualMDP, beta: float, seed: int) -> None:
    one, two = random_log_pi(mdp, seed), random_log_pi(mdp, seed + 1)
    first = roll_in(mdp, Start(mdp.rho), one, beta, recursive=True)
    second = roll_in(mdp, first, two, beta, recursive=True)
    I = np.eye(mdp.n_states)  # noqa: E741

    def resolvent(log_pi: np.ndarray) -> np.ndarray:
        kernel = mdp.policy_kernel(np.exp(log_pi))
        return (1 - mdp.gamma) * np.linalg.inv(I - mdp.gamma * kernel)

    d1 = mdp.rho @ resolvent(one)
    mu1 = beta * d1 + (1 - beta) * mdp.rho
    mu2 = beta * mu1 @ resolvent(two) + (1 - beta) * mdp.rho
    np.testing.assert_allclose(first.mu, mu1, atol=1e-12)
    np.testing.assert_allclose(second.mu, mu2, atol=1e-12)
    from_rho = roll_in(mdp, first, two, beta)
    np.testing.assert_allclose(from_rho.mu, beta * mdp.rho @ resolvent(two) + (1 - beta) * mdp.rho)


def chi_square(counts: np.ndarray, law: np.ndarray) -> float:
    expected = law * counts.sum()
    small = expected < 10
    observed = np.append(counts[~small], counts[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    keep = wanted > 0
    assert (observed[~keep] == 0).all()
    return float(stats.chisquare(observed[keep], wanted[keep]).pvalue)


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("recursive", [True, False])
def test_sampled_roll_in_has_the_exact_law(deterministic: bool, recursive: bool) -> None:
    mdp = random_mdp(31, S=6, A=4, gamma=0.9, deterministic=deterministic)
    start = Start(mdp.rho)
    for seed in (1, 2, 3):
        log_pi = random_log_pi(mdp, seed, spread=2.0)
        start = roll_in(mdp, start, log_pi, 0.6, recursive=recursive, sampled=True)
    assert len(start.chain) == (3 if recursive else 1)
    dynamics = Dynamics.of(mdp)
    drawn, spent = StartSampler(dynamics, start).draw(Stream(8), 100_000)
    assert chi_square(np.bincount(drawn // dynamics.P, minlength=6), start.mu) > 1e-4
    levels = sum(0.6**n for n in range(1, 4)) if recursive else 0.6
    assert spent / 100_000 == pytest.approx(levels * 0.9 / 0.1, rel=0.03)
    direct, free = StartSampler(dynamics, Start(start.mu)).draw(Stream(9), 100_000)
    assert chi_square(np.bincount(direct // dynamics.P, minlength=6), start.mu) > 1e-4
    assert free == 0


@pytest.mark.parametrize("beta", [-0.1, 1.0, 2.0, float("nan")])
def test_beta_outside_its_range_is_refused(beta: float, mdp: ContextualMDP) -> None:
    with pytest.raises(RollinError, match=r"beta must lie in \[0, 1\)"):
        roll_in(mdp, Start(mdp.rho), random_log_pi(mdp, 0), beta)
    with pytest.raises(RollinError, match=r"beta must lie in \[0, 1\)"):
        next(rollin(mdp, ExactPG(mdp, 0.1), beta, SuccessRate()))


@dataclass
class Script:
    """A rule that masters each context after a given number of steps."""

    lengths: list[int]
    seen: int = 0

    def mastered(self, measured: float) -> str | None:
        self.seen += 1
        if self.lengths and self.seen == self.lengths[0]:
            self.lengths.pop(0)
            self.seen = 0
            return "as scripted"
        return None


class Spy(TabularLearner):
    """Records what the loop asks for; a step adds 1 to θ(0, 0)."""

    def __init__(self, mdp: ContextualMDP) -> None:
        super().__init__(mdp, 0.1, 5, None)
        self.calls: list[tuple[str, int]] = []
        self.starts: list[Start] = []

    def begin(self, task: TabularTask, start: Start) -> None:
        super().begin(task, start)
        self.calls.append(("begin", task.k))
        self.starts.append(start)

    def step(self) -> StepInfo:
        self.theta[0, 0] += 1
        self.calls.append(("step", self.task.k))
        return StepInfo(0.0)


def test_the_loop_follows_algorithm_1() -> None:
    mdp = random_mdp(1, contexts=3)
    spy, state = Spy(mdp), TabularState.initial(mdp)
    events = list(islice(rollin(mdp, spy, 0.5, Script([2, 1]), state, recursive=True), 6))
    assert spy.calls == [
        ("begin", 0), ("step", 0), ("step", 0),
        ("begin", 1), ("step", 1),
        ("begin", 2), ("step", 2), ("step", 2), ("step", 2),
    ]  # fmt: skip
    assert [e.k for e in events] == [0, 0, 1, 2, 2, 2]
    assert [e.advance for e in events] == [None, "as scripted", "as scripted", None, None, None]
    assert [(a.step, a.k) for a in state.progress.advances] == [(2, 1), (3, 2)]
    # line 5: θ is kept; line 6: μ_k from the policy at the switch
    assert spy.theta[0, 0] == 6
    first = np.zeros((4, 3))
    first[0, 0] = 2
    np.testing.assert_allclose(state.policies[0], soft.log_softmax(first))
    expected = 0.5 * soft.visitation(mdp, state.policies[0], mdp.rho) + 0.5 * mdp.rho
    np.testing.assert_allclose(spy.starts[1].mu, expected)
    expected = 0.5 * soft.visitation(mdp, state.policies[1], spy.starts[1].mu) + 0.5 * mdp.rho
    np.testing.assert_allclose(spy.starts[2].mu, expected)


def test_the_baseline_always_starts_from_rho() -> None:
    mdp = random_mdp(1, contexts=3)
    spy = Spy(mdp)
    list(islice(rollin(mdp, spy, 0.0, Script([1, 1])), 3))
    for start in spy.starts:
        np.testing.assert_array_equal(start.mu, mdp.rho)


def corridor(length: int = 7, dummy_actions: int = 6) -> ContextualMDP:
    """Collect at ever farther cells of a corridor, among dummy actions."""
    goals = [(x, 0) for x in range(length)]
    reward = lambda d: (d <= 1) * 0.5**d  # noqa: E731
    return grid_world(Grid(length, 1), goals, reward, dummy_actions=dummy_actions, gamma=0.9)


@pytest.mark.parametrize(
    "make",
    [
        lambda mdp: ExactPG(mdp, 0.3, learning_rate=1.0),
        lambda mdp: NaturalPG(mdp, 0.3),
        lambda mdp: RandomHorizonSPG(mdp, 0.3, constant_schedule(1000, 0.2), 0),
        lambda mdp: BatchSPG(mdp, 0.3, 0, batch=200, learning_rate=0.01),
    ],
    ids=["pg", "npg", "spg", "batch"],
)
def test_every_learner_masters_a_corridor_to_the_theorys_epsilon(make) -> None:
    mdp = corridor(4)
    learner = make(mdp)
    state = TabularState.initial(mdp)
    loop = rollin(mdp, learner, 0.5, SubOptimality(0.3), state, stop_when_mastered=True)
    steps = sum(1 for _ in islice(loop, 5000))
    assert 10 < steps < 5000
    assert state.progress.finished
    best = soft.soft_value_iteration(mdp.task(mdp.K), 0.3)
    assert soft.sub_optimality(mdp.task(mdp.K), learner.log_pi, 0.3, mdp.rho, best) <= 0.3


def test_rolling_in_gets_farther_than_the_baseline() -> None:
    """On a corridor where the next goal is rarely met from the start."""
    mdp = corridor(12, dummy_actions=20)

    def reached(beta: float, seed: int) -> int:
        learner = BatchSPG(mdp, 0.01, seed, batch=300, horizon=20, learning_rate=0.01)
        return solve(mdp, beta=beta, steps=1500, learner=learner).progress.k

    assert min(reached(0.75, seed) for seed in range(3)) > max(reached(0, s) for s in range(3))


def test_solve_is_repeatable_and_checks_its_input() -> None:
    mdp = corridor()
    one, two = (solve(mdp, steps=50, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.log_pi, two.log_pi)
    assert 0 <= one.kappa <= 1
    with pytest.raises(RollinError, match="steps must be at least 1"):
        solve(mdp, steps=0)


@pytest.mark.parametrize("rule", [SuccessRate(0.5), StepGap(most=1.0)])
def test_a_first_context_that_no_success_can_master_is_refused(rule) -> None:
    goals = [(3, 0), (1, 0)]  # the first is farther than the horizon
    mdp = grid_world(Grid(4, 1), goals, lambda d: (d == 0) * 1.0)
    short, enough = (BatchSPG(mdp, 0.01, 0, batch=10, horizon=horizon) for horizon in (3, 4))
    with pytest.raises(RollinError, match=r"no trajectory of 3 steps .* give a longer horizon"):
        solve(mdp, steps=2, learner=short, rule=rule)
    solve(mdp, steps=2, learner=short, rule=SubOptimality(0.01))  # which needs no success
    solve(mdp, steps=2, learner=enough, rule=rule)  # three moves, and the collect


def test_progress_ends_at_the_final_context() -> None:
    progress = Progress(2)
    progress.advance(5, "because")
    assert progress.kappa == 0.5
    progress.advance(9, "again")
    assert progress.finished
    with pytest.raises(RollinError, match="final context, 2"):
        progress.advance(10, "no")
    with pytest.raises(RollinError, match="at least two contexts"):
        Progress(0)


def test_rules_are_strict_where_the_paper_is() -> None:
    assert SuccessRate(0.5).mastered(0.5) is None
    assert SuccessRate(0.5).mastered(0.5005) == "success rate 0.500 > 0.5"
    assert SubOptimality(0.1).mastered(0.1) is not None
    assert SubOptimality(0.1).mastered(0.11) is None
    with pytest.raises(RollinError, match=r"\[0, 1\)"):
        SuccessRate(1.0)
    with pytest.raises(RollinError, match="greater than 0"):
        SubOptimality(0.0)


def test_the_theory_s_rule_is_reached_from_solve_and_holds_at_every_switch() -> None:
    mdp, alpha, epsilon = random_mdp(3), 0.2, 0.05
    solution = solve(
        mdp, beta=0.5, alpha=alpha, steps=400, rule=SubOptimality(epsilon),
        learner=NaturalPG(mdp, alpha, learning_rate=0.02),
    )  # fmt: skip
    assert solution.kappa == 1
    assert all("sub-optimality" in advance.reason for advance in solution.progress.advances)
    done = solution.progress.completed
    assert done is not None
    state = TabularState.initial(mdp)
    learner = NaturalPG(mdp, alpha, learning_rate=0.02)
    for event in rollin(mdp, learner, 0.5, SubOptimality(epsilon), state):
        task = mdp.task(event.k)
        best = soft.soft_value_iteration(task, alpha)
        gap = soft.sub_optimality(task, learner.log_pi, alpha, mdp.rho, best)
        assert (gap <= epsilon) == (event.advance is not None or state.step == done.step)
        if state.step == done.step:
            break
