"""Complexity gains: families, compiled walks, fits with cut-off runs, a study that resumes."""

import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import wait
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rollin
from rollin.analysis.gains import FIT_COLUMNS, CurveName, curves_of, fit_rows
from rollin.analysis.growth import Costs, costs_by_size, fit_growth
from rollin.cli import main
from rollin.errors import RollinError
from rollin.paper import complexity_gains as study
from rollin.runs.directory import LOCK, RunBusyError, RunDirectory
from rollin.runs.files import make_directory, read_json
from rollin.runs.systems import take_lock
from rollin.sweeps import pool
from rollin.sweeps.pool import run_in_pool
from rollin.sweeps.row_store import RowStore, read_rows, rows_text
from rollin.tabular import soft
from rollin.tabular.elimination import Elimination, success_from, visitation_of
from rollin.tabular.families import combination_lock, corridor, random_mdp, square_grid
from rollin.tabular.learner import TabularLearner
from rollin.tabular.policy_gradient import RandomHorizonSPG, constant_schedule
from rollin.tabular.start import Start, roll_in
from rollin.tabular.until_solved import (
    Goal,
    mismatch_of,
    walk_exactly,
    walk_sampled,
    walk_with,
)
from studies import complexity_page
from tests.killing import needs_signals

ROOT = Path(__file__).parents[2]
ALPHA = 1e-4
METHODS: tuple[dict[str, Any], ...] = (
    {"scratch": True},
    {"beta": 0.0},
    {"beta": 0.5},
    {"beta": 0.9},
    {"beta": 0.9, "recursive": True},
)
MDPS = {
    "lock": combination_lock(8),
    "fixed": combination_lock(9, gamma=0.9),
    "uniform": combination_lock(7, uniform_rho=True),
    "corridor": corridor(5),
    "grid": square_grid(3),
    "random": random_mdp(12, seed=3),
}


# ------------------------------------------------------------------ families


@given(n=st.integers(2, 40), gamma=st.floats(0.05, 0.99))
@settings(max_examples=30, deadline=None)
def test_a_uniform_policy_reaches_the_locks_end_half_as_often_a_cell(n: int, gamma: float) -> None:
    """d(i+1) = γ/2 · d(i) under a uniform policy and γ · d(i) if one always goes forward."""
    mdp = combination_lock(n, gamma=gamma)
    always = np.full((n, 4), -np.inf)
    always[:, 0] = 0.0
    always[n - 1] = [-np.inf, -np.inf, 0.0, -np.inf]  # claim at the end, which leads back
    uniform = np.full((n, 4), -math.log(4))
    arrays = Elimination.of(mdp).arrays
    forward = soft.visitation(mdp, always, mdp.rho)
    half = visitation_of(np.zeros((n, 4)), mdp.rho, gamma, arrays)
    np.testing.assert_allclose(
        half, np.maximum(soft.visitation(mdp, uniform, mdp.rho), 0), 1e-6, 1e-15
    )
    # the last cell keeps those who go forward there
    stays = 1 - gamma / 2
    expected = 2.0 ** (n - 1) * stays
    assert (forward[-1] / forward[0]) / (half[-1] / half[0]) == pytest.approx(expected, rel=1e-9)


def test_the_locks_optimal_policy_goes_forward_and_claims() -> None:
    mdp = combination_lock(6)
    for k in range(6):
        best = soft.soft_value_iteration(mdp.task(k), 1e-3).log_pi.argmax(1)
        assert set(best[:k]) <= {0, 1}
        assert best[k] == 2
    assert mdp.K == 5
    assert mdp.gamma == pytest.approx(1 - 1 / 6)
    # a claim every six steps: V = γ^5 / (1 - γ^6)
    value = soft.soft_value_iteration(mdp.task(5), 1e-6).v[0]
    assert value == pytest.approx(mdp.gamma**5 / (1 - mdp.gamma**6), abs=1e-4)


def test_the_locks_start() -> None:
    assert combination_lock(5).rho.tolist() == [1, 0, 0, 0, 0]
    assert combination_lock(5, uniform_rho=True).rho.tolist() == [0.2] * 5


def test_contexts_are_as_many_steps_away_as_their_number() -> None:
    for mdp in (combination_lock(7), corridor(6), square_grid(4), random_mdp(40, seed=1)):
        distance = {0: 0}
        queue = [0]
        for s in queue:
            for after in mdp.transitions[s].tolist():
                if after not in distance:
                    distance[after] = distance[s] + 1
                    queue.append(after)
        goals = [int(np.argwhere(mdp.rewards[k] > 0)[0][0]) for k in range(mdp.K + 1)]
        assert [distance[goal] for goal in goals] == list(range(mdp.K + 1))
        assert mdp.gamma == pytest.approx(1 - 1 / (mdp.K + 1))


@given(n=st.integers(4, 60), seed=st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_the_goal_of_a_random_mdp_is_as_far_away_as_can_be(n: int, seed: int) -> None:
    mdp = random_mdp(n, seed)
    reached = np.eye(n, dtype=bool)[0]
    steps = 0
    while True:
        further = reached.copy()
        further[mdp.transitions[reached].ravel()] = True
        if (further == reached).all():
            break
        reached, steps = further, steps + 1
    assert mdp.K == steps >= 2
    assert mdp.fingerprint() == random_mdp(n, seed).fingerprint()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: combination_lock(1), "number of cells n must be at least 2, got 1"),
        (lambda: corridor(0), "number of cells n must be at least 2, got 0"),
        (lambda: corridor(4, dummy_actions=-1), "dummy actions must be ≥ 0"),
        (lambda: square_grid(1), "side m of the grid must be at least 2, got 1"),
        (lambda: random_mdp(3, 0), "number of states n must be at least 4, got 3"),
        (lambda: random_mdp(8, -1), "seed must be at least 0"),
        (lambda: combination_lock(4, gamma=1.0), r"gamma must lie in \[0, 1\)"),
    ],
)
def test_bad_families_are_refused(make, message: str) -> None:
    with pytest.raises(RollinError, match=message):
        make()


# ------------------------------------------------------------------ walks


@pytest.mark.parametrize("name", MDPS)
def test_the_compiled_walk_takes_the_steps_of_the_learners(name: str) -> None:
    """Exact and natural gradient under Algorithm 1, by rollin's own learners."""
    mdp = MDPS[name]
    goal = Goal.of(mdp)
    for how in METHODS:
        for natural in (False, True):
            rate = (1 if natural else 8) * (1 - mdp.gamma)
            make = rollin.NaturalPG if natural else rollin.ExactPG
            slow = walk_with(mdp, make(mdp, ALPHA, learning_rate=rate), 400, goal=goal, **how)
            fast = walk_exactly(mdp, ALPHA, rate, 400, goal=goal, natural=natural, **how)
            assert (fast.solved, fast.reached, fast.gradient_steps) == (
                slow.solved, slow.reached, slow.gradient_steps,
            )  # fmt: skip


def test_success_and_visitation_are_those_of_the_exact_tools() -> None:
    rng = np.random.default_rng(0)
    for mdp in MDPS.values():
        theta = rng.normal(size=(mdp.n_states, mdp.n_actions))
        log_pi = soft.log_softmax(theta)
        arrays = Elimination.of(mdp).arrays
        task = mdp.task(mdp.K)
        ours = success_from(theta, task.success, mdp.rho, 11, arrays)
        assert ours == pytest.approx(soft.success_probability(task, log_pi, mdp.rho, 11), rel=1e-9)
        mu = rng.dirichlet(np.ones(mdp.n_states))
        np.testing.assert_allclose(
            visitation_of(theta, mu, mdp.gamma, arrays), soft.visitation(mdp, log_pi, mu), 1e-9
        )


@pytest.mark.parametrize("how", METHODS, ids=str)
def test_sampled_walks_take_the_steps_of_the_learner(how) -> None:
    mdp = combination_lock(6)
    goal = Goal.of(mdp)
    ours = walk_sampled(mdp, ALPHA, 1.0, 300, goal=goal, batch=20, seed=7, **how)
    plain = RandomHorizonSPG(mdp, ALPHA, constant_schedule(20, 1.0), 7)
    slow = walk_with(mdp, plain, 300, goal=goal, sampled=True, **how)
    for name in ("solved", "reached", "gradient_steps", "env_steps", "rollin_steps"):
        assert getattr(ours, name) == getattr(slow, name)
    assert ours.solved


def test_roll_in_steps_are_counted_among_the_samples() -> None:
    """From the second context on, β of the batch walk Geom(1-γ) steps: γ/(1-γ) in the mean."""
    mdp = combination_lock(6)
    goal = Goal.of(mdp)
    without = walk_sampled(mdp, ALPHA, 1.0, 500, goal=goal, batch=20, seed=3, beta=0.0)
    with_them = walk_sampled(mdp, ALPHA, 1.0, 500, goal=goal, batch=20, seed=3, beta=0.9)
    assert without.rollin_steps == 0
    # a sample takes γ/(1-γ) steps of SamSA, √γ/(1-√γ) of EstEntQ, and one
    gamma, root = mdp.gamma, math.sqrt(mdp.gamma)
    own = gamma / (1 - gamma) + root / (1 - root) + 1
    per_sample = without.env_steps / (20 * without.gradient_steps)
    assert per_sample == pytest.approx(own, rel=0.05)
    rolled = with_them.rollin_steps / (20 * with_them.gradient_steps)
    assert 0.75 * 0.9 * gamma / (1 - gamma) < rolled < 1.05 * 0.9 * gamma / (1 - gamma)
    rest = with_them.env_steps - with_them.rollin_steps
    assert rest / (20 * with_them.gradient_steps) == pytest.approx(own, rel=0.05)


def test_a_walk_stops_at_its_cap_unsolved() -> None:
    mdp = combination_lock(8)
    walk = walk_exactly(mdp, ALPHA, 1.0, 20, goal=Goal.of(mdp))
    assert (walk.solved, walk.gradient_steps, walk.start) == (False, 20, None)
    assert walk.reached < 7
    exactly = walk_exactly(mdp, ALPHA, 1.0, 183, goal=Goal.of(mdp))
    assert (exactly.solved, exactly.gradient_steps) == (True, 183)
    short = walk_exactly(mdp, ALPHA, 1.0, 182, goal=Goal.of(mdp))
    assert (short.solved, short.gradient_steps) == (False, 182)


def test_the_predictor_from_scratch_is_the_ratio_of_visits() -> None:
    """One context, uniform policy: R = ‖d_ρ^{π*} / d_ρ^{uniform}‖_∞, by other code."""
    for mdp in MDPS.values():
        walk = walk_exactly(mdp, 1e-3, 1e-3, 1, goal=Goal.of(mdp), scratch=True, predict=True)
        log_pi = soft.soft_value_iteration(mdp.task(mdp.K), 1e-3).log_pi
        uniform = np.full_like(log_pi, -math.log(mdp.n_actions))
        wanted = soft.visitation(mdp, log_pi, mdp.rho)
        ratio = (wanted / soft.visitation(mdp, uniform, mdp.rho))[wanted > 1e-12].max()
        assert walk.predictor == pytest.approx(ratio, rel=1e-5)


def test_the_mismatch_ratio_of_a_point_is_infinite_and_of_a_law_by_hand() -> None:
    mdp = combination_lock(4)
    assert mismatch_of(mdp, ALPHA, mdp.rho) == math.inf
    mu = np.array([0.4, 0.3, 0.2, 0.1])
    log_pi = soft.soft_value_iteration(mdp.task(3), ALPHA).log_pi
    by_hand = np.log((soft.visitation(mdp, log_pi, mu) / mu).max())
    assert mismatch_of(mdp, ALPHA, mu) == pytest.approx(by_hand, abs=1e-6)


def test_what_cannot_be_walked_is_refused() -> None:
    mdp = combination_lock(3)
    goal = Goal.of(mdp)
    stochastic = mdp.replace(transitions=np.full((3, 4, 3), 1 / 3))
    learner: TabularLearner = rollin.ExactPG(stochastic, ALPHA)
    with pytest.raises(RollinError, match="takes deterministic MDPs"):
        walk_exactly(stochastic, ALPHA, 1.0, 5, goal=goal)
    with pytest.raises(RollinError, match="take deterministic MDPs"):
        walk_with(stochastic, learner, 5, goal=goal)
    with pytest.raises(RollinError, match="cap must be at least 1, got 0"):
        walk_exactly(mdp, ALPHA, 1.0, 0, goal=goal)
    with pytest.raises(RollinError, match=r"beta must lie in \[0, 1\)"):
        walk_exactly(mdp, ALPHA, 1.0, 5, goal=goal, beta=1.0)


# ------------------------------------------------------------------ fits


@given(power=st.floats(0.2, 4), factor=st.floats(0.1, 100))
@settings(max_examples=30, deadline=None)
def test_a_power_law_is_found(power: float, factor: float) -> None:
    costs = [Costs(n, (factor * n**power,)) for n in (4, 8, 16, 32, 64)]
    growth = fit_growth(costs, at_least=8)
    assert growth is not None
    assert growth.better == "power"
    assert growth.power.value == pytest.approx(power, rel=1e-6)
    assert growth.power.residual == pytest.approx(0, abs=1e-9)
    assert growth.sizes == (8, 16, 32, 64)
    assert growth.interval == "sizes"
    assert growth.at("power", 128) == pytest.approx(factor * 128**power, rel=1e-6)


def test_an_exponential_law_is_found_with_its_interval() -> None:
    rng = np.random.default_rng(0)
    costs = [Costs(n, tuple(3 * 1.9**n * np.exp(rng.normal(0, 0.3, 10)))) for n in range(4, 20, 2)]
    growth = fit_growth(costs)
    assert growth is not None
    assert growth.better == "exponential"
    assert growth.interval == "seeds"
    assert growth.seeds == 10
    assert growth.exponential.low < 1.9 < growth.exponential.high
    assert growth.exponential.high - growth.exponential.low < 0.1
    assert growth.at("exponential", 10) == pytest.approx(3 * 1.9**10, rel=0.3)


def test_the_interval_of_seeds_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(60):
        costs = [
            Costs(n, tuple(n**2 * np.exp(rng.normal(0, 0.5, 10)))) for n in (8, 16, 32, 64, 128)
        ]
        growth = fit_growth(costs, resamples=400)
        assert growth is not None
        covered += growth.power.low <= 2 <= growth.power.high
    assert 51 <= covered <= 60


def test_cut_off_runs_are_never_taken_for_solved_ones() -> None:
    """n² with a cap: the median is right while most end, and a size where it is not is left out."""
    rng = np.random.default_rng(2)
    cap = 3000.0
    runs = {
        n: [(min(cost, cap), bool(cost < cap)) for cost in n**2 * np.exp(rng.normal(0, 0.2, 41))]
        for n in (8, 16, 32, 52, 64, 80)
    }
    costs = costs_by_size(runs)
    assert [cost.solved for cost in costs][:3] == [41, 41, 41]
    assert 20 < costs[3].solved < 41  # some are cut off: the median is known
    assert costs[4].solved < 20
    growth = fit_growth(costs)
    assert growth is not None
    assert growth.sizes == (8, 16, 32, 52)
    assert growth.left_out == (64, 80)
    assert growth.power.value == pytest.approx(2, abs=0.05)
    naive = fit_growth([Costs(n, tuple(cost for cost, _ in runs[n])) for n in runs])
    assert naive is not None
    assert naive.power.value < 1.9  # what taking the cap for the cost would say


def test_an_interval_is_open_above_where_the_median_may_be_cut_off() -> None:
    costs = [
        Costs(n, tuple(float(n * (10 + i)) for i in range(10))) for n in (8, 16, 32)
    ]  # fmt: skip
    half = tuple(640.0 + i for i in range(6)) + (math.inf,) * 4
    growth = fit_growth([*costs, Costs(64, half)])
    assert growth is not None
    assert growth.sizes == (8, 16, 32, 64)
    assert math.isfinite(growth.power.value)
    assert growth.power.high == math.inf
    assert math.isfinite(growth.power.low)


def test_an_interval_is_open_below_where_a_small_size_may_be_cut_off() -> None:
    """A larger cost at the smallest size makes the slope smaller; at both ends it may be any."""
    values = {n: tuple(float(n * (10 + i)) for i in range(10)) for n in (8, 16, 32, 64)}

    def fit(*cut: int) -> Any:
        kept = {n: v[:6] + (math.inf,) * 4 if n in cut else v for n, v in values.items()}
        return fit_growth([Costs(n, v) for n, v in kept.items()])

    assert (fit(8).power.low, math.isfinite(fit(8).power.high)) == (-math.inf, True)
    assert fit(8).exponential.low == 0
    assert (fit(8, 64).power.low, fit(8, 64).power.high) == (-math.inf, math.inf)
    assert math.isfinite(fit().power.low)
    assert math.isfinite(fit().power.high)


def test_a_mixed_law_is_taken_apart() -> None:
    costs = [Costs(n, (2.0 * n**1.5 * 1.05**n,)) for n in (8, 12, 16, 24, 32, 48)]
    growth = fit_growth(costs)
    assert growth is not None
    assert growth.mixed is not None
    assert growth.mixed.value == pytest.approx(1.05, rel=1e-9)
    assert growth.mixed.low <= 1.05 <= growth.mixed.high + 1e-12
    few = fit_growth(costs[:4])
    assert few is not None
    assert few.mixed is None


def test_the_interval_of_a_line_is_students() -> None:
    """Against scipy's regression, on points that are off a line."""
    sizes = np.array([8, 16, 32, 64, 128])
    values = sizes**1.5 * np.array([1.1, 0.9, 1.2, 0.8, 1.0])
    growth = fit_growth([Costs(int(n), (float(v),)) for n, v in zip(sizes, values, strict=True)])
    assert growth is not None
    line: Any = stats.linregress(np.log(sizes), np.log(values))
    wide = stats.t.ppf(0.975, 3) * line.stderr
    assert growth.power.value == pytest.approx(line.slope)
    assert growth.power.high - growth.power.value == pytest.approx(wide)


def test_too_few_sizes_have_no_law_and_costs_must_be_positive() -> None:
    assert fit_growth([Costs(8, (3.0,)), Costs(16, (4.0,))]) is None
    assert fit_growth([Costs(n, (math.inf,)) for n in (8, 16, 32)]) is None
    with pytest.raises(RollinError, match=r"greater than 0 at every size, got \(0.0,\) at n = 8"):
        fit_growth([Costs(8, (0.0,))])


def test_curves_and_their_rows() -> None:
    rows = [
        {
            "setting": "lock", "gradient": "sampled", "method": "rollin", "beta": "0.9",
            "mu": "rho", "states": str(n), "cap": "1000", "solved": "1" if n < 64 else "0",
            "gradient_steps": str(n * seed), "env_steps": str(n * n * seed),
        }
        for n in (8, 16, 24, 32, 64) for seed in (1, 2, 3)
    ]  # fmt: skip
    steps, samples = curves_of(rows)
    assert steps.name == CurveName("lock", "sampled", "rollin", "0.9", "rho")
    assert (steps.quantity, samples.quantity) == ("gradient_steps", "env_steps")
    assert steps.spent == {64: 64.0}
    assert samples.costs[0].values == (64.0, 128.0, 192.0)
    first, second = fit_rows([steps, samples])
    assert (first["sizes"], first["left_out"], first["seeds"]) == ("16 24 32", "64", 3)
    assert (first["power"], second["power"]) == ("1", "2")
    assert first["better"] == "power"


# ------------------------------------------------------------------ the study


def test_every_run_of_the_study_is_told_apart_and_seeds_are_those_reported() -> None:
    cases = study.cases()
    assert len(set(cases)) == len(cases)
    random = [case for case in cases if case.gradient == "sampled" or case.family == "random"]
    assert {case.seed for case in random} == set(range(100, 110))
    assert {case.seed for case in cases if case not in set(random)} == {-1}
    for case in cases:
        assert case.gamma == case.mdp().gamma
    lock = {c for c in cases if c.setting == "lock" and c.gradient == "exact"}
    assert {c.eta for c in lock if c.n == 16} == {0.5}  # 8 (1-γ)
    assert {c.n for c in lock if c.method == "scratch"} == set(range(4, 25, 2))
    assert max(c.n for c in lock if c.method != "scratch") == 128


def test_a_shortened_study_keeps_small_sizes_and_shortens_caps() -> None:
    assert study.kept_sizes((4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128), 0.1) == (
        4, 6, 8, 12, 16, 24, 32,
    )  # fmt: skip
    assert study.kept_sizes((4, 6, 8, 10, 12), 0.001) == (4, 6, 8, 10)
    assert study.kept_sizes((4, 6, 8, 10, 12), 1.0) == (4, 6, 8, 10, 12)
    full, short = study.cases(1), study.cases(1, 0.1)
    assert {case.cap for case in short} == {case.cap // 10 for case in full}
    assert study.digest(1.0) != study.digest(0.1)


def lock_case(**changes) -> study.Case:
    (case,) = [
        c for c in study.cases()
        if (c.setting, c.n, c.gradient, c.method) == ("lock", 8, "exact", "curriculum")
    ]  # fmt: skip
    return study.Case(**{**vars(case), **changes})


def test_a_row_says_what_was_run_and_what_came_out() -> None:
    row = study.measure(lock_case())
    assert tuple(row) == study.COLUMNS
    assert (row["solved"], row["gradient_steps"], row["states"], row["horizon"]) == (1, 183, 8, 16)
    assert row["ln_mismatch_rho"] == row["ln_mismatch_mu"] == "inf"
    assert 50 < float(row["predictor"]) < 60
    sampled = study.measure(lock_case(gradient="sampled", batch=20, seed=5, cap=40))
    assert (sampled["solved"], sampled["gradient_steps"]) == (0, 40)
    assert sampled["env_steps"] > 40 * 20
    assert sampled["predictor"] == ""


def tiny(monkeypatch) -> None:
    """A study of a few runs that take milliseconds."""
    few = tuple(
        case
        for case in study.cases(2)
        if case.setting == "lock" and case.n in (4, 6, 8, 10, 12) and case.method != "scratch"
    )
    monkeypatch.setattr(study, "cases", lambda seeds=2, scale=1.0: list(few))


def test_the_study_from_the_command_line(tmp_path, monkeypatch, capsys) -> None:
    tiny(monkeypatch)
    out = tmp_path / "study"
    command = ["reproduce", "complexity", "--out", str(out), "--jobs", "1"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "runs, 0 of them done" in said
    assert "Combination lock" in said
    for name in ("complexity.png", "complexity.svg", "complexity-families.png", "complexity.csv"):
        assert (out / name).stat().st_size > 0
    rows = read_rows(out / "runs.csv", study.COLUMNS)
    assert len(rows) == len(study.cases())
    assert read_json(out / "study.json")["command"].startswith("rollin reproduce complexity")
    # the same command goes on where it stopped: rows that were lost come back as they were
    kept = [{**row, "seconds": "0"} for row in rows]
    (out / "runs.csv").write_text(rows_text(study.COLUMNS, rows[::3]))
    assert main(command) == 0
    assert f"{len(rows[::3])} of them done" in capsys.readouterr().out
    again = read_rows(out / "runs.csv", study.COLUMNS)
    assert [{**row, "seconds": "0"} for row in again] == kept
    assert again[0]["seconds"] == rows[0]["seconds"]
    # other settings, and directories of others, are refused
    assert main([*command, "--scale", "0.5"]) == 2
    assert "holds another study (scale 1.0 there, 0.5 asked for)" in capsys.readouterr().err
    (out / "runs.csv").write_text("family,n\nlock,4\n")
    assert main(command) == 2
    assert "has other columns than this version" in capsys.readouterr().err
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    assert main(["reproduce", "complexity", "--out", str(other)]) == 2
    assert "exists and holds no study" in capsys.readouterr().err
    assert [path.name for path in other.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--cells", "n=4"], "--cells means nothing to complexity: it takes --seeds, --scale"),
        (["--backend", "ray"], "--backend means nothing to complexity"),
        (["--steps", "10"], "--steps means nothing to complexity"),
        (["--scale", "0"], "--scale must be a finite number greater than 0"),
        (["--seeds", "0"], "--seeds must be at least 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(more, message: str, tmp_path, capsys) -> None:
    out = tmp_path / "x"
    assert main(["reproduce", "complexity", "--out", str(out), *more]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_misspelt_name_is_told_the_right_one(capsys) -> None:
    assert main(["reproduce", "complexty"]) == 2
    assert "Did you mean complexity?" in capsys.readouterr().err


@needs_signals
def test_a_killed_study_keeps_its_rows_and_goes_on(tmp_path) -> None:
    out = tmp_path / "study"
    command = [
        sys.executable, "-m", "rollin", "reproduce", "complexity", "--scale", "0.0005",
        "--seeds", "1", "--jobs", "1", "--out", str(out),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (out / "runs.csv").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = read_rows(out / "runs.csv", study.COLUMNS)
    assert before
    stopped = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while len(read_rows(out / "runs.csv", study.COLUMNS)) == len(before):
        assert stopped.poll() is None
        time.sleep(0.02)
    stopped.send_signal(signal.SIGINT)
    text, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 0
    assert f"{len(before)} of them done" in text
    assert "Go on with: rollin reproduce complexity --scale 0.0005" in text
    after = read_rows(out / "runs.csv", study.COLUMNS)
    assert len(after) > len(before)
    assert all(row in after for row in before)


@needs_signals
def test_the_pool_gives_every_result_and_stops_when_asked() -> None:
    assert dict(run_in_pool(math.factorial, range(9), 2)) == {
        n: math.factorial(n) for n in range(9)
    }
    seen: list[int] = []
    for number, _ in run_in_pool(math.factorial, range(999), 1, lambda: len(seen) > 3):
        seen.append(number)
    assert 3 < len(seen) < 20
    with pytest.raises(RollinError, match="A worker process died"):
        list(run_in_pool(signal.raise_signal, [signal.SIGKILL], 1))


def touch_or_die(task: tuple[str, bool]) -> str:
    """One task writes a file and ends; the other dies once it sees the file."""
    path, dies = task
    while dies and not Path(path).exists():
        time.sleep(0.01)
    if dies:
        time.sleep(3)  # for the other's result to arrive
        signal.raise_signal(signal.SIGKILL)
    Path(path).touch()
    return path


@needs_signals
def test_the_pool_loses_no_result_that_was_there(tmp_path, monkeypatch) -> None:
    """Whether it stops or loses a worker: what was done by then is given."""
    slow = lambda futures, *_: wait(futures, 60)  # noqa: E731  # the consumer is slow
    monkeypatch.setattr(pool, "wait", slow)
    path = str(tmp_path / "there")
    found: list[Any] = []
    with pytest.raises(RollinError, match="A worker process died"):
        found.extend(run_in_pool(touch_or_die, [(path, True), (path, False)], 2))
    assert found == [((path, False), path)]
    seen: list[int] = []
    asked = iter([False, True])
    monkeypatch.setattr(pool, "wait", lambda *_: time.sleep(0))  # it looks before any is done

    def stop() -> bool:
        if (now := next(asked)) is True:
            deadline = time.monotonic() + 60
            while not all(map(os.path.exists, paths)) and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(3)  # for the results to arrive
        return now

    paths = [str(tmp_path / name) for name in ("a", "b")]
    for (name, _), _ in run_in_pool(touch_or_die, [(p, False) for p in paths], 1, stop):
        seen.append(paths.index(name))
    assert sorted(seen) == [0, 1]


def climb_for_ever(path: str) -> None:
    """Hold a lock on a file, which ends with the process, and climb in compiled code."""
    mdp = combination_lock(40, gamma=0.9)
    goal = Goal(np.eye(40)[0], 2, threshold=2.0)  # is never passed
    walk_exactly(mdp, ALPHA, 1e-3, 1, goal=goal)  # compiled
    with Path(path).open("w") as file:
        assert take_lock(file.fileno())
        file.write(str(os.getpid()))
        file.flush()
        walk_exactly(mdp, ALPHA, 1e-3, 10**15, goal=goal)


@needs_signals
def test_a_worker_in_a_long_climb_leaves_with_a_killed_parent(tmp_path) -> None:
    held = tmp_path / "held"
    program = (
        "import sys; from tests.studies import test_complexity as t;"
        "list(t.run_in_pool(t.climb_for_ever, [sys.argv[1]], 1))"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(held)], cwd=ROOT)
    deadline = time.monotonic() + 120
    while not (held.exists() and held.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)  # into the compiled loop
    parent.kill()
    parent.wait()
    worker = int(held.read_text())
    with held.open() as file:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if take_lock(file.fileno()):
                return
            time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker goes on without its parent")


def test_a_store_refuses_rows_that_are_cut_off(tmp_path) -> None:
    store = RowStore(tmp_path / "s", ("a", "b"), ("a",))
    rows = tmp_path / "s" / "runs.csv"
    with store.open("mine", {"scale": 1.0}, "command"):
        store.add({"a": 10, "b": "x"})
        store.add({"a": 9, "b": "y"})
        assert rows.read_text() == "a,b\n10,x\n9,y\n"
        store.save()
    assert rows.read_text() == "a,b\n9,y\n10,x\n"
    with rows.open("a") as file:
        file.write("11,")  # a kill in the middle of a row
    again = RowStore(tmp_path / "s", ("a", "b"), ("a",))
    with again.open("mine", {"scale": 1.0}, "command"):
        assert again.done == {("9",), ("10",)}
        again.add({"a": 11, "b": "z"})
    assert rows.read_text() == "a,b\n9,y\n10,x\n11,z\n"
    (tmp_path / "s" / "runs.csv").write_text("a,b\n9\n")
    with (
        pytest.raises(RollinError, match="too few or too many entries"),
        store.open("mine", {"scale": 1.0}, "command"),
    ):
        pass
    with (
        pytest.raises(RollinError, match=r"another study \(study mine there, other asked for\)"),
        RowStore(tmp_path / "s", ("a", "b"), ("a",)).open("other", {"scale": 1.0}, ""),
    ):
        pass


def test_a_store_is_described_by_the_process_that_holds_it(tmp_path) -> None:
    """A second process is refused before it reads or writes study.json, whatever it wants."""
    out = tmp_path / "s"
    make_directory(out)
    with RunDirectory(out).lock():  # another has just begun, and has described nothing yet
        with (
            pytest.raises(RunBusyError),
            RowStore(out, ("a",), ("a",)).open("mine", {"scale": 0.5}, ""),
        ):
            pass
        assert [path.name for path in out.iterdir()] == [LOCK]
    with RowStore(out, ("a",), ("a",)).open("mine", {"scale": 1.0}, ""):
        assert read_json(out / "study.json")["scale"] == 1.0


# ------------------------------------------------------------------ what the page says


def test_recursive_roll_in_lengthens_the_discount() -> None:
    """The fixed point of equation 1 is visited as with γ' = γ/(1-β(1-γ)); from ρ it is not."""
    mdp = combination_lock(12, gamma=0.9)
    log_pi = soft.log_softmax(np.random.default_rng(0).normal(size=(12, 4)))
    for beta in (0.5, 0.9):
        start = Start(mdp.rho)
        for _ in range(400):
            start = roll_in(mdp, start, log_pi, beta, recursive=True)
        longer = mdp.replace(gamma=0.9 / (1 - beta * 0.1))
        np.testing.assert_allclose(
            soft.visitation(mdp, log_pi, start.mu),
            soft.visitation(longer, log_pi, mdp.rho),
            rtol=1e-6,
        )
        once = roll_in(mdp, Start(mdp.rho), log_pi, beta)
        gap = soft.visitation(mdp, log_pi, once.mu) / soft.visitation(longer, log_pi, mdp.rho)
        assert gap[-1] < 0.9


def test_the_committed_runs_are_the_study() -> None:
    wanted = {tuple(str(getattr(case, name)) for name in study.KEY) for case in study.cases()}
    found = [tuple(row[name] for name in study.KEY) for row in complexity_page.rows()]
    assert len(found) == len(set(found))
    assert set(found) == wanted
    about = read_json(complexity_page.RESULTS / "study.json")
    assert (about["study"], about["scale"]) == ("complexity", 1.0)
    assert about["settings"] == study.digest(1.0)
    assert {row["version"] for row in complexity_page.rows()} == {about["version"]}


def test_the_committed_fits_follow_from_the_runs() -> None:
    key = lambda row: [row[name] for name in (*CurveName._fields, "quantity")]  # noqa: E731
    fits = sorted(fit_rows(complexity_page.curves()), key=key)
    text = rows_text(FIT_COLUMNS, fits)
    committed = sorted(complexity_page.committed_fits(), key=key)
    assert rows_text(FIT_COLUMNS, committed) == text


def test_a_committed_row_comes_out_again() -> None:
    """Exact runs are deterministic, and so are sampled ones with their seed."""
    rows = [
        row for row in complexity_page.rows()
        if row["setting"] == "lock" and row["n"] == "8" and row["seed"] in ("-1", "103")
    ]  # fmt: skip
    cases = {tuple(str(getattr(c, name)) for name in study.KEY): c for c in study.cases()}
    assert len(rows) == 12
    for row in rows:
        again = study.measure(cases[tuple(row[name] for name in study.KEY)])
        for name in ("solved", "reached", "gradient_steps", "env_steps", "rollin_steps"):
            assert str(again[name]) == row[name]


def medians(
    setting: str,
    gradient: str,
    method: str,
    beta: float = 0.0,
    mu: str = "rho",
    cost: str = "gradient_steps",
) -> Any:
    """A committed curve: medians by size, and its fit."""
    (curve,) = [
        c for c in complexity_page.of(setting, gradient, cost)
        if (c.name.method, float(c.name.beta), c.name.mu) == (method, beta, mu)
    ]  # fmt: skip
    return {c.size: c.median for c in curve.costs}, curve.growth


def test_the_pages_sentences_are_what_was_measured() -> None:
    page = " ".join(complexity_page.PAGE.read_text().split())  # lines may break anywhere
    scratch, fit = medians("lock", "exact", "scratch")
    assert scratch[24] == math.inf
    assert f"{fit.exponential.value:.2f}ⁿ gradient steps from scratch" in page
    plain, fit = medians("lock", "exact", "curriculum")
    assert f"n^{fit.power.value:.2f} with warm starts and no roll-in" in page
    saving = {(0.5, "rho"): (13, 15), (0.9, "rho"): (21, 24), (0.9, "recursive"): (24, 27)}
    for (beta, mu), percent in saving.items():
        some, other = medians("lock", "exact", "rollin", beta, mu)
        saved = [1 - some[n] / plain[n] for n in plain if n >= 16]
        assert (round(100 * min(saved)), round(100 * max(saved))) == percent
        assert abs(other.power.value - fit.power.value) < 0.03
    natural, fit = medians("lock", "natural", "scratch")
    assert natural[128] == 162
    assert f"(n^{fit.power.value:.2f} from scratch)" in page
    _, fit = medians("lock-uniform", "exact", "scratch")
    assert f"(n^{fit.power.value:.2f})" in page
    fixed, fit = medians("lock-fixed", "exact", "curriculum")
    from_rho, _ = medians("lock-fixed", "exact", "rollin", 0.9)
    recursive, other = medians("lock-fixed", "exact", "rollin", 0.9, "recursive")
    assert f"falls from {fit.mixed.value:.3f} to {other.mixed.value:.3f}" in page
    assert round(fixed[64] / from_rho[64], 1) == 3.9
    assert recursive[96] == 127_405
    corridor_plain, _ = medians("corridor", "exact", "curriculum")
    corridor_rolled, _ = medians("corridor", "exact", "rollin", 0.9)
    assert {n: round(1 - corridor_rolled[n] / corridor_plain[n], 1) for n in (4, 16, 128)} == {
        4: 0.2, 16: 0.3, 128: 0.3,
    }  # fmt: skip


def test_what_the_page_says_of_samples_is_what_was_measured() -> None:
    samples = partial(medians, cost="env_steps")
    of = [
        samples("lock", "sampled", method, beta)[0]
        for method, beta in (("curriculum", 0.0), ("rollin", 0.5), ("rollin", 0.9))
    ]
    spread = [max(m[n] for m in of) / min(m[n] for m in of) for n in (12, 16, 24, 32)]
    assert max(spread) == pytest.approx(1.21, abs=0.005)
    plain, _ = samples("lock-fixed", "sampled", "curriculum")
    from_rho, _ = samples("lock-fixed", "sampled", "rollin", 0.9)
    recursive, _ = samples("lock-fixed", "sampled", "rollin", 0.9, "recursive")
    assert round(from_rho[32] / plain[32], 2) == 0.58
    assert round(recursive[32] / plain[32], 2) == 1.10
    for setting in ("corridor", "grid", "random", "lock-uniform"):
        none, _ = samples(setting, "sampled", "curriculum")
        most, _ = samples(setting, "sampled", "rollin", 0.9)
        assert most[max(most)] > none[max(none)]
    stuck = [
        row for row in complexity_page.rows()
        if row["setting"] == "lock" and row["gradient"] == "sampled" and row["solved"] == "0"
    ]  # fmt: skip
    assert {int(row["reached"]) for row in stuck} <= {0, 1, 2, 3}
