"""Runs that are damaged, cut off, doubled or not what they seem: named, and left out."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollin.analysis.collect import collect, group
from rollin.analysis.results import results_of
from rollin.cli import main
from rollin.errors import RollinError
from rollin.paper.four_rooms import condition
from rollin.paper.tables import find_table
from rollin.report.labels import warnings
from rollin.runs.files import write_json
from rollin.runs.records import RUNS, read_records, write_records
from rollin.runs.spec import RunSpec, configured
from tests.made_runs import STUDIES, deep_run, report, reseal, robots, rooms, write_sweep
from tests.undrawn import undrawn

Damage = Callable[[Path], None]


def result(**values: Any) -> Damage:
    """Other values in a run's result.json; ... takes one away."""
    return lambda run: reseal(run, **values)


def swapped(file: str, pattern: str, by: str) -> Damage:
    """Other text in one of a run's files."""

    def damage(run: Path) -> None:
        text = (run / file).read_text()
        assert re.search(pattern, text, re.M)
        (run / file).write_text(re.sub(pattern, by, text, count=1, flags=re.M))

    return damage


def unsealed(damage: Damage) -> Damage:
    """A change of a CSV after which the result has its checksum."""

    def both(run: Path) -> None:
        damage(run)
        reseal(run)

    return both


ADVANCE = {"step": 500, "k": 1, "reason": "mastered"}
SWITCH = {"step": 1, "k": 1, "reason": "", "numbers": {"success_rho": 0, "success_mu": 0}}
TABULAR: list[tuple[Damage, str]] = [
    (result(seconds=...), "missing required field `seconds`"),
    *((result(**{name: ...}), f"has {name} = None") for name in ("step", "kappa", "k", "return")),
    (result(success=None), "has success = None, and the last row of metrics.csv 0.5"),
    (result(rollin_steps="3"), "has rollin_steps = 3, and the last row"),
    (result(kappa="0.5"), "expected `float | null`, got `str`, at kappa"),
    (result(kappa=True), "got `bool`, at kappa"),
    (result(kappa=7), "expected `float` <= 1.0, at kappa"),
    (result(kappa=0.3), "has kappa = 0.3, and the last row of metrics.csv 0.25"),
    (result(K=0), "expected `int` >= 1, at K"),
    (result(K=3), "its switches must lead to k = 4 of 3"),
    (result(k=17), "has k = 17, and the last row of metrics.csv 4"),
    (result(k=0.5), "got `float`, at k"),
    (result(seconds="nan"), "expected `float`, got `str`, at seconds"),
    (result(seconds=float("nan")), "NaN is not a finite number"),
    (result(seconds=-1), "expected `float` >= 0.0, at seconds"),
    (result(env_steps=10**400), "cannot be read"),
    (result(more=1), "has more, which no run writes"),
    (result(advances=[3]), "expected `object`, got `int`, at advances[0]"),
    (result(advances=[{**SWITCH, "numbers": {"a": None}}]), "at advances[0].numbers"),
    (result(advances=[{**SWITCH, "k": k, "step": 9 - k} for k in range(1, 5)]), "must rise"),
    (result(advances=[SWITCH] * 17), "its switches must lead to k = 4 of"),
    (unsealed(swapped("metrics.csv", r"^(\d+),", "nan,")), "the steps of metrics.csv must be"),
    (unsealed(swapped("metrics.csv", r"(?s)\n.*", "\n")), "metrics.csv has no rows"),
    (swapped("metrics.csv", r"^(\d+),", r"\g<1>0,"), "metrics.csv does not match its checksum"),
    (swapped("result.json", r'"kappa": 0.25', '"kappa": 0.3125'), "does not match its checksum"),
    (swapped("config.json", r'"seed": \d', '"seed": 9'), "does not match its spec_hash"),
    (swapped("config.json", r'"seed": \d', '"seed": "a"'), "does not match its spec_hash"),
]
DEEP: list[tuple[Damage, str]] = [
    (result(kappa_mean="x"), "has kappa_mean = x, and the last row of metrics.csv"),
    (result(advances=3), "expected `array`, got `int`, at advances"),
    (result(advances=[{**ADVANCE, "k": 99}]), "must lead to k = 1 of 10, got [99]"),
    (result(advances=[{**ADVANCE, "k": -1}]), "expected `int` >= 0, at advances[0].k"),
    (result(advances=[{**ADVANCE, "step": "a"}]), "got `str`, at advances[0].step"),
    (result(curriculum={"contexts": [], "kappas": [0, 1], "thresholds": []}), "11 contexts"),
    (result(curriculum=[]), "expected `object | null`, got `array`, at curriculum"),
    (swapped("metrics.csv", ",success,", ",lambda,"), "does not match its checksum"),
    (unsealed(swapped("metrics.csv", ",success,", ",lambda,")), "has success, which no run"),
]


def check_left_out(place: Path, damage: Damage, why: str) -> None:
    """One run is damaged: it is named with the reason, and the others are there."""
    runs = sorted(path.parent for path in place.rglob("result.json"))
    damage(runs[0])
    found = collect([place])
    assert len(found.records) == len(runs) - 1
    (note,) = found.broken
    assert note.startswith(str(runs[0]))
    assert why in note


@pytest.mark.parametrize(("damage", "why"), TABULAR)
def test_damaged_tabular_runs_are_named_and_left_out(tmp_path, damage: Damage, why: str) -> None:
    check_left_out(rooms(tmp_path, {0.75: [4, 5]}), damage, why)


@pytest.mark.parametrize(("damage", "why"), DEEP)
def test_damaged_deep_runs_are_named_and_left_out(tmp_path, damage: Damage, why: str) -> None:
    check_left_out(robots(tmp_path, {"rollin": [500]}), damage, why)


@pytest.mark.parametrize(
    ("write", "damage"),
    [
        (lambda out: rooms(out, {0.75: [4, 5]}), result(kappa=7)),
        (lambda out: robots(out, {"rollin": [500]}), result(K=7)),
    ],
    ids=["tabular", "deep"],
)
@undrawn()
def test_the_page_names_the_damaged_run_alone(tmp_path, write, damage) -> None:
    write(tmp_path)
    broken, whole = sorted(path.parent for path in tmp_path.rglob("result.json"))
    damage(broken)
    report(collect([tmp_path]), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert str(broken) in page
    assert str(whole) not in page


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (rb"(?s).*", bytes([0xFF, 0, 0x80]), "runs.csv cannot be read"),
        (rb"spec_hash", b"hash", "has no column spec_hash"),
        (rb",4,16,", b",4,0,", "k must lie between 0 and K"),
        (rb",4,16,", b",17,16,", "k must lie between 0 and K"),
        (rb",36,", b",nan,", "costs must be numbers"),
    ],
)
def test_a_damaged_runs_csv_costs_no_other_directory(tmp_path, old, new, why) -> None:
    rooms(tmp_path / "a", {0.75: [4, 5]})
    files = write_records(collect([tmp_path / "a"]).records)
    files[RUNS], count = re.subn(old, new, files[RUNS], count=1)
    assert count == 1
    (tmp_path / "b").mkdir()
    for name, data in files.items():
        (tmp_path / "b" / name).write_bytes(data)
    found = collect([tmp_path / "b", tmp_path / "a"])
    assert len(found.records) == 2
    (note,) = found.broken
    assert str(tmp_path / "b" / RUNS) in note
    assert why in note
    with pytest.raises(RollinError, match="No finished run"):
        collect([tmp_path / "b"])


def test_a_planned_run_without_its_configuration_is_named(tmp_path) -> None:
    rooms(tmp_path, {0.0: [3, 4]})
    one = condition("hard", 0.001, 0.0)
    write_sweep(tmp_path, "four-rooms", {f"1/{one.name}/seed={s}": one.spec(s) for s in (0, 1, 2)})
    lost = tmp_path / "1" / one.name / "seed=1"
    (lost / "config.json").unlink()
    found = collect([tmp_path])
    assert found.broken == [f"{lost}: planned by the sweep, but has no config.json"]
    assert len(found.sweeps[0].missing) == 2  # it, and one that was never begun


def test_a_broken_status_costs_the_host_only(tmp_path) -> None:
    rooms(tmp_path, {0.0: [3]})
    for path in list(tmp_path.rglob("result.json")):
        (path.parent / "status.json").write_text("{")
    found = collect([tmp_path])
    assert (len(found.records), found.skipped, found.hosts) == (1, [], [])


def test_seeds_that_lack_a_row_of_metrics_are_named(tmp_path) -> None:
    robots(tmp_path, {"baseline": [2000], "rollin": [500]}, seeds=3)
    for path in sorted(tmp_path.rglob("metrics.csv")):
        if "baseline" in str(path) and "seed=1" not in str(path):
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(line for line in lines if not line.startswith("5000,")))
            reseal(path.parent)
    (results,) = results_of(group(collect([tmp_path], STUDIES).records, STUDIES), STUDIES)
    (note,) = [note for note in warnings(results) if "Not recorded by" in note]
    assert note.startswith("Not recorded by seed 0, 2 of ")
    assert "at 5,000 steps" in note or "at 5k steps" in note


def test_a_second_run_of_a_seed_is_named_and_counts_once(tmp_path) -> None:
    (one, *_) = (c for c in find_table("velocity-progress").conditions if c.task == "hopper")
    for steps in (600_000, 700_000):
        spec = one.spec(0)
        shorter = RunSpec(spec.task, configured(spec.config, {"steps": steps}))
        deep_run(tmp_path / str(steps), shorter, [100_000])
    found = group(collect([tmp_path], STUDIES).records, STUDIES)
    assert found.skipped == [f"{tmp_path / '600000'}: seed 0 counts once, as {tmp_path / '700000'}"]


@undrawn()
def test_runs_in_a_csv_and_in_directories_are_the_same_ones(tmp_path) -> None:
    rooms(tmp_path / "a", {0.75: [4, 5]})
    report(collect([tmp_path / "a"]), tmp_path / "b" / "r.html")
    found = collect([tmp_path / "a", tmp_path / "b"])
    assert len(found.records) == 2
    assert len(found.skipped) == 2
    assert "the same run as" in found.skipped[0]


def test_another_task_of_the_same_name_is_no_further_seed(tmp_path) -> None:
    rooms(tmp_path, {0.75: [4, 5, 16]})
    run = next(p.parent for p in tmp_path.rglob("config.json") if "seed=2" in str(p))
    described = json.loads((run / "config.json").read_text())
    write_json(run / "config.json", described | {"fingerprint": "other"})
    found = group(collect([tmp_path], STUDIES).records, STUDIES)
    results = results_of(found, STUDIES)[0]
    assert results.results[0].values == (4 / 16, 5 / 16)
    (note,) = found.notes
    assert note.startswith("1 of the runs of four-rooms, ")
    assert "had another task of the same name" in note


# ------------------------------------------------------------------ what a report writes


@undrawn()
def test_a_runs_csv_that_was_read_is_not_written(tmp_path) -> None:
    rooms(tmp_path / "a", {0.75: [4, 5]})
    rooms(tmp_path / "more", {0.0: [3, 3]})
    report(collect([tmp_path / "a"]), tmp_path / "b" / "r.html")
    table = tmp_path / "b" / "runs.csv"
    before = table.read_bytes()
    assert main(["report", str(tmp_path / "b"), str(tmp_path / "more")]) == 0
    assert table.read_bytes() == before


@undrawn()
def test_a_runs_csv_of_other_runs_is_left_alone_and_one_of_these_grows(tmp_path, capsys) -> None:
    table = rooms(tmp_path, {0.75: [4]}) / "runs.csv"
    assert main(["report", str(tmp_path)]) == 0
    rooms(tmp_path, {0.0: [3]})
    assert main(["report", str(tmp_path)]) == 0
    assert len(read_records(tmp_path)) == 2
    # runs of the same options with other numbers are other runs
    found = table.read_text().replace(",36,", ",35,")
    table.write_text(found)
    capsys.readouterr()
    assert main(["report", str(tmp_path)]) == 0
    assert table.read_text() == found
    assert "it holds other runs than these" in " ".join(capsys.readouterr().out.split())


def test_a_table_without_runs_is_refused(tmp_path, capsys) -> None:
    rooms(tmp_path, {0.75: [4]})
    assert main(["report", str(tmp_path), "--study", "velocity-summary"]) == 2
    assert "velocity-summary has no runs here" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
