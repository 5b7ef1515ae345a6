"""Reports: runs matched to the paper's cells, tables, findings, and a self-contained page."""

import csv
import html
import io
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from rollin.analysis.collect import Collection, collect, group, scale_of
from rollin.analysis.findings import agreement, improvements, reached_final
from rollin.analysis.results import StudyResults, panels, reading_tables, results_of
from rollin.analysis.statistics import improvement_interval
from rollin.cli import main
from rollin.errors import RollinError
from rollin.paper import four_rooms
from rollin.paper.four_rooms import PROGRESS, RETURN, STEPS, condition
from rollin.paper.tables import find_table, tables
from rollin.report.charts import line_id, line_names, panel_title
from rollin.report.exports import escape, table_csv, table_latex, terminal_tables
from rollin.report.labels import (
    label_text,
    percent,
    place_text,
    signed,
    steps_text,
    table_title,
    warnings,
)
from rollin.report.maps import goal_path
from rollin.report.page import labelled, make_report
from rollin.report.sections import common_axis, strip
from rollin.runs.engines import run
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.files import write_json
from rollin.runs.metrics import read_metrics
from rollin.runs.records import MetricAt, read_records, write_records
from rollin.runs.spec import RunSpec, configured
from rollin.sweeps.condition import Condition
from rollin.sweeps.study import Study
from tests.made_runs import (
    COMMAND,
    STUDIES,
    deep_run,
    report,
    robots,
    rooms,
    sac_run,
    tabular_run,
    write_sweep,
)
from tests.undrawn import undrawn


def test_published_tables_are_complete_and_agree_with_the_main_one() -> None:
    conditions = four_rooms.conditions()
    assert len(conditions) == 28
    assert len({c.name for c in conditions}) == 28
    main_table = {  # Table 1 of the paper: baseline and β = 0.75
        ("hard", 0.01): (0.500, 0.562, 0.000, 0.000),
        ("hard", 0.001): (0.856, 1.000, 0.424, 1.067),
        ("easy", 0.01): (0.944, 1.000, 4.093, 7.374),
        ("easy", 0.001): (1.000, 1.000, 10.536, 10.620),
    }
    for row, (base, rolled, base_return, rolled_return) in main_table.items():
        assert PROGRESS[row][0.0].mean == base
        assert PROGRESS[row][0.75].mean == rolled
        assert RETURN[row][0.0].mean == base_return
        assert RETURN[row][0.75].mean == rolled_return


# ------------------------------------------------------------------ runs that were made by hand


def text_of(page: Path) -> str:
    """A page with its letters as they are shown."""
    return html.unescape(page.read_text())


def found_in(*directories: Path) -> Collection:
    return collect(directories, STUDIES)


def all_results(collection: Collection, study: str | None = None) -> list[StudyResults]:
    known = [*STUDIES, *collection.studies]
    named = [name for sweep in collection.sweeps for name in sweep.studies]
    return results_of(group(collection.records, known), known, named, study)


def only(directory: Path, study: str | None = None) -> StudyResults:
    (found,) = all_results(found_in(directory), study)
    return found


def condition_of(results: StudyResults, **labels: str) -> Condition:
    (found,) = [c for c in results.study.conditions if labels.items() <= c.labels.items()]
    return found


def rollin_config(**options) -> RollinConfig:
    return configured(RollinConfig(), options)


# ------------------------------------------------------------------ records


def test_records_round_trip(tmp_path) -> None:
    found = found_in(rooms(tmp_path / "runs", {0.0: [3, 4], 0.75: [16, 5]}))
    records = labelled(all_results(found))
    (tmp_path / "csv").mkdir()
    for name, data in write_records(records).items():
        (tmp_path / "csv" / name).write_bytes(data)
    back = read_records(tmp_path / "csv")
    whole = (
        *("task", "engine", "seed", "steps", "step", "finished", "costs", "k", "K", "switches"),
        *("labels", "family", "scale", "spec_hash", "key", "fingerprint"),
    )
    for name in whole:
        assert [getattr(r, name) for r in back] == [getattr(r, name) for r in records], name
    for one, two in zip(records, back, strict=True):
        assert one.curve.quantities.keys() == two.curve.quantities.keys()
        assert np.array_equal(one.curve.steps, two.curve.steps)
        for name, values in one.curve.quantities.items():
            np.testing.assert_allclose(values, two.curve.quantities[name], rtol=1e-5)
            last = MetricAt(name)
            assert two.value(last) == pytest.approx(one.value(last), rel=1e-9)
    # a directory with the CSVs alone will do, and gives the same table
    again = only(tmp_path / "csv")
    assert table_csv(again) == table_csv(only(tmp_path / "runs"))
    (tmp_path / "csv" / "runs.csv").write_text("reward,alpha\neasy,0.1\n")
    with pytest.raises(RollinError, match=r"runs\.csv has no column family, task, condition"):
        found_in(tmp_path / "csv")


def test_runs_of_a_csv_that_are_not_finished_are_named_and_passed_over(tmp_path) -> None:
    one, two = labelled(all_results(found_in(rooms(tmp_path / "runs", {0.75: [16, 5]}))))
    (tmp_path / "csv").mkdir()
    for name, data in write_records([one, replace(two, finished=False)]).items():
        (tmp_path / "csv" / name).write_bytes(data)
    found = found_in(tmp_path / "csv")
    assert [record.seed for record in found.records] == [0]
    (note,) = found.skipped
    assert note.endswith("runs.csv: reward=hard,alpha=0.001,method=rollin,beta=0.75, "
                         "seed 1 is not finished")  # fmt: skip
    assert len(collect([tmp_path / "csv"], STUDIES, unfinished=True).records) == 2


def test_quantities_of_a_shortened_run_are_read_at_its_own_steps(tmp_path) -> None:
    robots(tmp_path, {"baseline": [2000, 6000]}, seeds=1)
    (record,) = found_in(tmp_path).records

    def value(quantity: str, step: int) -> float | None:
        return record.value(MetricAt(quantity, step))

    assert record.steps == record.step == 10_000
    assert value("kappa", 5000) == pytest.approx(0.1)
    assert value("kappa", 10_000) == pytest.approx(0.2)
    assert record.value(MetricAt("kappa")) == pytest.approx(0.2)
    # the last 500 steps: episodes that end at 4600, …, 5000
    assert value("return", 5000) == pytest.approx(4800)
    assert value("x_velocity", 5000) == pytest.approx(4.8)
    assert value("return", 20_000) is None
    assert value("nonsense", 10_000) is None
    kappa = record.trace("kappa")
    assert kappa is not None
    assert list(kappa.values[-1:]) == [0.2]
    assert record.trace("nonsense") is None


def test_readings_of_a_run_of_full_length_are_rows_of_its_metrics(tmp_path) -> None:
    one = find_table("velocity-summary").conditions[1]
    deep_run(tmp_path / "a", one.spec(0), [100_000, 700_000])
    rows = read_metrics(tmp_path / "a" / "metrics.csv")
    (record,) = found_in(tmp_path).records
    for step in (500_000, 1_000_000):
        row = rows["step"].index(step)
        for name in ("kappa", "kappa_mean", "return", "x_velocity"):
            assert record.value(MetricAt(name, step)) == pytest.approx(rows[name][row])
    assert record.value(MetricAt("kappa", 500_000)) == pytest.approx(0.1)
    assert record.value(MetricAt("kappa", 600_000)) == pytest.approx(0.1)


def test_the_same_run_found_twice_counts_once(tmp_path) -> None:
    runs = rooms(tmp_path / "runs", {0.0: [3, 4], 0.75: [16, 5]})
    found = found_in(runs, *sorted(p.parent for p in runs.rglob("result.json"))[:1])
    assert len(found.records) == 4
    shutil.copytree(runs, tmp_path / "copy")
    found = found_in(runs, tmp_path / "copy")
    assert len(found.records) == 4
    assert sum("the same run as" in note for note in found.skipped) == 4


OTHER = '{"engine": "other", "task": "t", "config": {}, "results": {}}'


def test_broken_and_unfinished_runs_are_named_and_passed_over(tmp_path) -> None:
    rooms(tmp_path / "a", {0.0: [3, 4, 5, 6, 7]})
    robots(tmp_path / "a" / "deep", {"baseline": [2000], "rollin": [1000]})
    tabular = sorted((tmp_path / "a" / "1").rglob("result.json"))
    deep = sorted((tmp_path / "a" / "deep").rglob("result.json"))
    tabular[0].write_text('{"kappa": ')
    tabular[1].unlink()
    tabular[2].write_text("{}")
    (tabular[3].parent / "config.json").write_text(OTHER)
    (deep[0].parent / "metrics.csv").write_text("step,return\n1,what\n")
    deep[1].write_text(deep[1].read_text().replace('"advances"', '"retreats"'))
    (deep[2].parent / "metrics.csv").unlink()
    found = found_in(tmp_path / "a")
    assert len(found.records) == 2
    notes = "\n".join(found.skipped)
    for path, why in (
        (tabular[0], "not valid JSON"),
        (tabular[1], "not finished"),
        (tabular[2], "result.json does not match its checksum"),
        (tabular[3], "There is no engine 'other'"),
        (deep[0], "could not convert string to float: 'what'. Restore the original."),
        (deep[1], "result.json does not match its checksum"),
        (deep[2], "metrics.csv is missing"),
    ):
        assert re.search(re.escape(str(path.parent)) + ".*" + re.escape(why), notes), why
    (tmp_path / "empty").mkdir()
    with pytest.raises(RollinError, match="No finished run"):
        found_in(tmp_path / "empty")


@undrawn()
def test_runs_that_a_sweep_lacks_are_counted(tmp_path) -> None:
    rooms(tmp_path, {0.0: [3]})
    planned = {
        f"1/{condition('hard', 0.001, beta).name}/seed={seed}":
            condition("hard", 0.001, beta).spec(seed)
        for beta in (0.0, 0.75)
        for seed in (0, 1)
    }  # fmt: skip
    write_sweep(tmp_path, ["four-rooms"], planned)
    found = found_in(tmp_path)
    (sweep,) = found.sweeps
    assert (sweep.studies, sweep.planned, len(sweep.missing)) == (("four-rooms",), 4, 3)
    report(found, tmp_path / "r.html")
    page = text_of(tmp_path / "r.html")
    assert f"3 of the 4 runs planned in {tmp_path} are missing or not finished." in page
    # several tables of one directory, and a description that cannot be read
    write_sweep(tmp_path, ["four-rooms", "four-rooms-summary"], {}, commands=["a", "b"])
    found = found_in(tmp_path)
    assert found.sweeps[0].studies == ("four-rooms", "four-rooms-summary")
    assert found.commands == ["a", "b", COMMAND]
    (tmp_path / "sweep.json").write_text("{")
    (note,) = found_in(tmp_path).broken
    assert note.startswith(f"{tmp_path / 'sweep.json'} ")


def study_run(out: Path, study: Study, scale: float = 1.0, seeds: int = 1) -> None:
    """A study's sweep in a directory, all of its runs done."""
    sweep = study.sweep(out, seeds, scale)
    sweep.plan(f"rollin sweep {study.name}")
    for job in sweep.jobs:
        tabular_run(job.out, job.spec, int(10 * job.spec.config.beta), of=job.of)


def test_sweeps_of_one_name_have_places_of_their_own(tmp_path) -> None:
    mine = Study.grid("mine", "four-rooms", {"steps": 500}, beta=[0.1, 0.2], baseline="beta=0.1")
    more = Study.grid("mine", "four-rooms", {"steps": 500}, beta=[0.2, 0.3])
    other = Study.grid("mine", "four-rooms", {"steps": 500, "gamma": 0.8}, beta=[0.1, 0.2])
    for name, study in (("a", mine), ("b", more), ("c", other)):
        study_run(tmp_path / name, study)
    found = found_in(tmp_path)
    results = all_results(found)
    names = [(r.study.name, [c.name for c in r.runs]) for r in results]
    assert names == [("mine", ["beta=0.1", "beta=0.2", "beta=0.3"]),
                     ("mine-2", ["beta=0.1", "beta=0.2"])]  # fmt: skip
    assert [r.summary.mean for r in results[0].results] == [1 / 16, 2 / 16, 3 / 16]
    assert results[0].beats_baseline(results[0].results[1])
    report(found, tmp_path / "r.html")
    ids = Page((tmp_path / "r.html").read_text()).ids
    assert len(ids) == len(set(ids))
    assert {"table-mine", "table-mine-2"} < set(ids)
    assert (tmp_path / "table-mine-2.csv").exists()


@undrawn()
def test_a_study_at_two_scales_is_two_sections(tmp_path) -> None:
    mine = Study.grid("mine", "four-rooms", {"steps": 5000}, beta=[0.1, 0.2])
    study_run(tmp_path / "whole", mine)
    study_run(tmp_path / "part", mine, scale=0.1)
    results = all_results(found_in(tmp_path))
    assert [(r.study.name, r.scale, r.missing()) for r in results] == [
        ("mine", 1.0, 0), ("mine", 0.1, 0)
    ]  # fmt: skip
    report(found_in(tmp_path), tmp_path / "r.html")
    page = text_of(tmp_path / "r.html")
    assert 'id="table-mine-scale-0.1"' in page
    assert "mine: Training shortened to 10 % of their full length." in page


def test_a_sweep_of_ones_own_is_no_shortened_run_of_the_paper(tmp_path) -> None:
    """Though its options are those of the paper's conditions."""
    mine = Study.grid("mine", "four-rooms", {"steps": 500}, beta=[0.1, 0.2])
    study_run(tmp_path, mine)
    assert [(r.study.name, r.scale) for r in all_results(found_in(tmp_path))] == [("mine", 1.0)]
    text = table_latex(only(tmp_path))
    assert "ublished" not in text
    assert "paper" not in text
    assert "$\\kappa$ at the end & $\\beta$ = 0.1 & $\\beta$ = 0.2" in text
    assert text.count(r" \\") == 3  # the heading, one line of ours, and who masters the last
    assert "0 of 1 master the last" in text
    console = Console(width=80, file=io.StringIO(), record=True)
    for shown in terminal_tables(only(tmp_path)):
        console.print(shown)
    assert "published" not in console.export_text()


@undrawn()
def test_runs_of_another_task_of_the_same_name_are_shown_apart(tmp_path) -> None:
    rooms(tmp_path, {0.75: [4, 5, 6]})
    path = next(p for p in tmp_path.rglob("config.json") if "seed=2" in str(p))
    write_json(path, json.loads(path.read_text()) | {"fingerprint": "another"})
    table, apart = all_results(found_in(tmp_path))
    assert table.results[0].values == (4 / 16, 5 / 16)
    assert (apart.own, apart.results[0].values) == (True, (6 / 16,))
    report(found_in(tmp_path), tmp_path / "r.html")
    page = text_of(tmp_path / "r.html")
    assert "had another task of the same name" in page
    assert {"table-four-rooms-summary", "runs-four-rooms"} < set(Page(page).ids)
    assert "<b>3</b> finished runs" in page


@undrawn()
def test_a_second_table_of_a_directory_leaves_runs_csv_whole(tmp_path) -> None:
    rooms(tmp_path, {0.0: [3], 0.1: [4], 0.75: [5]})
    for name in ("four-rooms", "four-rooms-summary", "four-rooms"):
        found = found_in(tmp_path)
        report(found, tmp_path / "r.html", only=name)
        assert not any("left as it is" in note for note in found.notes)
        assert len(read_records(tmp_path)) == 3


def test_labels_count_only_if_the_key_agrees(tmp_path) -> None:
    one, other = condition("hard", 0.001, 0.75), condition("hard", 0.001, 0.0)
    tabular_run(tmp_path / "a", one.spec(0), 5, of=one.membership("four-rooms"))
    tabular_run(tmp_path / "b", one.spec(1), 6, of=other.membership("four-rooms"))
    results = only(tmp_path)
    assert [(c.labels["beta"], [r.seed for r in runs]) for c, runs in results.runs.items()] == [
        ("0.75", [0, 1])
    ]  # fmt: skip


# ------------------------------------------------------------------ results


def test_results_stand_beside_what_was_published(tmp_path) -> None:
    results = only(rooms(tmp_path, {0.0: [12, 14], 0.75: [16, 16]}), "four-rooms")
    kappa = results.study.readings[0]
    base = results.at(condition_of(results, reward="hard", alpha="0.001", beta="0"), kappa)
    rolled = results.at(condition_of(results, reward="hard", alpha="0.001", beta="0.75"), kappa)
    assert base is not None
    assert rolled is not None
    assert base.values == (0.75, 0.875)
    assert base.summary.mean == 0.8125
    assert base.difference == pytest.approx(0.8125 - 0.856)
    assert base.iqm == pytest.approx((0.8125, 0.75, 0.875))
    assert results.baseline(rolled) is base
    assert results.beats_baseline(rolled)
    assert not results.beats_baseline(base)
    assert results.published_beats(rolled.condition, kappa)
    assert warnings(results) == [
        "Seeds per condition: 2; the paper used 10.",
        "26 of the 28 conditions have no runs here.",
    ]
    (found,) = improvements(results, kappa)
    assert found.labels == {"method": "rollin", "beta": "0.75"}
    assert (found.pairs, found.ahead, found.behind) == (1, 1, 0)
    assert found.published_ahead == 1
    assert found.chance == 1.0
    assert found.interval is None  # two seeds know nothing of it
    (reached,) = reached_final(results, kappa)
    assert (reached.reached, reached.n, reached.base_reached, reached.base_n) == (2, 2, 0, 2)
    assert reached.p == pytest.approx(1 / 3)
    assert agreement(results, kappa) == (2, 2)
    assert reached_final(results, results.study.readings[1]) == []


@undrawn()
def test_a_missing_baseline_leaves_nothing_to_compare(tmp_path) -> None:
    results = only(rooms(tmp_path, {0.75: [16], 0.9: [16]}), "four-rooms")
    kappa = results.study.readings[0]
    assert not any(results.beats_baseline(r) for r in results.results)
    assert improvements(results, kappa) == []
    assert reached_final(results, kappa) == []
    report(found_in(tmp_path), tmp_path / "r.html")
    page = text_of(tmp_path / "r.html")
    assert "Is ROLLIN better" in page  # the agreement with the paper
    assert "P(better)" not in page


def test_several_betas_are_compared_together_and_one_by_one(tmp_path) -> None:
    results = only(rooms(tmp_path, {0.0: [5, 6], 0.1: [6, 7], 0.75: [4, 4]}))
    found = improvements(results, results.study.readings[0])
    assert [(i.labels and i.labels["beta"], i.ahead, i.behind) for i in found] == [
        (None, 1, 1), ("0.1", 1, 0), ("0.75", 0, 1)
    ]  # fmt: skip
    assert [i.chance for i in found] == [0.4375, 0.875, 0.0]


def test_all_betas_share_their_baseline(tmp_path) -> None:
    ks = {0.0: [3, 5, 7, 9, 11], 0.1: [4, 6, 8, 10, 2], 0.75: [5, 4, 8, 9, 12]}
    results = only(rooms(tmp_path, ks))
    found = improvements(results, results.study.readings[0])[0]
    base, *rolled = ks.values()
    assert found.interval == improvement_interval(rolled, [base] * 2, shared=[0, 0])
    assert found.interval != improvement_interval(rolled, [base] * 2)


@undrawn()
def test_scales_are_told_apart_and_readings_move_with_them(tmp_path) -> None:
    rooms(tmp_path, {0.0: [3], 0.75: [4]}, scale=0.1)
    rooms(tmp_path, {0.0: [13], 0.75: [16]})
    collection = found_in(tmp_path)
    found = all_results(collection, "four-rooms-summary")
    assert [f.scale for f in found] == [1.0, 0.1]
    assert [r.step for r in found[1].results] == [5000] * 4
    assert [r.values for r in found[1].results][:2] == [(3 / 16,), (4 / 16,)]
    assert agreement(found[1], found[1].study.readings[0]) is None
    report(collection, tmp_path / "r.html", only="four-rooms-summary")
    page = text_of(tmp_path / "r.html")
    assert "Training shortened to 10 % of the paper's: published values are of the full" in page
    assert 'id="table-four-rooms-summary"' in page
    assert 'id="table-four-rooms-summary-scale-0.1"' in page
    assert (tmp_path / "table-four-rooms-summary-scale-0.1.csv").exists()


def test_shortened_robots_fill_the_table_at_both_readings(tmp_path) -> None:
    robots(tmp_path, {"scratch": [], "baseline": [2000], "rollin": [2000, 4000, 8000]})
    results = only(tmp_path)
    assert results.study.name == "velocity-summary"
    assert results.scale == 0.01
    values = {
        (r.condition.labels["method"], r.reading.quantity, r.step): r.summary.mean
        for r in results.results
    }
    assert len(values) == 16  # no κ from scratch
    assert values["baseline", "kappa", 5000] == pytest.approx(0.1)
    assert values["rollin", "kappa", 5000] == pytest.approx(0.2)
    assert values["rollin", "kappa", 10_000] == pytest.approx(0.3)
    assert values["scratch", "return", 10_000] == pytest.approx(1.5 * 9800)
    drawn = panels(results)
    assert list(drawn) == ["kappa", "x_velocity", "return"]
    (kappa,) = drawn["kappa"]
    assert line_names(kappa) == ["baseline", "ROLLIN β = 0.1"]
    assert panel_title(kappa) == "hopper"


def test_a_part_of_the_papers_run_is_read_as_far_as_it_goes(tmp_path) -> None:
    one = find_table("velocity-progress").conditions[0]
    config = rollin_config(method="baseline", beta=0.0, steps=600_000)
    deep_run(tmp_path / "a", RunSpec(one.task, config), [100_000])
    (record,) = found_in(tmp_path).records
    assert scale_of(record, one) == 1  # a shorter run of the paper's options is a part of its run
    results = only(tmp_path, "velocity-progress")
    assert results.scale == 1
    assert [r.step for r in results.results] == [500_000]
    assert "Some runs end before the reading at 1,000,000 steps." in warnings(results)


def test_tables_are_those_that_the_runs_fill_best(tmp_path) -> None:
    def shown(*directories: Path) -> list[str]:
        return [found.study.name for found in all_results(found_in(*directories))]

    rooms(tmp_path / "two", {0.0: [3], 0.75: [4]})
    assert shown(tmp_path / "two") == ["four-rooms-summary"]
    rooms(tmp_path / "three", {0.0: [3], 0.1: [3], 0.75: [4]})
    assert shown(tmp_path / "three") == ["four-rooms"]
    robots(tmp_path / "hopper", {"baseline": [], "rollin": []}, seeds=1)
    assert shown(tmp_path / "two", tmp_path / "hopper") == [
        "four-rooms-summary", "velocity-summary"
    ]  # fmt: skip
    write_sweep(tmp_path / "two", ["four-rooms-hard-curves"], {})
    assert shown(tmp_path / "two") == ["four-rooms-hard-curves"]
    several = ["four-rooms-progress", "four-rooms-hard-curves", "four-rooms-summary"]
    write_sweep(tmp_path / "two", several, {})
    assert shown(tmp_path / "two") == ["four-rooms-summary"]  # which shows what the others do
    write_sweep(tmp_path / "two", ["no-such-table"], {})
    assert shown(tmp_path / "two") == ["four-rooms-summary"]
    with pytest.raises(RollinError, match="four-rooms-easy-curves has no runs here"):
        all_results(found_in(tmp_path / "two"), "four-rooms-easy-curves")


def test_conditions_of_the_antmaze_are_panels_with_a_line_for_each_beta(tmp_path) -> None:
    for one in find_table("antmaze-go-explore").conditions:
        labels = one.labels
        if labels["noise"] in ("0.1", "0.25") and labels["delta"] == "1/24":
            deep_run(tmp_path / one.name, one.spec(0, 0.001), [1000])
    found = panels(only(tmp_path))["kappa"]
    assert [panel_title(panel) for panel in found] == [
        "noise 0.1, uniform, Δ = 1/24", "noise 0.1, geometric, Δ = 1/24",
        "noise 0.25, uniform, Δ = 1/24", "noise 0.25, geometric, Δ = 1/24",
    ]  # fmt: skip
    assert {len(panel.lines) for panel in found} == {6}


# ------------------------------------------------------------------ tables


@pytest.fixture
def results(tmp_path) -> StudyResults:
    return only(rooms(tmp_path, {0.0: [12, 14], 0.75: [16, 16]}), "four-rooms")


def test_tables_are_laid_out_as_in_the_paper(results) -> None:
    kappa, final = reading_tables(results)
    assert [table_title(t) for t in (kappa, final)] == ["κ at 50k steps", "return at 50k steps"]
    assert [label_text(column) for column in kappa.columns] == ["baseline", "ROLLIN β = 0.75"]
    ((labels, (base, rolled)),) = kappa.rows
    assert label_text(labels) == "hard, α = 0.001"
    assert base is not None
    assert rolled is not None
    told = ("0.856 ± 0.006", "0.812 ± 0.062", "−0.043", "0 of 2 master the last")
    assert place_text(base) == told
    marks = (base.beats, base.published_beats, base.best, base.published_best)
    assert not any(marks)
    assert rolled.beats
    assert rolled.published_beats
    assert rolled.best
    assert rolled.published_best


def test_latex_is_escaped_and_coloured(results) -> None:
    text = table_latex(results)
    assert r"hard, $\alpha$ = 0.001 & 0.856 $\pm$ 0.006 & {\color{purple}\textbf{1.000" in text
    assert r" & 0.812 $\pm$ 0.062 & {\color{purple}\textbf{1.000 $\pm$ 0.000}} \\" in text
    assert r"$\kappa$ at 50k steps & baseline & ROLLIN $\beta$ = 0.75 \\" in text
    assert text.count(r"\begin{tabular}{lcc}") == text.count(r"\end{tabular}") == 2
    assert r"\label{table:four-rooms}" in text
    assert text.isascii()
    assert escape("a_b & 50% {x} ~ ^ # $ \\ <") == (
        r"a\_b \& 50\% \{x\} \textasciitilde{} \textasciicircum{} \# \$ \textbackslash{} "
        r"\textless{}"
    )
    for table in tables().values():
        assert escape(table.title).isascii()


def test_csv_has_a_row_for_each_cell_and_reading(results) -> None:
    rows = list(csv.DictReader(table_csv(results).splitlines()))
    assert len(rows) == 4
    first = rows[0]
    assert {name: first[name] for name in ("reward", "alpha", "method", "beta")} == {
        "reward": "hard", "alpha": "0.001", "method": "baseline", "beta": "0"
    }  # fmt: skip
    assert (first["quantity"], first["step"], first["seeds"]) == ("kappa", "50000", "2")
    assert (first["published"], first["published_error"]) == ("0.856", "0.006")
    assert (first["mean"], first["error"], first["iqm"]) == ("0.8125", "0.0625", "0.8125")
    assert (first["difference"], first["values"]) == ("-0.0435", "0.75 0.875")


def test_csv_leaves_the_spread_of_one_seed_empty(tmp_path) -> None:
    results = only(rooms(tmp_path, {0.75: [12]}))
    first = next(csv.DictReader(table_csv(results).splitlines()))
    assert (first["mean"], first["iqm"]) == ("0.75", "0.75")
    assert [first[name] for name in ("error", "iqm_low", "iqm_high")] == ["", "", ""]


@pytest.mark.parametrize(
    ("table", "columns"), [("four-rooms", 7), ("antmaze-go-explore", 6), ("velocity-return", 5)]
)
def test_a_narrow_terminal_shows_every_number(tmp_path, table: str, columns: int) -> None:
    for i, one in enumerate(find_table(table).conditions):
        if one.task == "four-rooms":
            tabular_run(tmp_path / one.name, one.spec(0), i % 17, 10 + i / 7)
        else:
            deep_run(tmp_path / one.name, one.spec(0, 0.001), [100] * (i % 2), gain=1.0 + i)
    results = only(tmp_path, table)
    assert len(reading_tables(results)[0].columns) == columns
    for width in (80, 64):
        console = Console(width=width, file=io.StringIO(), record=True)
        for shown in terminal_tables(results):
            console.print(shown)
        text = console.export_text()
        assert "…" not in text
        for r in results.results:
            number = re.escape(f"{r.summary.mean:.{results.digits(r.reading)}f}")
            assert re.search(rf"(^| ){number}( |$)", text, re.M)


def test_the_terminal_shows_published_and_ours(results) -> None:
    console = Console(width=100, file=io.StringIO(), record=True)
    for table in terminal_tables(results):
        console.print(table)
    text = console.export_text()
    assert "κ at 50k steps: published over measured" in " ".join(text.split())
    assert re.search(r"hard, α = 0.001 +0.856 +1.000 *\n +0.812 +1.000", text)


def test_seeds_are_dots_on_a_common_axis(results) -> None:
    some = [r for r in results.results if r.reading.quantity == "kappa"]
    axis = common_axis(some)
    assert axis == (0.0, 1.0)
    text = strip(some[0], axis)
    assert text.count("<circle") == 2
    assert "seeds: 0.75, 0.875; published 0.856 ± 0.006" in text
    assert common_axis([r for r in results.results if r.reading.quantity != "kappa"])[1] > 1


def test_words() -> None:
    assert [steps_text(n) for n in (3_000_000, 500_000, 2400, 10)] == ["3M", "500k", "2,400", "10"]
    assert (signed(0.04, 2), signed(-0.04, 1), signed(-0.26, 1)) == ("+0.04", "0.0", "−0.3")
    assert (percent(0.01), percent(1 / 3)) == ("1 %", "33.3 %")


# ------------------------------------------------------------------ the page


class Page(HTMLParser):
    """Collects what a page loads from elsewhere, its ids and its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.anchors: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs) -> None:
        found = dict(attrs)
        self.ids += [name] if (name := found.get("id")) else []
        target = found.get("href") or ""
        if tag == "a" and target.startswith("#"):
            self.anchors.append(target[1:])
        elif tag in ("script", "link", "img", "iframe") and (found.get("src") or target):
            self.loads.append(found.get("src") or target)


def test_the_page_is_self_contained_and_its_links_lead_somewhere(tmp_path) -> None:
    for beta in (0.0, 0.75):  # real ones, which have policies to draw
        for seed in (0, 1):
            one = condition("easy", 0.001, beta)
            run(one.spec(seed, 600 / STEPS), tmp_path / "a" / one.name / f"seed={seed}", "x <y>")
    rooms(tmp_path / "b", {0.0: [3], 0.75: [4]})
    robots(tmp_path / "c", {"baseline": [2000], "rollin": [1000]})
    sac_run(tmp_path / "d", RunSpec("Hopper-v5", SACRunConfig(seed=3)), 1234.5)
    collection = found_in(*(tmp_path / name for name in "abcd"))
    out = tmp_path / "out" / "report.html"
    make_report(collection, out, STUDIES, "A <title>", images=True)
    text = out.read_text()
    page = Page(text)
    assert page.loads == []
    assert not re.search(r"url\(\s*['\"]?http", text)
    assert set(page.anchors) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert {"table-velocity-summary-scale-0.01", "first-batch", "mu", "policy-rollin"} < set(
        page.ids
    )
    assert "A &lt;title&gt;" in text
    assert "x &lt;y&gt;" in text
    assert "<y>" not in text
    assert "1234.500" in text
    assert "different commands" not in text  # as single runs always are
    assert re.search(r"<b>[\d.]+</b> minutes of run time", text)
    names = {path.name for path in (out.parent / "figures").glob("*.png")}
    assert {"rewards.png", "velocity-summary-scale-0.01-kappa.png"} < names
    assert len(read_records(out.parent)) == 4 + 2 + 4 + 1


def test_damaged_policies_cost_the_maps_only(tmp_path) -> None:
    rooms(tmp_path, {0.75: [4]})
    for path in list(tmp_path.rglob("result.json")):
        (path.parent / "policy.safetensors").write_bytes(b"damaged")
    report(found_in(tmp_path), tmp_path / "r.html")
    ids = Page((tmp_path / "r.html").read_text()).ids
    assert "rewards" in ids
    assert "mu" not in ids


@undrawn()
def test_runs_of_other_versions_and_hosts_are_told(tmp_path) -> None:
    rooms(tmp_path, {0.75: [4, 5]})
    one, two = sorted(tmp_path.rglob("config.json"))
    config = json.loads(one.read_text())
    config["versions"]["numpy"] = "0.<1>"
    write_json(one, config)
    write_json(two.parent / "status.json", {"state": "finished", "host": "node-<7>"})
    report(found_in(tmp_path), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "These runs were made with different versions: numpy 0.&lt;1&gt; and " in page
    assert "On node-&lt;7&gt;." in page


def test_runs_of_no_study_are_told_apart_by_their_options(tmp_path) -> None:
    for gamma in (0.9, 0.8):
        for seed in (0, 1):
            config = TabularConfig(gamma=gamma, seed=seed, steps=100)
            tabular_run(tmp_path / f"{gamma}-{seed}", RunSpec("four-rooms", config), 8)
    deep_run(tmp_path / "deep", RunSpec("hopper", rollin_config(beta=0.33, steps=20_000)), [1000])
    collection = found_in(tmp_path)
    rooms_found, hopper = all_results(collection)
    assert [(r.study.heading, r.of_the_paper) for r in (rooms_found, hopper)] == [
        ("four-rooms", False), ("hopper", False)
    ]  # fmt: skip
    assert [label_text(c.labels) for c in rooms_found.runs] == ["gamma = 0.8", "gamma = 0.9"]
    first = rooms_found.results[0]
    assert (first.reading, first.summary) == (MetricAt("kappa"), (0.5, 0.0, 2))
    assert [c.labels for c in hopper.runs] == [{}]
    report(collection, tmp_path / "r.html")
    page = text_of(tmp_path / "r.html")
    assert f'data-line="{line_id("gamma = 0.9")}"' in page
    assert "0.500 ± 0.000" in page


def test_names_from_files_are_text_and_nothing_else(tmp_path) -> None:
    name = 'mine:<b>"x" $a_$b'
    spec = RunSpec(name, rollin_config(beta=0.3, steps=20_000))
    deep_run(tmp_path / "deep", spec, [1000], command="<script>")
    report(found_in(tmp_path), tmp_path / "r.html", images=True)
    text = (tmp_path / "r.html").read_text()
    assert text.count("<script>") == 1
    assert "<b>" not in text.replace("<b>ours</b>", "").split("</ul>")[1]
    assert text.count("mine:&lt;b&gt;") >= 3  # title, table, panels


@undrawn()
def test_a_curves_table_has_no_grid(tmp_path) -> None:
    rooms(tmp_path, {0.0: [3], 0.75: [4]})
    report(found_in(tmp_path), tmp_path / "r.html", only="four-rooms-hard-curves")
    page = text_of(tmp_path / "r.html")
    assert "Learning curves" in page
    assert "Every condition" not in page
    assert not list(tmp_path.glob("table-*"))


def test_the_goals_of_the_maze_are_drawn() -> None:
    (ax,) = goal_path().axes
    assert np.shape(ax.collections[-1].get_offsets()) == (24, 2)  # Δ = 1/24


@undrawn()
def test_the_command_names_what_it_passed_over(tmp_path, capsys) -> None:
    rooms(tmp_path, {0.0: [3, 4]})
    next(iter(sorted(tmp_path.rglob("result.json")))).unlink()
    assert main(["report", str(tmp_path), "--study", "four-rooms", "--title", "Mine"]) == 0
    assert "not finished" in capsys.readouterr().out
    assert "<h1>Mine</h1>" in (tmp_path / "report.html").read_text()
    assert main(["report", str(tmp_path), "--study", "four-room"]) == 2
    assert "Unknown study 'four-room'" in capsys.readouterr().err
