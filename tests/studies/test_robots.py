"""The robots with seeds: what is run, what is kept of it, and the page that shows it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from studies.shared import committed, key_of

from rollin.envs.registry import make_contextual
from rollin.runs import driver
from rollin.runs.curricula import curriculum_of
from rollin.runs.directory import RunDirectory
from rollin.runs.metrics import read_metrics
from rollin.runs.records import MetricAt, Record, read_records, write_records
from rollin.sweeps.condition import Condition, Published
from studies import robots, robots_page


def test_the_committed_runs_are_those_that_are_described() -> None:
    described = {
        (condition.name, seed): (condition.spec(seed).hash, condition.key(), until)
        for condition, until in {**robots.CONDITIONS, **robots.FIRST_LOOK}.items()
        for seed in range(robots.SEEDS)
    }
    found = {(key_of(r)[0], r.seed): r for r in committed(robots.RESULTS)}
    first_look = {(condition.name, 0) for condition in robots.FIRST_LOOK}
    assert first_look <= found.keys()
    assert found.keys() - first_look  # runs with the readings that fit
    for key, record in found.items():
        spec_hash, condition_key, until = described[key]
        assert (record.spec_hash, record.key) == (spec_hash, condition_key)
        assert record.step < until + 2000  # to the end of an episode
        assert key not in first_look or record.step >= until
        assert "family" in record.processor
        assert record.costs.seconds
        if "kappa" in record.curve.quantities and record.K is not None:
            k = np.round(record.curve.quantities["kappa"] * record.K)
            np.testing.assert_allclose(record.curve.quantities["kappa"], k / record.K, rtol=1e-5)


def test_published_values_are_those_of_the_condition() -> None:
    step = MetricAt("kappa", robots.UNTIL)
    told = {c.name: c.published.get(step) for c in robots.CONDITIONS}
    assert [str(value) for value in told.values()] == [
        "0.85 ± 0.02",
        "0.82 ± 0.03",
        "0.72 ± 0.02",
        "0.82 ± 0.06",
        "None",
    ]
    maze = next(c for c in robots.FIRST_LOOK if c.task == "antmaze-umaze")
    assert str(maze.published[MetricAt("kappa", 3_000_000)]) == "0.92 ± 0.02"


@pytest.mark.parametrize("cells", [("0.72±0.02", "0.82±0.06"), ("0.92±0.03", "0.94±0.03")])
def test_so_many_seeds_have_the_power_and_one_less_has_not(cells) -> None:
    """Power of the test of two normal means: Φ(δ / (σ √(2/n)) - z₀.₉₇₅)."""
    base, other = map(Published.parse, cells)
    n = robots_page.seeds_needed(base, other)
    assert n is not None
    gap = abs(other.mean - base.mean)
    sigma = np.sqrt(8 * (base.error**2 + other.error**2) / 2)  # of a seed, from eight

    def power(seeds: int) -> float:
        return NormalDist().cdf(gap / (sigma * np.sqrt(2 / seeds)) - 1.959964)

    assert power(n - 1) < 0.8 <= power(n)
    assert robots_page.seeds_needed(Published.parse("0.36±0.00"), Published.parse("0.56±0.02")) == 4
    assert robots_page.seeds_needed(base, base) is None


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Condition:
    """A condition of the study that takes a second."""
    options: dict[str, Any] = {"env_options": ("horizon=50",), "warmup": 100, "hidden": (8,)}
    options |= {"batch": 16, "log_every": 100, "eval_episodes": 1}
    labels = {"reading": "tables", "env": "hopper", "method": "rollin", "beta": "0.1"}
    one = Condition(labels, "hopper", options)
    monkeypatch.setitem(robots.READINGS, "tables", {one: 600})
    monkeypatch.setattr(robots, "STUDY", robots._study((one,)))
    monkeypatch.setattr(robots, "EVERY", 100)
    monkeypatch.setattr(robots, "UNTIL", 600)
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)  # asked after every step
    return one


def job(condition: Condition, out: Path) -> tuple[Any, Path, int, Any]:
    return condition.spec(0), out, 600, condition.membership("robots")


def test_a_run_is_read_at_every_step_that_it_has_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], small: Condition
) -> None:
    """An unfinished run gives quantities up to its checkpoint, and none beyond."""
    out, results = tmp_path / "runs" / "a", tmp_path / "results"
    name, step = robots.run_one(job(small, out))
    assert name == "runs/a"
    assert 600 <= step < small.steps
    assert not RunDirectory(out).finished
    assert robots.run_one(job(small, out)) == (name, step)  # nothing is left to do

    robots.collect(tmp_path / "runs", results)
    (record,) = read_records(results)
    assert (record.step, record.finished, record.labels) == (step, False, small.labels)
    assert record.processor
    episodes = read_metrics(out / "episodes.csv")
    inside = [r for s, r in zip(episodes["step"], episodes["return"], strict=True) if s <= 300]
    assert record.value(MetricAt("return", 300)) == pytest.approx(np.mean(inside), rel=1e-5)
    assert record.value(MetricAt("return", step + 100)) is None

    # a run that began anew on another machine does not displace a longer one
    _write([replace(record, step=step + 1)], results)
    robots.collect(tmp_path / "runs", results)
    assert "have a longer run" in capsys.readouterr().out
    assert read_records(results)[0].step == step + 1


def test_a_run_of_no_condition_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], small: Condition
) -> None:
    other = replace(small, options={**small.options, "batch": 17})
    robots.run_one(job(other, tmp_path / "runs" / "a"))
    robots.collect(tmp_path / "runs", tmp_path / "results")
    assert "not those of a condition of this study" in capsys.readouterr().out
    assert read_records(tmp_path / "results") == []


def _write(records: Sequence[Record], results: Path) -> None:
    results.mkdir(parents=True, exist_ok=True)
    for name, text in write_records(records).items():
        (results / name).write_bytes(text)


def test_what_the_records_have_reached_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: Condition
) -> None:
    robots.run_one(job(small, tmp_path / "runs" / "a"))
    robots.collect(tmp_path / "runs", tmp_path / "results")
    (record,) = read_records(tmp_path / "results")
    _write([replace(record, seed=1)], tmp_path / "results")
    begun: list[tuple[Any, Path, int, Any]] = []

    class Pool:
        def __init__(self, *_: object, **__: object) -> None: ...
        def __enter__(self) -> "Pool":
            return self

        def __exit__(self, *_: object) -> None: ...
        def imap_unordered(self, _: object, jobs: list, chunksize: int) -> list:
            begun.extend(jobs)
            return []

    monkeypatch.setattr(robots.multiprocessing.get_context("spawn").__class__, "Pool", Pool)
    robots.run(tmp_path / "runs", 1, 3, "tables", None, tmp_path / "results")
    # of three seeds one is recorded, one goes on where it lies, one is new
    assert [planned[0].config.seed for planned in begun] == [0, 2]
    assert begun[0][1] == tmp_path / "runs" / "a"
    assert begun[1][1].name == "seed=2"


@pytest.mark.parametrize("condition", list(robots.FIRST_LOOK)[2:5], ids=lambda c: c.name)
def test_the_printed_reading_has_the_thresholds_and_goals_of_the_text(
    condition: Condition,
) -> None:
    env = make_contextual(condition.task)
    plainly = {n: v for n, v in condition.options.items() if n not in robots._PRINTED}
    printed, plain = (
        curriculum_of(env, one.spec(0).config)
        for one in (condition, replace(condition, options=plainly))
    )
    env.close()
    if condition.task == "hopper":
        assert [printed.threshold(k) for k in (0, 9)] == pytest.approx([950, 5000])
        assert [plain.threshold(k) for k in (0, 9)] == pytest.approx([500, 4550])
    else:
        assert (printed.K, plain.K) == (24, 23)
    for walked in (printed, plain):  # κ is converted in the records of either
        assert walked.kappas == tuple(k / walked.K for k in range(walked.K + 1))


def test_methods_are_compared_from_five_seeds_of_each_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hand-made seeds: of 25 pairs ROLLIN is ahead in 20, behind in 4, and one is a tie."""
    known = {
        ("hopper", "baseline"): [0.0, 1.0, 2.0, 3.0, 6.0],
        ("hopper", "rollin"): [2.5, 3.0, 4.0, 7.0, 8.0],
        ("ant", "baseline"): [1.0, 2.0, 3.0, 6.0],
        ("ant", "rollin"): [1.0, 2.0],
    }
    monkeypatch.setattr(
        robots_page, "values_at", lambda step, task, method, quantity: known[task, method]
    )
    hopper, ant = robots_page.compared().rows
    assert list(hopper[:3]) == ["hopper", "5 of 8", "5 of 8"]
    assert hopper[3].startswith("0.82 [")  # 20.5 of 25
    assert hopper[-1] == "–"
    assert list(ant) == ["ant", "4 of 8", "2 of 8", "–", "–", "–", "4 runs are missing"]


def test_values_are_those_of_the_seeds_that_have_come_so_far() -> None:
    found = robots_page.values_at(robots.UNTIL, "ant", "rollin", "x_velocity")
    assert len(found) == robots_page.seeds_at(robots.UNTIL, "ant", "rollin") >= 1
    assert found[0] == pytest.approx(4.06, abs=0.005)
