"""The study of γ in four rooms: exact returns in closed form, the page against the records."""

from collections import deque

import numpy as np
import pytest

from rollin.paper.four_rooms import ROWS
from rollin.runs.records import MetricAt, read_records
from rollin.tabular.families import GRID, MOVES
from studies import four_rooms_gamma as study
from studies import four_rooms_gamma_page as page
from studies import four_rooms_returns as exact

GAMMA = 0.973
EDGE = {"easy": (11, 0.9**5), "hard": (12, 0.5**4)}  # steps to the nearest reward, and that


def collects(gamma: float, after: int, until: int = 50) -> float:
    return sum(gamma**t for t in range(after, until))


# ------------------------------------------------------------------ exact returns


def steps_from_start() -> np.ndarray:
    """Breadth first from (0, 0), through the doors alone."""
    found, queue = {(0, 0): 0}, deque([(0, 0)])
    while queue:
        cell = queue.popleft()
        for move in MOVES:
            to = (cell[0] + move[0], cell[1] + move[1])
            if not GRID.blocked(cell, move) and to not in found:
                found[to] = found[cell] + 1
                queue.append(to)
    return np.array([found[GRID.cell(s)] for s in range(GRID.n_states)])


@pytest.mark.parametrize("reward", ["easy", "hard"])
def test_the_edge_is_as_near_as_manhattan_distance_allows(reward: str) -> None:
    """The walls cost no step: no other walls can bring a rewarded cell nearer."""
    rewarded = exact.last_task(reward, GAMMA).r.max(1) > 0
    after, _ = EDGE[reward]
    assert steps_from_start()[rewarded].min() == after
    assert GRID.manhattan((0, 0))[rewarded].min() == after


@pytest.mark.parametrize("reward", ["easy", "hard"])
@pytest.mark.parametrize("gamma", [0.9, 0.95, GAMMA])
def test_the_returns_of_collectors_are_geometric_sums(reward: str, gamma: float) -> None:
    after, size = EDGE[reward]
    for policy, start, worth in (
        (exact.edge_collector, after, size),
        (exact.goal_collector, 16, 1.0),
    ):
        task = exact.last_task(reward, gamma)
        log_pi = policy(task)
        for reading, expected in (
            (exact.discounted, collects(gamma, start)),
            (exact.infinite, gamma**start / (1 - gamma)),
            (exact.with_entropy, gamma**start / (1 - gamma)),
            (exact.undiscounted, 50 - start),
            (exact.mean_to_go, np.mean([collects(gamma, max(start - t, 0), 50 - t)
                                        for t in range(50)])),
            (exact.from_mu, from_mu(gamma, start, lambda t: collects(gamma, t))),
            (exact.from_mu_infinite, from_mu(gamma, start, lambda t: gamma**t / (1 - gamma))),
        ):  # fmt: skip
            assert reading(task, log_pi) == pytest.approx(worth * expected, rel=1e-9), reading


def from_mu(gamma: float, after: int, value) -> float:
    """A quarter of the trajectories start at ρ, the others Geom(1-γ) steps farther on."""
    rolled = [(1 - gamma) * gamma**h * value(max(after - h, 0)) for h in range(after)]
    return 0.25 * value(after) + 0.75 * (sum(rolled) + gamma**after * value(0))


@pytest.mark.parametrize("reward", ["easy", "hard"])
def test_the_soft_optimal_policy_collects_on_the_goal(reward: str) -> None:
    for gamma in (0.95, exact.GAMMAS[-1]):
        task = exact.last_task(reward, gamma)
        for alpha in (0.001, 0.01):
            log_pi = exact.soft_optimal(task, alpha)
            for reading in (exact.discounted, exact.infinite):
                best = exact.value(reading, exact.goal_collector, reward, gamma)
                assert reading(task, log_pi) == pytest.approx(best, rel=1e-4)


def test_only_the_row_that_stops_is_one_where_the_entropy_costs_more_than_the_reward() -> None:
    """By hand: 0.5⁴ a step from step k - 4 on against α log 105 a step, hardly ever rewarded."""
    gamma = 0.95
    for k in range(4, 17):
        collecting, random = (
            0.0625 * collects(gamma, k - 4),
            0.01 * np.log(105) * collects(gamma, 0),
        )
        assert (collecting > random) == (k <= exact.pays_until("hard", 0.01, gamma))
    for reward, alpha in ROWS:
        until = exact.pays_until(reward, alpha, gamma)
        assert until == (9 if (reward, alpha) == ("hard", 0.01) else 16)


def test_no_policy_is_better_over_50_steps_than_the_goal_collector() -> None:
    """Backward induction over the 50 steps, at the γ of the default and of the fit."""
    for gamma in (0.95, GAMMA):
        for reward in ("easy", "hard"):
            task = exact.last_task(reward, gamma)
            v = np.zeros(task.mdp.n_states)
            for _ in range(50):
                v = (task.r + gamma * task.mdp.expected_next(v)).max(1)
            best = exact.value(exact.discounted, exact.goal_collector, reward, gamma)
            assert float(task.mdp.rho @ v) == pytest.approx(best)


def test_a_fit_gives_the_published_easy_return() -> None:
    for name, reading in exact.READINGS.items():
        fit = exact.fit(reading, exact.edge_collector)
        if name == "undiscounted, 50 steps":
            assert fit is None
            continue
        assert fit is not None
        easy = exact.value(reading, exact.edge_collector, "easy", fit.gamma)
        assert easy == pytest.approx(10.62, abs=1e-3)
        assert fit.hard > 1.01 * exact.HARD  # none gives both over 50 steps or for ever


def test_with_the_horizon_free_both_published_returns_fit() -> None:
    """Beside the closed form γ_reward^D Σ_{t=first}^{T-1} γ^t of the edge collectors."""
    for horizon, gamma, worst in ((29, 1.0, 0.0043), (35, 0.987, 0.0019), (50, 0.973, 0.0101)):
        found = exact.with_horizon(horizon, gamma)
        for reward, value in (("easy", found.easy), ("hard", found.hard)):
            first, paid = EDGE[reward]
            wanted = paid * sum(gamma**t for t in range(first, horizon))
            assert value == pytest.approx(wanted, rel=1e-12)
        assert worst - 2e-4 < found.error < worst
    easy, hard = EDGE["easy"], EDGE["hard"]
    for fit in map(exact.fit_with_horizon, (29, 32, 50)):
        grid = np.linspace(0.9, 1, 20_001)[:, None]
        errors = [
            np.abs(paid * (grid ** np.arange(first, fit.horizon)).sum(1) / published - 1)
            for (first, paid), published in ((easy, exact.EASY), (hard, exact.HARD))
        ]
        assert fit.error == pytest.approx(np.max(errors, axis=0).min(), abs=1e-4)
    assert exact.fit_with_horizon(29).gamma == 1
    assert exact.fit_with_horizon(32).error < 0.00025


def test_no_two_distances_give_both_published_returns() -> None:
    """The edges are the nearest, 1 % off; all others are more than 5 % off."""
    for horizon in (50, None):
        found = sorted(exact.pairs(horizon), key=lambda pair: abs(pair.value - exact.HARD))
        assert len(found) == 6 * 5
        (nearest, second) = found[:2]
        assert (nearest.easy, nearest.hard) == (5, 4)
        assert 1.010 < nearest.value / exact.HARD < 1.015
        assert abs(second.value / exact.HARD - 1) > 0.05
        edge = exact.fit(exact.infinite if horizon is None else exact.discounted,
                         exact.edge_collector)  # fmt: skip
        assert edge is not None
        assert edge.hard == pytest.approx(nearest.value, rel=1e-5)


# ------------------------------------------------------------------ records and page


def test_every_run_of_the_study_is_recorded_once(tmp_path) -> None:
    records = read_records(study.RECORDS)
    planned = list(study.jobs(tmp_path))
    assert [r.spec_hash for r in records] == [job.spec.hash for job in planned]
    assert len({job.out for job in planned}) == len(planned)
    for record, job in zip(records, planned, strict=True):
        assert job.of is not None
        assert (record.labels, record.key) == (job.of.labels, job.of.key)
        assert float(record.labels["gamma"]) == (job.spec.config.gamma or 0.95)
        assert record.processor
        assert record.value(MetricAt("kappa")) == (record.k or 0) / 16


def test_the_records_agree_with_themselves() -> None:
    """Every rewarded cell is worth between the edge's and the goal's reward."""
    for (_, reward, _, _), rows in page.read().items():
        edge = EDGE[reward][1]
        for row in rows:
            told = {name: row.value(MetricAt(name)) or 0.0 for name in row.curve.quantities}
            for total, count in (
                ("return", "collects_discounted"),
                ("return_undiscounted", "collects"),
            ):
                assert edge * (1 - 1e-9) <= told[total] / told[count] <= 1
            assert told["return"] <= told["return_infinite"]
            assert told["collects"] <= 50 - EDGE[reward][0]


def test_the_defaults_seeds_repeat_the_committed_table() -> None:
    """The same seeds on another kind of CPU, with a later version."""
    before = {r.spec_hash: r for r in read_records(study.RECORDS.parent / "four-rooms")}
    rows = [row for rows in page.read().values() for row in rows if row.spec_hash in before]
    assert len(rows) == len(study.CHOOSING) * len(ROWS) * len(study.BETAS)
    for row in rows:
        then = before[row.spec_hash]
        assert row.k == then.k
        found, known = (r.value(MetricAt("return")) for r in (row, then))
        assert found == pytest.approx(known, rel=1e-6, abs=1e-9)


def test_what_the_page_says_of_the_fresh_seeds() -> None:
    found = page.read()

    def values(setting: str, reward: str, alpha: float, name: str = "return") -> list[float]:
        rows = found[setting, reward, alpha, 0.75]
        return page.numbers(page.of_seeds(rows, study.REPORTED[setting]), name)

    easy, hard = (values("γ = 0.973", reward, 0.001) for reward in ("easy", "hard"))
    assert all(abs(value / exact.EASY - 1) < 0.002 for value in easy)
    *most, one = sorted(hard)
    assert all(1.0075 < value / exact.HARD < 1.0085 for value in most)
    assert max(most) - min(most) < 6e-4
    assert one == pytest.approx(2.06, abs=0.005)
    assert sum(value > 1.6 for value in values("γ = 0.973", "hard", 0.01)) == 3
    easy, hard = (
        float(np.mean(values("γ = 0.963", reward, 0.001, "return_infinite")))
        for reward in ("easy", "hard")
    )
    assert easy / exact.EASY - 1 == pytest.approx(-0.008, abs=5e-4)
    assert hard / exact.HARD - 1 == pytest.approx(0.005, abs=5e-4)
    assert easy / hard == pytest.approx(9.82, abs=0.005)
