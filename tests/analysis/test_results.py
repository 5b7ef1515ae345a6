"""Committed results: the tables that are shown follow from the runs that are kept."""

import csv
import re
import statistics
from pathlib import Path

import pytest

from benchmarks import cost, sac_page
from rollin.analysis.collect import collect, group
from rollin.analysis.findings import agreement, improvements
from rollin.analysis.results import StudyResults, results_of
from rollin.paper.four_rooms import ROWS, SEEDS, STEPS, conditions
from rollin.paper.tables import tables
from rollin.report.exports import table_csv
from rollin.report.labels import warnings
from rollin.runs.records import MetricAt, Record
from rollin.sweeps.study import study_from
from studies import curricula_page, point_umaze_page

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "four-rooms"
RETURN = MetricAt("return")


@pytest.fixture(scope="module")
def table() -> StudyResults:
    studies = list(tables().values())
    records = collect([RESULTS], studies).records
    (found,) = results_of(group(records, studies), studies)
    return found


def runs_of(table: StudyResults, reward: str, alpha: str, beta: str) -> list[Record]:
    labels = {"reward": reward, "alpha": alpha, "beta": beta}
    (runs,) = [runs for c, runs in table.runs.items() if labels.items() <= c.labels.items()]
    return runs


def entered(record: Record) -> list[int]:
    """The steps at which a run went on, from context to context."""
    assert (record.switches[0].k, record.switches[0].step) == (0, 0)
    return [switch.step for switch in record.switches[1:]]


def test_every_condition_has_all_seeds_at_full_length(table) -> None:
    assert warnings(table) == []
    assert table.study.name == "four-rooms"
    assert [c.name for c in table.runs] == [c.name for c in conditions()]
    for condition, runs in table.runs.items():
        assert [run.seed for run in runs] == list(range(SEEDS))
        assert {(run.steps, run.step, run.finished) for run in runs} == {(STEPS, STEPS, True)}
        assert [run.spec_hash for run in runs] == [condition.spec(s).hash for s in range(SEEDS)]


def test_the_committed_table_follows_from_the_runs(table) -> None:
    assert table_csv(table) == (RESULTS / "table-four-rooms.csv").read_text()


def test_progress_follows_from_the_switches(table) -> None:
    for runs in table.runs.values():
        for record in runs:
            steps = entered(record)
            assert record.k == len(steps)
            assert record.K == 16
            assert record.curve.quantities["kappa"][-1] == record.k / 16
            assert record.value(MetricAt("kappa")) == record.k / 16
            assert steps == sorted(steps)


def test_the_readmes_numbers_are_those_of_the_table() -> None:
    with (RESULTS / "table-four-rooms.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["quantity"] == "kappa"]
    readme = (ROOT / "docs" / "results" / "four-rooms.md").read_text()
    shown = re.findall(
        r"\| (hard|easy), α = ([\d.]+) \| ([\d.]+) → \*\*([\d.]+)\*\*, (\d+) of 10 "
        r"\| ([\d.]+) → \*\*([\d.]+)\*\*, (\d+) of 10 ",
        readme,
    )
    assert len(shown) == 4
    for reward, alpha, *numbers in shown:
        expected = []
        for beta in ("0", "0.75"):
            (row,) = [
                r for r in rows if (r["reward"], r["alpha"], r["beta"]) == (reward, alpha, beta)
            ]
            expected += [row["published"], row["mean"], row["mastered_last"]]
        for text, value in zip(numbers, expected, strict=True):
            assert float(text) == pytest.approx(float(value), abs=6e-4)


def test_the_results_pages_claims(table) -> None:
    """The sentences of docs/results/four-rooms.md that are numbers."""
    kappa, final = table.study.readings
    assert agreement(table, kappa) == (20, 28)
    found = improvements(table, kappa)[0]
    assert (found.pairs, found.ahead, found.behind, found.published_ahead) == (24, 18, 0, 18)
    means = {tuple(r.condition.labels.values()): r.summary.mean for r in table.results
             if r.reading == final}  # fmt: skip
    ratio = means["easy", "0.001", "rollin", "0.75"] / means["hard", "0.001", "rollin", "0.75"]
    assert ratio == pytest.approx(10.04, abs=0.005)
    for beta, solved in (
        ("0.1", 2), ("0.2", 2), ("0.3", 9), ("0.5", 10), ("0.75", 10), ("0.9", 10)
    ):  # fmt: skip
        records = runs_of(table, "easy", "0.01", beta)
        assert sum((r.value(RETURN) or 0) > 1 for r in records) == solved
        assert max(entered(r)[15] for r in records) < 31_000
    everything = [run for runs in table.runs.values() for run in runs]
    assert sum(run.costs.env_steps for run in everything) == 1.4e12


def test_the_results_pages_tables_are_the_committed_runs(table) -> None:
    page = (RESULTS / "README.md").read_text()
    for result in table.results:
        mean, error, _ = result.summary
        assert f"{result.published.printed_mean}<br>**{mean:.3f} ± {error:.3f}**" in page


def test_roll_in_helps_the_first_batch_on_later_contexts_only(table) -> None:
    """Ratio of first-batch success from μ_k and from ρ at β = 0.75, median over seeds."""
    later = []
    for reward, alpha in ROWS:
        runs = runs_of(table, reward, f"{alpha:g}", "0.75")
        told = [[switch.numbers for switch in run.switches[1:]] for run in runs]
        for k in range(max(map(len, told))):
            here = [numbers[k] for numbers in told if len(numbers) > k]
            ratios = [numbers["success_mu"] / numbers["success_rho"] for numbers in here]
            middle = statistics.median(ratios)
            if k < 4:
                assert 0.98 < middle < 1.0
            elif middle > 1:
                later.append(middle)
            else:
                assert k == 4  # context 5 of the easy reward
    assert 1.25 < min(later) < 1.35
    assert 4.65 < max(later) < 4.75


# ------------------------------------------------------------------ point-umaze


def test_the_page_of_point_umaze_shows_the_committed_runs() -> None:
    page = (ROOT / "results" / "point-umaze" / "README.md").read_text().splitlines()
    assert set(point_umaze_page.texts()) >= {f"umaze-{name}" for name in point_umaze_page.TITLES}
    for text in point_umaze_page.texts().values():
        assert len(text.splitlines()) > 2  # more than the head
        assert [row for row in text.splitlines() if row not in page] == []


def test_every_condition_of_point_umaze_has_all_seeds_of_the_study() -> None:
    study = study_from(ROOT / "studies" / "point_umaze.toml")
    found = point_umaze_page.runs()
    assert len(found) == len(study.conditions)
    for condition in study.conditions:
        told = condition.labels
        records = found[told["setting"], told["method"], float(told["beta"])]
        assert {record.key for record in records} == {condition.key()}
        assert [record.seed for record in records] == list(range(study.seeds))
        assert [record.spec_hash for record in records] == [
            condition.spec(seed).hash for seed in range(study.seeds)
        ]


def test_what_the_readme_says_of_point_umaze_is_what_was_measured() -> None:
    readme = (ROOT / "README.md").read_text()
    runs = point_umaze_page.runs()
    means = [
        statistics.mean(record.value(MetricAt("kappa")) or 0.0 for record in runs["demo", *which])
        for which in (("rollin", 0.1), ("baseline", 0.0))
    ]
    assert "κ {:.2f} against {:.2f} (p = 0.025)".format(*means) in readme
    adaptive, hand = (
        curricula_page.runs()["fast", "kept", *which]
        for which in (("adaptive", "0"), ("hand", "0.1"))
    )
    done = [len(curricula_page.mastered(records)) for records in (adaptive, hand)]
    counts = f"{done[0]} of {len(adaptive)} seeds, hand-set in {done[1]} of {len(hand)}"
    assert counts in readme


def test_the_profile_in_the_docs_is_the_measured_one() -> None:
    with (ROOT / "results" / "point-umaze" / "profile.csv").open() as file:
        rows = list(csv.DictReader(file))
    profile = {(row["networks"], row["part"]): float(row["microseconds"]) for row in rows}
    page = (ROOT / "benchmarks" / "README.md").read_text()
    for size in ("small", "large"):
        parts = ("environment", "act", "update", "loop", "step")
        cells = " | ".join(f"{profile[size, part]:,.0f}" for part in parts)
        assert f"| {cells} | {profile[size, 'loop share']:.1%} |" in page
    assert profile["large", "loop share"] < 0.03
    assert profile["environment alone", "step"] < 10


# ------------------------------------------------------------------ SAC

HOPPER = ROOT / "results" / "sac" / "hopper.csv"
ZEN_4 = "AMD EPYC (family 25, model 17)"


WIDE = ("Hopper, training steps", "Ant, training steps")
SMALL = tuple(f"{name}, training steps" for name in ("Pendulum (32, 32)", "Pendulum (64, 64)",
                                                     "small networks"))  # fmt: skip


def ratios(lanes: int, cases: tuple[str, ...], cores: int = 1) -> tuple[float, float]:
    """The smallest and the largest of ours over the best peer; on one core by CPU time."""
    speeds = sac_page.sections()[ZEN_4, lanes]
    clock = "per_cpu_second" if cores == 1 else "per_second"
    found = []
    for case in cases:
        ours = sac_page.rate(speeds, case, cores, "rollin cpu", clock)
        assert ours is not None
        found.append(ours / sac_page.best_peer(speeds, case, cores, clock)[1])
    return min(found), max(found)


def test_the_speeds_on_the_page_are_the_committed_ones() -> None:
    page = (ROOT / "docs" / "results" / "speed.md").read_text(encoding="utf-8")
    for lanes, name in ((16, "float32"), (8, "float32, kept to AVX2")):
        (cells,) = re.findall(rf"\| Hopper, Ant, {name} \| AMD Zen 4 \| (.+) \| (.+) \|", page)
        for cores, cell in enumerate(cells, 1):
            for case, number in zip(WIDE, cell.split(", "), strict=True):
                ratio = ratios(lanes, (case,), cores)[0]
                assert float(number.rstrip("×")) == pytest.approx(ratio, abs=0.0051)
    (cells,) = re.findall(r"\| Pendulum and small networks.*Zen 4 \| (.+) \| (.+) \|", page)
    for cores, cell in enumerate(cells, 1):
        shown = [float(part.strip("× ")) for part in cell.split("–")]
        assert shown == pytest.approx(ratios(16, SMALL, cores), abs=0.0051)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "1.5× as fast as the best peer on one core, and 2.5 – 2.6×" in readme
    assert ratios(16, WIDE) == pytest.approx((1.5, 1.5), abs=0.05)


def test_the_hopper_numbers_are_those_of_the_curves() -> None:
    with HOPPER.open() as file:
        rows = list(csv.DictReader(file))
    last: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if int(row["step"]) > 150_000:
            last.setdefault((row["learner"], row["seed"]), []).append(float(row["return_mean"]))
    page = " ".join((ROOT / "docs" / "sac.md").read_text().split())
    cpu, jax, first, second = (
        round(statistics.mean(last[which]))
        for which in (("rollin cpu", "0"), ("rollin jax", "0"), ("SB3", "0"), ("SB3", "1"))
    )
    assert f"end at {cpu} and {jax} after" in page
    assert f"SAC at {first} and {second} (two seeds)" in page


def test_the_costs_of_the_robots_steps_are_the_measured_ones() -> None:
    with (ROOT / "results" / "robots" / "steps.csv").open() as file:
        rows = list(csv.DictReader(file))
    page = (ROOT / "benchmarks" / "README.md").read_text()
    tasks = ["antmaze-umaze", "walker", "hopper", "humanoid", "ant"]
    assert len(rows) > len(tasks)
    now, earlier = rows[: len(tasks)], rows[len(tasks) :]
    assert [row["task"] for row in now] == tasks
    assert len({row["processor"] for row in now}) == 1
    for row in now:
        cells = (f"{float(row[name]):.0f}" for name in ("bare", "step", "more", "allowed"))
        assert f"| {row['task']} | {' | '.join(cells)} |" in page
        assert float(row["more"]) <= float(row["allowed"])
    for i in range(0, len(earlier), len(tasks)):
        group = earlier[i : i + len(tasks)]
        assert [row["task"] for row in group] == tasks
        assert {row["processor"] for row in group} == {group[0]["processor"]}
        cells = (f"{float(row['more']):.0f}" for row in group)
        assert f"| {group[0]['processor']} | {' | '.join(cells)} |" in page


# ------------------------------------------------------------------ what the paper costs


def test_the_cost_pages_tables_follow_from_the_measured_rates() -> None:
    page = (ROOT / "results" / "cost" / "README.md").read_text()
    assert cost.tables() in page
    assert cost.schedule_table() in page


def test_the_schedule_loses_and_repeats_nothing_and_costs_little() -> None:
    with (ROOT / "results" / "cost" / "schedule.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["slots"]) for row in rows] == [2, 64, 6400]
    for row in rows:
        assert int(row["runs"]) == 10_000
        assert int(row["run_twice"]) == int(row["forgotten"]) == 0
        assert int(row["finished"]) + int(row["failed_for_good"]) == 10_000
        assert float(row["overhead"]) < 0.01


def test_the_whole_papers_cost_by_hand() -> None:
    speed = {"four-rooms": 5000.0, "antmaze-umaze": 100.0, "walker": 200.0, "hopper": 200.0,
             "humanoid": 100.0, "ant": 200.0}  # fmt: skip
    found = cost.work(speed)
    assert found["four rooms"] == cost.Work(280, 280 * 10 / 3600, 10 / 3600)
    assert found["ant maze"] == cost.Work(1440, 1440 * 30_000 / 3600, 30_000 / 3600)
    # three robots at 200 steps per second and one at 100; six cells of eight seeds each
    assert found["velocities"].core_hours == 48 * (3 * 5000 + 10_000) / 3600
    maze = [found["ant maze"]]
    assert cost.wall_hours(maze, 64) == 12_000 / 64
    assert cost.wall_hours(maze, 6400) == 30_000 / 3600  # the longest run
