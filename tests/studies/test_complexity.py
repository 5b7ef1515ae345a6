"""Complexity gains: families, compiled walks, fits with cut-off runs, a study that resumes."""

import math
import shutil
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rollin
from rollin.cli import main
from rollin.complexity import study as complexity_study
from rollin.complexity.study import (
    CurveName,
    Growth,
    SizeCosts,
    costs_by_size,
    curves_of,
    fit_growth,
    fit_rows,
    fits_csv,
)
from rollin.errors import RollinError
from rollin.runs import driver
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record, run
from rollin.runs.engines.until_solved import UntilSolvedConfig
from rollin.runs.files import read_json
from rollin.runs.records import (
    Costs,
    Curve,
    MetricAt,
    Record,
    condition_text,
    read_records,
    write_records,
)
from rollin.runs.spec import RunSpec
from rollin.sweeps.sweep import read_sweep
from rollin.tabular import soft
from rollin.tabular.families import combination_lock, corridor, random_mdp, square_grid
from rollin.tabular.kernels.exact import structure_of, success_from, visitation_of
from rollin.tabular.learners import RandomHorizonSPG, TabularLearner, constant_schedule
from rollin.tabular.start import Start, roll_in
from rollin.tabular.until_solved import (
    Ascent,
    ExactAscent,
    Goal,
    LearnerAscent,
    mismatch_of,
    sampled_ascent,
)
from studies import complexity_page
from tests.killing import same_run, stop_at

ALPHA = 1e-4
METHODS: tuple[dict[str, Any], ...] = (
    {"scratch": True},
    {"beta": 0.0},
    {"beta": 0.5},
    {"beta": 0.9},
    {"beta": 0.9, "recursive": True},
    {"beta": 0.5, "gap": True},
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
    arrays = structure_of(mdp)
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


def entered(walk: Ascent) -> list[tuple[int, int]]:
    """Contexts, and the gradient steps after which they were entered."""
    return [(advance.k, advance.step) for advance in walk.progress.advances]


@pytest.mark.parametrize("name", MDPS)
def test_the_compiled_walk_takes_the_steps_of_the_learners(name: str) -> None:
    """Exact and natural gradient under Algorithm 1, by rollin's own learners."""
    mdp = MDPS[name]
    goal = Goal.of(mdp)
    for how in METHODS:
        for natural in (False, True):
            rate = (1 if natural else 8) * (1 - mdp.gamma)
            make = rollin.NaturalPG if natural else rollin.ExactPG
            learner = make(mdp, ALPHA, learning_rate=rate)
            slow = LearnerAscent(mdp, learner, goal=goal, **how).until(400)
            fast = ExactAscent(mdp, ALPHA, rate, goal=goal, natural=natural, **how).until(400)
            assert (fast.solved, fast.gradient_steps) == (slow.solved, slow.gradient_steps)
            assert entered(fast) == entered(slow)


def test_success_and_visitation_are_those_of_the_exact_tools() -> None:
    rng = np.random.default_rng(0)
    for mdp in MDPS.values():
        theta = rng.normal(size=(mdp.n_states, mdp.n_actions))
        log_pi = soft.log_softmax(theta)
        arrays = structure_of(mdp)
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
    ours = sampled_ascent(mdp, ALPHA, 1.0, goal=goal, batch=20, seed=1, **how).until(3000)
    plain = RandomHorizonSPG(mdp, ALPHA, constant_schedule(20, 1.0), 1)
    slow = LearnerAscent(mdp, plain, goal=goal, sampled=True, **how).until(3000)
    for name in ("solved", "gradient_steps", "env_steps", "rollin_steps"):
        assert getattr(ours, name) == getattr(slow, name)
    assert entered(ours) == entered(slow)
    assert ours.solved


def test_roll_in_steps_are_counted_among_the_samples() -> None:
    """From the second context on, β of the batch walk Geom(1-γ) steps: γ/(1-γ) in the mean."""
    mdp = combination_lock(6)
    goal = Goal.of(mdp)
    how: dict[str, Any] = {"goal": goal, "batch": 20, "seed": 3}
    without = sampled_ascent(mdp, ALPHA, 1.0, beta=0.0, **how).until(500)
    with_them = sampled_ascent(mdp, ALPHA, 1.0, beta=0.9, **how).until(500)
    assert without.rollin_steps == 0
    # a sample takes γ/(1-γ) steps of SamSA, √γ/(1-√γ) of EstEntQ, and one
    gamma, root = mdp.gamma, math.sqrt(mdp.gamma)
    own = gamma / (1 - gamma) + root / (1 - root) + 1
    per_sample = without.env_steps / (20 * without.gradient_steps)
    assert per_sample == pytest.approx(own, rel=0.05)
    rolled = with_them.rollin_steps / (20 * with_them.gradient_steps)
    assert 0.75 * 0.9 * gamma / (1 - gamma) < rolled < 1.05 * 0.9 * gamma / (1 - gamma)
    rest = float(with_them.env_steps) - float(with_them.rollin_steps)
    assert rest / (20 * with_them.gradient_steps) == pytest.approx(own, rel=0.05)


def test_a_walk_stops_at_its_cap_unsolved() -> None:
    mdp = combination_lock(8)
    walk = ExactAscent(mdp, ALPHA, 1.0, goal=Goal.of(mdp)).until(20)
    assert (walk.solved, walk.gradient_steps) == (False, 20)
    assert walk.progress.k < 7
    walk.until(182)  # it goes on
    assert (walk.solved, walk.gradient_steps) == (False, 182)
    exactly = ExactAscent(mdp, ALPHA, 1.0, goal=Goal.of(mdp)).until(10**6)
    assert (exactly.solved, exactly.gradient_steps) == (True, 183)


def test_the_predictor_from_scratch_is_the_ratio_of_visits() -> None:
    """One context, uniform policy: R = ‖d_ρ^{π*} / d_ρ^{uniform}‖_∞, by other code."""
    for mdp in MDPS.values():
        walk = ExactAscent(mdp, 1e-3, 1e-3, goal=Goal.of(mdp), scratch=True, predict=True)
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
        ExactAscent(stochastic, ALPHA, 1.0, goal=goal)
    with pytest.raises(RollinError, match="take deterministic MDPs"):
        LearnerAscent(stochastic, learner, goal=goal)
    with pytest.raises(RollinError, match="cap must be at least 1, got 0"):
        ExactAscent(mdp, ALPHA, 1.0, goal=goal).until(0)
    with pytest.raises(RollinError, match=r"beta must lie in \[0, 1\)"):
        ExactAscent(mdp, ALPHA, 1.0, goal=goal, beta=1.0)


# ------------------------------------------------------------------ fits


def fitted(costs: list[SizeCosts], **options: Any) -> Growth:
    growth = fit_growth(costs, **options)
    assert growth is not None
    return growth


@given(power=st.floats(0.2, 4), factor=st.floats(0.1, 100))
@settings(max_examples=30, deadline=None)
def test_a_power_law_is_found(power: float, factor: float) -> None:
    costs = [SizeCosts(n, (factor * n**power,)) for n in (4, 8, 16, 32, 64)]
    growth = fitted(costs, at_least=8)
    assert growth.better == "power"
    assert growth.power.value == pytest.approx(power, rel=1e-6)
    assert growth.power.residual == pytest.approx(0, abs=1e-9)
    assert growth.sizes == (8, 16, 32, 64)
    assert growth.interval == "sizes"
    assert growth.at("power", 128) == pytest.approx(factor * 128**power, rel=1e-6)


def test_an_exponential_law_is_found_with_its_interval() -> None:
    rng = np.random.default_rng(0)
    costs = [
        SizeCosts(n, tuple(3 * 1.9**n * np.exp(rng.normal(0, 0.3, 10)))) for n in range(4, 20, 2)
    ]
    growth = fitted(costs)
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
            SizeCosts(n, tuple(n**2 * np.exp(rng.normal(0, 0.5, 10)))) for n in (8, 16, 32, 64, 128)
        ]
        growth = fitted(costs, resamples=400)
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
    growth = fitted(costs)
    assert growth.sizes == (8, 16, 32, 52)
    assert growth.left_out == (64, 80)
    assert growth.power.value == pytest.approx(2, abs=0.05)
    naive = fitted([SizeCosts(n, tuple(cost for cost, _ in runs[n])) for n in runs])
    assert naive.power.value < 1.9  # what taking the cap for the cost would say


def test_an_interval_is_open_where_a_median_may_be_cut_off() -> None:
    """A larger cost at the largest size lifts the slope, at the smallest it lowers it."""
    values = {n: tuple(float(n * (10 + i)) for i in range(10)) for n in (8, 16, 32, 64)}

    def fit(*cut: int) -> Growth:
        costs = {n: v[:6] + (math.inf,) * 4 if n in cut else v for n, v in values.items()}
        return fitted([SizeCosts(n, v) for n, v in costs.items()])

    assert fit(64).sizes == (8, 16, 32, 64)
    assert math.isfinite(fit(64).power.value)
    ends = {cut: (fit(*cut).power.low, fit(*cut).power.high) for cut in ((), (8,), (64,), (8, 64))}
    assert [tuple(map(math.isfinite, pair)) for pair in ends.values()] == [
        (True, True), (False, True), (True, False), (False, False),
    ]  # fmt: skip
    assert (ends[8,][0], ends[64,][1], ends[8, 64]) == (-math.inf, math.inf, (-math.inf, math.inf))
    assert fit(8).exponential.low == 0


def test_a_mixed_law_is_taken_apart() -> None:
    costs = [SizeCosts(n, (2.0 * n**1.5 * 1.05**n,)) for n in (8, 12, 16, 24, 32, 48)]
    growth = fitted(costs)
    assert growth.mixed is not None
    assert growth.mixed.value == pytest.approx(1.05, rel=1e-9)
    assert growth.mixed.low <= 1.05 <= growth.mixed.high + 1e-12
    assert fitted(costs[:4]).mixed is None


def test_the_interval_of_a_line_is_students() -> None:
    """Against scipy's regression, on points that are off a line."""
    sizes = np.array([8, 16, 32, 64, 128])
    values = sizes**1.5 * np.array([1.1, 0.9, 1.2, 0.8, 1.0])
    growth = fitted([SizeCosts(int(n), (float(v),)) for n, v in zip(sizes, values, strict=True)])
    line: Any = stats.linregress(np.log(sizes), np.log(values))
    wide = stats.t.ppf(0.975, 3) * line.stderr
    assert growth.power.value == pytest.approx(line.slope)
    assert growth.power.high - growth.power.value == pytest.approx(wide)


def test_too_few_sizes_have_no_law_and_costs_must_be_positive() -> None:
    assert fit_growth([SizeCosts(8, (3.0,)), SizeCosts(16, (4.0,))]) is None
    assert fit_growth([SizeCosts(n, (math.inf,)) for n in (8, 16, 32)]) is None
    with pytest.raises(RollinError, match=r"greater than 0 at every size, got \(0.0,\) at n = 8"):
        fit_growth([SizeCosts(8, (0.0,))])


def made_record(n: int, seed: int, *, solved: bool) -> Record:
    """A sampled run on n states."""
    steps = n * seed
    told = ("lock", "sampled", "rollin", "0.9", "rho", str(n))
    return Record(
        task="combination-lock", engine="until-solved", seed=seed, steps=1000, step=steps,
        finished=True, costs=Costs(1.0, n * n * seed, 0, steps),
        curve=Curve(np.array([float(steps)]), {"states": np.array([float(n)])}), spec_hash="",
        key="", k=n - 1, K=n - 1, completed=steps if solved else None,
        labels=dict(zip(complexity_study.KEYS, told, strict=True)),
    )  # fmt: skip


def test_curves_and_their_rows() -> None:
    records = [
        made_record(n, seed, solved=n < 64) for n in (8, 16, 24, 32, 64) for seed in (1, 2, 3)
    ]
    steps, samples = curves_of(records)
    assert steps.name == CurveName("lock", "sampled", "rollin", "0.9", "rho")
    assert (steps.quantity, samples.quantity) == ("gradient_steps", "env_steps")
    assert steps.spent == {64: 64.0}
    assert samples.costs[0].values == (64.0, 128.0, 192.0)
    first, second = fit_rows([steps, samples])
    assert (first["sizes"], first["left_out"], first["seeds"]) == ("16 24 32", "64", 3)
    assert (first["power"], second["power"]) == ("1", "2")
    assert first["better"] == "power"


# ------------------------------------------------------------------ the study

STUDY = complexity_study.study()


def test_the_conditions_and_their_seeds_are_those_reported() -> None:
    assert len({condition.key() for condition in STUDY.conditions}) == len(STUDY.conditions)
    assert sum(len(condition.seeds(10)) for condition in STUDY.conditions) == 1858
    for condition in STUDY.conditions:
        random = condition.labels["gradient"] == "sampled" or condition.task == "random-mdp"
        assert condition.seeds(10) == (range(100, 110) if random else range(1))
        for name in ("gradient", "mu"):
            assert getattr(condition.config, name) == condition.labels[name]
        assert condition.config.scratch == (condition.labels["method"] == "scratch")
        assert (condition.config.n, condition.config.beta) == (
            int(condition.labels["n"]), float(condition.labels["beta"]),
        )  # fmt: skip
    told = [c.labels for c in STUDY.conditions]
    lock = [t for t in told if (t["setting"], t["gradient"]) == ("lock", "exact")]
    assert {int(t["n"]) for t in lock if t["method"] == "scratch"} == set(range(4, 25, 2))
    assert max(int(t["n"]) for t in lock if t["method"] != "scratch") == 128


def test_a_shortened_study_keeps_small_sizes_and_shortens_caps() -> None:
    sizes_at = complexity_study.sizes_at
    assert sizes_at((4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128), 0.1) == (4, 6, 8, 12, 16, 24, 32)
    assert sizes_at((4, 6, 8, 10, 12), 0.001) == (4, 6, 8, 10)
    assert sizes_at((4, 6, 8, 10, 12), 1.0) == (4, 6, 8, 10, 12)
    short = complexity_study.study(0.1)
    assert {c.name for c in short.conditions} < {c.name for c in STUDY.conditions}
    condition = short.conditions[0]
    assert condition.spec(0, 0.1).config.steps == condition.steps // 10


def spec_of_lock(**changes: Any) -> RunSpec[UntilSolvedConfig]:
    return RunSpec("combination-lock", UntilSolvedConfig(**changes))


def test_a_record_says_what_was_run_and_what_came_out(tmp_path) -> None:
    run(spec_of_lock(n=8, beta=0.5), tmp_path / "exact")
    record = read_record(RunDirectory(tmp_path / "exact"))
    assert (record.completed, record.step, record.k, record.K) == (164, 164, 7, 7)
    told = {name: column[-1] for name, column in record.curve.quantities.items()}
    assert (told["solved"], told["steps_to_solve"], told["states"]) == (1, 164, 8)
    assert (told["gamma"], told["learning_rate"]) == (0.875, 1.0)
    assert told["ln_mismatch_rho"] == math.inf
    assert 0 < told["ln_mismatch_mu"] < math.inf
    assert 30 < told["predictor"] < 60
    assert [switch.k for switch in record.switches] == list(range(8))
    for name, data in write_records([record]).items():  # ∞ survives the CSV
        (tmp_path / name).write_bytes(data)
    (again,) = read_records(tmp_path)
    for name, value in told.items():
        came = again.curve.quantities.get(name, [math.nan])[-1]
        assert came == pytest.approx(value, nan_ok=True)
    sampled = spec_of_lock(n=8, gradient="sampled", seed=5, steps=40)
    run(sampled, tmp_path / "sampled")
    record = read_record(RunDirectory(tmp_path / "sampled"))
    assert (record.completed, record.step, record.finished) == (None, 40, True)
    assert record.costs.env_steps is not None
    assert record.costs.env_steps > 40 * 20
    assert record.value(MetricAt("samples_to_solve")) is None
    assert record.value(MetricAt("predictor")) is None


@pytest.mark.parametrize(
    "options",
    [
        {"beta": 0.5, "mu": "recursive", "n": 10},
        {"scratch": True, "n": 8},
        {"gradient": "natural", "n": 12},
        {"rule": "gap", "n": 6},
        {"rule": "gap", "gradient": "sampled", "n": 5, "seed": 3},
        {"gradient": "sampled", "beta": 0.5, "n": 6, "seed": 3},
        {"gradient": "sampled", "beta": 0.9, "mu": "recursive", "n": 6, "seed": 3},
        {"gradient": "sampled", "scratch": True, "n": 6, "seed": 3},
    ],
    ids=str,
)
def test_a_run_until_solved_goes_on_bit_for_bit(options, tmp_path, monkeypatch) -> None:
    spec = spec_of_lock(log_every=7, **options)
    run(spec, tmp_path / "whole")
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)  # ask after every step
    end = read_json(tmp_path / "whole" / "result.json")["step"]
    for step in (end // 3, 2 * end // 3):
        stop_at(spec, tmp_path / "parts", step)
        assert read_record(RunDirectory(tmp_path / "parts")).step >= step
    assert run(spec, tmp_path / "parts")
    same_run(tmp_path / "whole", tmp_path / "parts")


def test_what_belongs_to_the_lock_is_refused_elsewhere(tmp_path, capsys) -> None:
    out = str(tmp_path / "x")
    assert main(["train", "corridor", "--uniform-rho", "--out", out]) == 2
    assert "--uniform-rho belongs to combination-lock." in capsys.readouterr().err
    assert main(["train", "random-mdp", "--n", "3", "--out", out]) == 2
    assert "number of states n must be at least 4, got 3" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    assert main(["train", "random-mdp", "--n", "8", "--seed", "4", "--out", out]) == 0
    assert "solved after" in capsys.readouterr().out


SOME = ["--cells", "setting=lock,method=curriculum,method=rollin,mu=rho,n=4,n=6,n=8,n=12,n=16"]


@pytest.mark.usefixtures("jobs_here")
def test_the_study_from_the_command_line(tmp_path, capsys, monkeypatch) -> None:
    out = tmp_path / "study"
    command = ["reproduce", "complexity", *SOME, "--seeds", "2", "--out", str(out)]
    assert main(command) == 0
    assert "Combination lock" in capsys.readouterr().out
    for name in ("complexity.png", "complexity.svg", "complexity-families.png", "complexity.csv"):
        assert (out / name).stat().st_size > 0
    records = read_records(out)
    assert len(records) == 15 + 6 + 2 * 15  # exact, natural (fewer sizes), sampled
    assert {r.seed for r in records if r.labels["gradient"] == "sampled"} == {100, 101}
    # they are the committed ones
    committed = {(r.task, *r.labels.values(), r.seed): r for r in complexity_page.runs()}
    for record in records:
        other = committed[record.task, *record.labels.values(), record.seed]
        assert (record.spec_hash, record.key) == (other.spec_hash, other.key)
        assert (record.step, record.completed, record.costs[1:]) == (
            other.step, other.completed, other.costs[1:],
        )  # fmt: skip
        for name, column in other.curve.quantities.items():
            assert record.curve.quantities[name][-1] == pytest.approx(column[-1], rel=1e-5)
    # the same command goes on where it stopped; its figures were seen above
    monkeypatch.setattr("rollin.cli.computed.save_figures", lambda *_: [])
    gone = next(out.glob("setting=lock*sampled*n=8")) / "seed=101"
    shutil.rmtree(gone)
    before = (out / "runs.csv").read_text()
    assert main(command) == 0
    assert len(read_records(out)) == len(before.splitlines()) - 1
    # other lengths, and directories of others, are refused
    assert main([*command, "--scale", "0.5"]) == 2
    assert "holds runs at 1 of their full length" in capsys.readouterr().err
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    assert main(["reproduce", "complexity", "--out", str(other)]) == 2
    assert "exists and is not a sweep" in capsys.readouterr().err
    assert [path.name for path in other.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--only", "m=4"], "there is no label 'm' here"),
        (["--learner", "jax"], "--learner does not apply to complexity"),
        (["--steps", "10"], "--steps does not apply to complexity: it takes --only, --seeds"),
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


# ------------------------------------------------------------------ what the page says


def test_roll_in_from_rho_does_not_lengthen_the_discount() -> None:
    """Recursive roll-in does: test_theory compares it with γ' = γ/(1-β(1-γ))."""
    mdp = combination_lock(12, gamma=0.9)
    log_pi = soft.log_softmax(np.random.default_rng(0).normal(size=(12, 4)))
    for beta in (0.5, 0.9):
        longer = mdp.replace(gamma=0.9 / (1 - beta * 0.1))
        once = roll_in(mdp, Start(mdp.rho), log_pi, beta)
        gap = soft.visitation(mdp, log_pi, once.mu) / soft.visitation(longer, log_pi, mdp.rho)
        assert gap[-1] < 0.9


def test_the_committed_runs_are_the_study() -> None:
    wanted = {
        (c.name, seed): c.spec(seed).hash for c in STUDY.conditions for seed in c.seeds(STUDY.seeds)
    }
    runs = complexity_page.runs()
    found = {(condition_text(run.labels), run.seed): run.spec_hash for run in runs}
    assert len(runs) == len(found)
    assert found == wanted
    assert {(run.family, run.scale, run.finished) for run in runs} == {("complexity", 1.0, True)}
    assert read_sweep(complexity_page.RESULTS / "sweep.json").family == "complexity"


def test_the_committed_fits_follow_from_the_runs() -> None:
    fits = fits_csv(curves_of(complexity_page.runs()))
    assert (complexity_page.RESULTS / "fits.csv").read_text() == fits


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
        run for run in complexity_page.runs()
        if (run.labels["setting"], run.labels["gradient"]) == ("lock", "sampled")
        and run.completed is None
    ]  # fmt: skip
    assert stuck
    assert {run.k for run in stuck} <= {0, 1, 2, 3}
