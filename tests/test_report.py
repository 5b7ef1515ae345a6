"""Reports: tables of the paper, a self-contained page."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from rollin.errors import RollinError
from rollin.paper import four_rooms
from rollin.paper.four_rooms import PROGRESS, RETURN, STEPS, cell
from rollin.report.collect import collect, read_runs_csv, write_runs_csv
from rollin.report.html import verdict, write_report
from rollin.report.tables import group_runs, paper_table
from rollin.runs.driver import run


def test_published_tables_are_complete_and_agree_with_the_main_one() -> None:
    cells = four_rooms.cells()
    assert len(cells) == 28
    assert len({c.name for c in cells}) == 28
    main = {  # Table 1 of the paper: baseline and β = 0.75
        ("hard", 0.01): (0.500, 0.562, 0.000, 0.000),
        ("hard", 0.001): (0.856, 1.000, 0.424, 1.067),
        ("easy", 0.01): (0.944, 1.000, 4.093, 7.374),
        ("easy", 0.001): (1.000, 1.000, 10.536, 10.620),
    }
    for row, (base, rolled, base_return, rolled_return) in main.items():
        assert PROGRESS[row][0.0].mean == base
        assert PROGRESS[row][0.75].mean == rolled
        assert RETURN[row][0.0].mean == base_return
        assert RETURN[row][0.75].mean == rolled_return


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Four short runs: two cells, two seeds."""
    out = tmp_path_factory.mktemp("runs")
    for beta in (0.0, 0.75):
        for seed in (0, 1):
            one = cell("easy", 0.001, beta)
            run(one.spec(seed, 600 / STEPS), out / one.name / f"seed={seed}", "rollin test")
    return out


def test_runs_csv_round_trips(runs, tmp_path) -> None:
    records = collect([runs]).records
    write_runs_csv(tmp_path / "runs.csv", records)
    back = read_runs_csv(tmp_path / "runs.csv")
    assert [r.spec for r in back] == [r.spec for r in records]
    for one, two in zip(records, back, strict=True):
        assert one.switch_steps == two.switch_steps
        assert one.k == two.k
        np.testing.assert_allclose(one.curve_returns, two.curve_returns, rtol=1e-3)
    assert len(collect([tmp_path]).records) == 4  # a directory with the CSV alone will do
    (tmp_path / "runs.csv").write_text("reward,alpha\neasy,0.1\n")
    with pytest.raises(RollinError, match="line 2 cannot be read"):
        read_runs_csv(tmp_path / "runs.csv")


def test_the_same_run_found_twice_counts_once(runs) -> None:
    found = collect([runs, *sorted(p.parent for p in runs.rglob("result.json"))[:1]])
    assert len(found.records) == 4
    copy = runs.parent / "copy"
    import shutil

    shutil.copytree(runs, copy, dirs_exist_ok=True)
    found = collect([runs, copy])
    assert len(found.records) == 4
    assert sum("the same run as" in note for note in found.skipped) == 4


def test_damaged_policies_cost_the_maps_only(runs, tmp_path) -> None:
    import shutil

    shutil.copytree(runs, tmp_path / "runs")
    for path in (tmp_path / "runs").rglob("policy.safetensors"):
        path.write_bytes(b"damaged")
    page = write_report(collect([tmp_path / "runs"]), tmp_path / "r.html", "t").read_text()
    assert 'id="progress"' in page
    assert 'id="mu"' not in page


def test_the_eta_of_a_resumed_sweep_counts_only_new_work() -> None:
    from pathlib import Path

    from rollin.cli._common import make_console
    from rollin.cli._progress import SweepProgress
    from rollin.runs.backend import Job, Report

    job = Job("a", cell("easy", 0.001, 0.0).spec(0, 1000 / STEPS), Path("a"))
    progress = SweepProgress(2, 0, make_console())
    progress.began -= 10
    status = {"steps": 1000, "k": 0, "K": 16, "success": 0.0, "steps_per_second": 1.0,
              "eta_seconds": 1.0}  # fmt: skip
    progress.take(Report("started", job, {}))
    for step in (900, 950):  # resumed at 900; 50 steps in 10 s leave 1050 for 210 s
        progress.take(Report("progress", job, {**status, "step": step}))
    assert progress.eta() == "3:30"


class Page(HTMLParser):
    """Collects what a page loads from elsewhere, its ids and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.anchors: list[str] = []

    def handle_starttag(self, tag: str, attrs) -> None:
        found = dict(attrs)
        self.ids.add(found.get("id") or "")
        target = found.get("href") or ""
        if tag == "a" and target.startswith("#"):
            self.anchors.append(target[1:])
        elif tag in ("script", "link", "img", "iframe"):
            self.loads.append(found.get("src") or found.get("href") or tag)


def test_the_page_is_self_contained_and_its_links_lead_somewhere(runs, tmp_path) -> None:
    out = write_report(collect([runs]), tmp_path / "report.html", "A <title>", images=True)
    text = out.read_text()
    page = Page()
    page.feed(text)
    assert page.loads == []
    assert not re.search(r"url\(\s*['\"]?http", text)
    assert set(page.anchors) <= page.ids
    assert {"summary", "kappa", "progress", "mu", "policy-rollin"} <= page.ids
    assert "A &lt;title&gt;" in text
    assert "Seeds per cell: 2; the paper used 10." in text
    assert text.count("<svg") == len(list((tmp_path / "figures").glob("*.png"))) >= 7


def test_broken_and_unfinished_runs_are_named_and_skipped(runs, tmp_path) -> None:
    import shutil

    shutil.copytree(runs, tmp_path / "runs")
    broken, unfinished, *_ = sorted(p.parent for p in (tmp_path / "runs").rglob("result.json"))
    (broken / "result.json").write_text('{"kappa": ')
    (unfinished / "result.json").unlink()
    found = collect([tmp_path / "runs"])
    assert len(found.records) == 2
    assert any(str(broken) in note and "not valid JSON" in note for note in found.skipped)
    assert any(str(unfinished) in note and "not finished" in note for note in found.skipped)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RollinError, match="No finished run"):
        collect([tmp_path / "empty"])


def test_tables_compare_with_the_baseline_of_the_same_row(runs) -> None:
    records = collect([runs]).records
    table = paper_table(records)
    assert table is not None
    (row,) = table.rows.values()
    base, rolled = row
    assert base.is_baseline
    assert not table.beats_baseline(base, "progress")
    expected = rolled.ours.progress.mean > base.ours.progress.mean
    assert table.beats_baseline(rolled, "progress") == expected
    assert any("26 of the paper's 28 cells" in note for note in table.warnings())
    assert len(verdict(table)) == 3
    groups = group_runs(records)
    assert [g.label for g in groups] == ["beta 0.0", "beta 0.75"]


def test_runs_with_other_options_are_not_the_papers(tmp_path) -> None:
    from tests.test_runs import spec

    run(spec(steps=20), tmp_path / "a")
    assert paper_table(collect([tmp_path]).records) is None
