"""The robots with seeds: what is run, what is kept of it, and the page that shows it."""

from pathlib import Path

import numpy as np
import pytest
from studies import robots

from rollin.envs.registry import make_contextual
from rollin.runs.curricula import curriculum_of
from rollin.runs.directory import RunDirectory
from rollin.runs.rows import read_metrics


def test_the_committed_runs_are_those_that_are_described() -> None:
    described = {
        robots.key_of(spec): (spec.hash, condition.until)
        for conditions in robots.READINGS.values()
        for condition in conditions
        for seed in range(robots.SEEDS)
        for spec in (robots.spec_of(condition, seed),)
    }
    assert len(described) == len([*robots.described()])
    found = robots.read("figures.csv")
    first_look = {robots.key_of(robots.spec_of(condition, 0)) for condition in robots.FIRST_LOOK}
    assert first_look <= found.keys()
    assert found.keys() - first_look  # runs with the readings that fit
    for key, rows in found.items():
        spec_hash, until = described[key]
        assert {row["spec_hash"] for row in rows} == {spec_hash}
        steps = [int(row["step"]) for row in rows]
        assert steps == sorted(steps)
        assert steps[-1] < until + 2000  # to the end of an episode
        assert key not in first_look or steps[-1] >= until
        for row in rows:
            last = 24 if key[1] == "antmaze-umaze" else 9
            assert float(row["kappa"]) == pytest.approx(int(row["k"]) / last, rel=1e-5)


@pytest.fixture
def small() -> robots.Condition:
    options = {"env_options": ("horizon=50",), "warmup": 100, "hidden": (8,), "batch": 16}
    return robots.Condition("hopper", {**options, "log_every": 200, "eval_episodes": 1}, 600)


def test_a_run_is_read_at_every_step_that_it_has_passed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    small: robots.Condition,
) -> None:
    """An unfinished run gives figures up to its checkpoint, and none beyond."""
    spec = robots.spec_of(small, 0)
    out, results = tmp_path / "runs" / "a", tmp_path / "results"
    name, step = robots.run_one((spec, out, small.until))
    assert name == "a"
    assert small.until <= step < spec.config.steps
    assert not RunDirectory(out).finished
    assert robots.run_one((spec, out, small.until)) == ("a", step)  # nothing is left to do

    robots.collect(tmp_path / "runs", results)
    assert "not those of a condition of this study" in capsys.readouterr().out
    monkeypatch.setattr(robots, "EVERY", 100)
    monkeypatch.setitem(robots.READINGS, "tables", (small,))
    robots.collect(tmp_path / "runs", results)
    rows = robots.read("figures.csv", results)[robots.key_of(spec)]
    assert [int(row["step"]) for row in rows] == [*range(100, step, 100), step]
    episodes = read_metrics(out / "episodes.csv")
    inside = [r for s, r in zip(episodes["step"], episodes["return"], strict=True) if s <= 300]
    assert float(rows[2]["return_mean_last"]) == pytest.approx(np.mean(inside), rel=1e-5)
    assert int(rows[2]["episodes"]) == len(inside)
    assert rows[-1]["processor"]
    assert robots.read("curves.csv", results)[robots.key_of(spec)]

    # a run that began anew on another machine does not displace a longer one
    longer = {robots.key_of(spec): [[step + 1, *["1"] * (len(robots.COLUMNS["figures.csv"]) - 1)]]}
    robots.merge("figures.csv", longer, results)
    robots.collect(tmp_path / "runs", results)
    assert "have a longer run" in capsys.readouterr().out
    assert len(robots.read("figures.csv", results)[robots.key_of(spec)]) == 1


def test_records_outlive_the_directories_that_they_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: robots.Condition
) -> None:
    spec = robots.spec_of(small, 0)
    key, other = robots.key_of(spec), robots.key_of(robots.spec_of(small, 1))
    width = len(robots.COLUMNS["figures.csv"])
    robots.merge("figures.csv", {key: [[600, *["1"] * (width - 1)]]}, tmp_path)
    kept = robots.read("figures.csv", tmp_path)[key]
    robots.merge("figures.csv", {other: [[100, *["2"] * (width - 1)]]}, tmp_path)
    found = robots.read("figures.csv", tmp_path)
    assert found[key] == kept
    assert found[other][0]["step"] == "100"
    # what the records have reached is not run again: of two seeds one is left
    begun: list[tuple[object, Path, int]] = []

    class Pool:
        def __init__(self, *_: object, **__: object) -> None: ...
        def __enter__(self) -> "Pool":
            return self

        def __exit__(self, *_: object) -> None: ...
        def imap_unordered(self, _: object, jobs: list, chunksize: int) -> list:
            begun.extend(jobs)
            return []

    monkeypatch.setattr(robots.multiprocessing.get_context("spawn").__class__, "Pool", Pool)
    monkeypatch.setitem(robots.READINGS, "tables", (small,))
    robots.run(tmp_path / "runs", 1, 2, "tables", None, tmp_path)
    assert [job[1].name for job in begun] == ["-".join(other)]


@pytest.mark.parametrize("condition", robots.FIRST_LOOK[2:5])
def test_the_printed_reading_has_the_thresholds_and_goals_of_the_text(
    condition: robots.Condition,
) -> None:
    env = make_contextual(condition.task)
    printed, plain = (
        curriculum_of(env, robots.spec_of(read, 0).config)
        for read in (condition, robots.printed_as(condition))
    )
    env.close()
    if condition.task == "hopper":
        assert [printed.threshold(k) for k in (0, 9)] == pytest.approx([950, 5000])
        assert [plain.threshold(k) for k in (0, 9)] == pytest.approx([500, 4550])
    else:
        assert (printed.K, plain.K) == (24, 23)
    for walked in (printed, plain):  # κ is converted in the records of either
        assert walked.kappas == tuple(k / walked.K for k in range(walked.K + 1))
