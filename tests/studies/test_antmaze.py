"""AntMaze with seeds: runs that stop to be read and continue, and what is kept of them."""

import numpy as np
import pytest
from studies.shared import committed, key_of, rows_by_run

from rollin.runs.directory import RunDirectory
from rollin.runs.metrics import read_metrics
from rollin.runs.records import MetricAt
from rollin.sweeps.condition import block
from rollin.sweeps.study import Study
from studies import antmaze
from tests.here import HereExecutor

OPTIONS = {"steps": 1200, "log_every": 300, "goals": 2, "eval_episodes": 1, "warmup": 100,
           "hidden": (8, 8), "batch": 16, "env_options": ("horizon=50",)}  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two studies of a second, read at half their length."""
    made = block("point-umaze", {"beta": [0.0, 0.5]}, OPTIONS)
    other = block("point-umaze", {"beta": [0.9]}, OPTIONS)
    found = {
        name: Study(name, tuple(conditions), seeds=2, family=antmaze.FAMILY)
        for name, conditions in (("a", made), ("b", other))
    }
    monkeypatch.setattr(antmaze, "studies", lambda: found)
    monkeypatch.setattr(antmaze, "ORDER", ("a", "b"))
    monkeypatch.setattr(antmaze, "AT", 600)
    monkeypatch.setattr(antmaze, "STEP", 1200)
    monkeypatch.setattr("rollin.runs.engines.rollin_run.EVERY", 600)
    monkeypatch.setattr(antmaze, "LocalExecutor", lambda jobs, command: HereExecutor(command))


@pytest.mark.usefixtures("small")
def test_runs_are_read_continued_and_kept(tmp_path, monkeypatch) -> None:
    out, results = tmp_path / "runs", tmp_path / "results"
    with monkeypatch.context() as context:
        context.setattr(antmaze, "STEP", 600)  # as if it was stopped after the first half
        assert antmaze.run(out, 1, results) == 0
    runs = [RunDirectory(path.parent) for path in sorted(out.rglob("config.json"))]
    assert [run.saved().step for run in runs] == [600] * 6
    antmaze.collect(out, results)
    half = {key_of(record): record for record in committed(results)}
    assert [record.step for record in half.values()] == [600] * 6
    assert antmaze.run(out, 1, results) == 0
    antmaze.collect(out, results)
    records = {key_of(record): record for record in committed(results)}
    assert len(records) == 6
    assert {record.step for record in records.values()} == {1200}
    rows = rows_by_run(results / "goals.csv")
    for run in runs:
        told = read_metrics(run.path / "goals.csv")
        assert told["step"] == [600, 1200]
        key = next(k for k in records if run.path == out / k[0] / f"seed={k[1]}")
        assert [(int(r["step"]), int(r["goal"])) for r in rows[key]] == [
            (600, 1), (600, 2), (1200, 1), (1200, 2)
        ]  # fmt: skip
        assert float(rows[key][3]["drawn_return"]) == pytest.approx(told["drawn_return_2"][1])
        counted = [row["cells"].split(";") for row in rows_by_run(results / "visits.csv")[key]]
        steps = sum(int(cell.split()[2]) for cells in counted for cell in cells)
        assert steps == 1200
        solved = np.mean([told[f"success_{goal}"][0] >= 0.8 for goal in (1, 2)])
        for record in (half[key], records[key]):
            assert record.value(MetricAt("goals", 600)) == pytest.approx(solved)


@pytest.mark.usefixtures("small")
def test_what_the_committed_records_have_is_not_run_again(tmp_path) -> None:
    out, results = tmp_path / "runs", tmp_path / "results"
    assert antmaze.run(out, 1, results) == 0
    antmaze.collect(out, results)
    assert antmaze.run(tmp_path / "elsewhere", 1, results) == 0
    assert not list((tmp_path / "elsewhere").rglob("config.json"))
