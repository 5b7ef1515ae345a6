"""Runs that are damaged, cut off, doubled or not what they seem: named, and left out."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollin.analysis.collect import collect
from rollin.analysis.results import results_of
from rollin.cli import main
from rollin.errors import RollinError
from rollin.paper.four_rooms import cell
from rollin.paper.tables import find_table
from rollin.report.conditions import conditions
from rollin.report.page import make_report
from rollin.report.records import TabularRecord
from rollin.report.runs_csv import FIGURES, read_runs_csv, runs_csv
from rollin.runs.files import write_json
from rollin.runs.spec import RunSpec, rollin_config
from tests.made_runs import deep_run, robots, rooms, write_sweep

Damage = Callable[[Path], None]


def result(**values: Any) -> Damage:
    """Other values in a run's result.json; ... takes one away."""

    def damage(run: Path) -> None:
        found = json.loads((run / "result.json").read_text()) | values
        kept = {name: value for name, value in found.items() if value is not ...}
        (run / "result.json").write_text(json.dumps(kept))

    return damage


def swapped(file: str, pattern: str, by: str) -> Damage:
    """Other text in one of a run's files."""

    def damage(run: Path) -> None:
        text = (run / file).read_text()
        assert re.search(pattern, text, re.M)
        (run / file).write_text(re.sub(pattern, by, text, count=1, flags=re.M))

    return damage


ADVANCE = {"step": 500, "k": 1, "reason": "mastered"}
TABULAR: list[tuple[Damage, str]] = [
    *((result(**{name: ...}), f"lacks '{name}'") for name in FIGURES),
    (result(success=None), "success must be a finite number, got None"),
    (result(rollin_steps="3"), "rollin_steps must be a finite number, got '3'"),
    (result(kappa="0.5"), "kappa must be a finite number, got '0.5'"),
    (result(kappa=True), "kappa must be a finite number, got True"),
    (result(kappa=7), "kappa must lie between 0 and 1, got 7"),
    (result(K=0), "K must be at least 1, got 0"),
    (result(k=17), "k must lie between 0 and K = 16, got 17"),
    (result(k=0.5), "k must be a whole number"),
    (result(seconds="nan"), "seconds must be a finite number, got 'nan'"),
    (result(seconds=float("nan")), "seconds must be a finite number, got nan"),
    (result(seconds=-1), "seconds must not be negative"),
    (result(env_steps=10**400), "its files cannot be read"),
    (result(switches=[3]), "switches must hold objects"),
    (result(switches=[{"step": 1, "success_rho": None, "success_mu": 1}]), "success_rho must be"),
    (result(switches=[{"step": s, "success_rho": 0, "success_mu": 0} for s in (5, 2)]),
     "the steps of switches must rise"),
    (result(switches=[{"step": 1, "success_rho": 0, "success_mu": 0}] * 17), "17 switches"),
    (swapped("metrics.csv", r"^(\d+),", "nan,"), "the steps of metrics.csv must rise"),
    (swapped("metrics.csv", r"(?s)\n.*", "\n"), "metrics.csv has no rows"),
    (swapped("config.json", r'"seed": \d', '"seed": "a"'), ""),
]  # fmt: skip
DEEP: list[tuple[Damage, str]] = [
    (result(return_mean_last="x"), "return_mean_last must be a finite number, got 'x'"),
    (result(milestones=[]), "milestones must be an object, got []"),
    (result(milestones={"500000": 3}), "milestones must hold objects"),
    (result(milestones={"500000": {"kappa": 2}}), "kappa must lie between 0 and 1, got 2"),
    (result(milestones={"500000": {}}), "lacks 'kappa'"),
    (result(advances=3), "advances must hold objects, got 3"),
    (result(advances=[{**ADVANCE, "k": 99}]), "advances must lead to k = 1 of K = 10, got [99]"),
    (result(advances=[{**ADVANCE, "k": -1}]), "k must be a whole number of at least 0, got -1"),
    (result(advances=[{**ADVANCE, "step": "a"}]), "step must be a finite number, got 'a'"),
    (result(curriculum={"kappas": [0, 1]}), "curriculum.kappas must be 11 numbers"),
    (result(curriculum={"kappas": [7] * 11}), "curriculum.kappas must be 11 numbers"),
    (result(curriculum=[]), "its files cannot be read"),
    (swapped("episodes.csv", r"^(\d+,[^,]+,[^,]+),100,", r"\1,0,"), "an episode without length"),
    (swapped("episodes.csv", "^100,", "nan,"), "the steps of episodes.csv must rise"),
    (swapped("episodes.csv", "length", "width"), "lacks 'length'"),
    (swapped("metrics.csv", "kappa", "lambda"), "lacks 'kappa'"),
]


def check_left_out(place: Path, damage: Damage, why: str) -> None:
    """One run is damaged: it is named with the reason, and the others are there."""
    runs = sorted(path.parent for path in place.rglob("result.json"))
    damage(runs[0])
    found = collect([place])
    assert len(found.records) == len(runs) - 1
    (note,) = found.broken
    assert note.startswith(f"{runs[0]}: ")
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
        (lambda out: robots(out, {"rollin": [500]}), result(milestones=[])),
    ],
    ids=["tabular", "deep"],
)
def test_the_page_names_the_damaged_run_alone(tmp_path, write, damage) -> None:
    write(tmp_path)
    broken, whole = sorted(path.parent for path in tmp_path.rglob("result.json"))
    damage(broken)
    make_report(collect([tmp_path]), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert str(broken) in page
    assert str(whole) not in page


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (rb"(?s).*", bytes([0xFF, 0, 0x80]), "runs.csv cannot be read"),
        (rb"spec_hash", b"hash", "line 2 cannot be read: lacks 'spec_hash'"),
        (rb",16,0.25,", b",16,7,", "kappa must lie between 0 and 1, got 7"),
        (rb",4,16,", b",4,0,", "K must be at least 1"),
        (rb",4,16,", b",17,16,", "k must lie between 0 and K"),
        (rb",36,", b",nan,", "seconds must be a finite number, got nan"),
        (rb",36,\d+ ", b",36,", "are not equally long"),
        (rb"(0.1 ?){4},", b"nan 1 1 1,", "not finite"),
    ],
)
def test_a_damaged_runs_csv_costs_no_other_directory(tmp_path, old, new, why) -> None:
    rooms(tmp_path / "a", {0.0: [4], 0.75: [4]})
    records = [one for one in collect([tmp_path / "a"]).records if isinstance(one, TabularRecord)]
    text, count = re.subn(old, new, runs_csv(records), count=1)
    assert count == 1
    table = tmp_path / "b" / "runs.csv"
    table.parent.mkdir()
    table.write_bytes(text)
    found = collect([tmp_path / "b", tmp_path / "a"])
    assert len(found.records) == 2
    (note,) = found.broken
    assert str(table) in note
    assert why in note
    with pytest.raises(RollinError, match="No finished run"):
        collect([tmp_path / "b"])


def test_a_planned_run_without_its_configuration_is_named(tmp_path) -> None:
    rooms(tmp_path, {0.0: [3, 4]})
    one = cell("hard", 0.001, 0.0)
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


def test_seeds_whose_episodes_were_cut_off_are_named(tmp_path) -> None:
    robots(tmp_path, {"baseline": [2000], "rollin": [500]}, seeds=3)
    for path in sorted(tmp_path.rglob("episodes.csv")):
        if "baseline" in str(path) and "seed=1" not in str(path):
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(lines[:48]))  # to step 4700, within what is averaged at 5000
    (results,) = results_of(collect([tmp_path]))
    (note,) = [note for note in results.warnings() if "No figure" in note]
    assert note == (
        "No figure from seed 0, 2 of hopper, baseline: κ at 5k steps, x-velocity (m/s) at 5k "
        "steps, return at 5k steps."
    )


def test_a_second_run_of_a_seed_is_named_and_off_the_page(tmp_path) -> None:
    one = find_table("velocity-progress").cells[0]
    for steps in (600_000, 700_000):
        config = rollin_config(**{"method": "baseline", "beta": 0.0, "steps": steps})
        deep_run(tmp_path / str(steps), RunSpec(one.task, config), [100_000])
    found = collect([tmp_path])
    (results,) = results_of(found, "velocity-progress")
    assert [run.steps for runs in results.runs.values() for run in runs] == [700_000]
    assert found.skipped == [f"{tmp_path / '600000'}: seed 0 counts once, as {tmp_path / '700000'}"]
    assert len(found.records) == 1


def test_runs_in_a_csv_and_in_directories_are_the_same_ones(tmp_path) -> None:
    rooms(tmp_path / "a", {0.75: [4, 5]})
    make_report(collect([tmp_path / "a"]), tmp_path / "b" / "r.html")
    found = collect([tmp_path / "a", tmp_path / "b"])
    assert len(found.records) == 2
    assert len(found.skipped) == 2
    assert "the same run as" in found.skipped[0]


def change_task(run: Path) -> None:
    write_json(
        run / "config.json",
        json.loads((run / "config.json").read_text()) | {"fingerprint": "other"},
    )


def test_another_task_of_the_same_name_is_no_further_seed(tmp_path) -> None:
    rooms(tmp_path, {0.75: [4, 5, 16]})
    change_task(next(p.parent for p in tmp_path.rglob("config.json") if "seed=2" in str(p)))
    found = collect([tmp_path])
    (results,) = results_of(found)
    assert results.results[0].values == (4 / 16, 5 / 16)
    (note,) = found.notes
    assert note.startswith("1 of the runs of four-rooms, hard, α = 0.001, ROLLIN β = 0.75 had")
    # nor is it among runs that are in no table, or on their curves
    for seed in (0, 1, 2):
        spec = RunSpec("hopper", rollin_config(beta=0.33, steps=20_000, seed=seed))
        deep_run(tmp_path / "deep" / str(seed), spec, [1000])
    change_task(tmp_path / "deep" / "1")
    make_report(found := collect([tmp_path / "deep"]), tmp_path / "r.html")
    groups = {group.options: [r.seed for r in group.records] for group in conditions(found.records)}
    assert groups == {"task 1 of that name": [0, 2], "task 2 of that name": [1]}
    page = (tmp_path / "r.html").read_text()
    assert "Learning curves: κ, hopper, task 2 of that name" in page


# ------------------------------------------------------------------ what a report writes


def test_a_runs_csv_that_was_read_is_not_written(tmp_path) -> None:
    rooms(tmp_path / "a", {0.75: [4, 5]})
    rooms(tmp_path / "more", {0.0: [3, 3]})
    make_report(collect([tmp_path / "a"]), tmp_path / "b" / "r.html")
    table = tmp_path / "b" / "runs.csv"
    before = table.read_bytes()
    assert main(["report", str(tmp_path / "b"), str(tmp_path / "more")]) == 0
    assert table.read_bytes() == before


def test_a_runs_csv_of_other_runs_is_left_alone_and_one_of_these_grows(tmp_path, capsys) -> None:
    table = rooms(tmp_path, {0.75: [4]}) / "runs.csv"
    assert main(["report", str(tmp_path)]) == 0
    rooms(tmp_path, {0.0: [3]})
    assert main(["report", str(tmp_path)]) == 0
    assert len(read_runs_csv(table)) == 2
    # runs of the same options with other figures are other runs
    found = table.read_text().replace(",36,", ",35,")
    table.write_text(found)
    capsys.readouterr()
    assert main(["report", str(tmp_path)]) == 0
    assert table.read_text() == found
    assert "it holds other runs than these" in " ".join(capsys.readouterr().out.split())


def test_a_table_without_runs_is_refused(tmp_path, capsys) -> None:
    rooms(tmp_path, {0.75: [4]})
    assert main(["report", str(tmp_path), "--table", "velocity-summary"]) == 2
    assert "velocity-summary has no runs here" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
