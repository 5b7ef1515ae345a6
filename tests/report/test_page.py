"""What a report's page says: every text and mark of its tables, read back from the HTML."""

import csv
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from rollin.analysis.collect import collect
from rollin.analysis.results import StudyResults, reading_tables
from rollin.cli import main
from rollin.paper.tables import find_table, tables
from rollin.report import style
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.records import Costs, Curve, MetricAt, Record, read_records
from rollin.runs.spec import RunSpec
from rollin.sweeps.condition import Published
from tests.made_runs import (
    STUDIES,
    deep_run,
    report,
    robots,
    rooms,
    sac_run,
    tabular_run,
    with_names,
)
from tests.undrawn import undrawn

ROOT = Path(__file__).parents[2]
Mark = tuple[str, str]
"""A text and the classes that it stands in."""


class Tables(HTMLParser):
    """Tables by the label of their region: rows of cells, each the marks within it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, list[list[list[Mark]]]] = {}
        self.text = ""
        self._label = ""
        self._classes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs) -> None:
        known: dict[str, str] = {name: value or "" for name, value in attrs}
        self._label = known.get("aria-label", self._label) if tag == "div" else self._label
        if tag == "tr":
            self.found.setdefault(self._label, []).append([])
        elif tag in ("td", "th"):
            self.found[self._label][-1].append([])
            self._classes = [known.get("class", "")]
        elif tag == "span" and self._classes:
            self._classes.append(known.get("class", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._classes = []
        elif tag == "span" and self._classes:
            self._classes.pop()

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._classes and data.strip():
            classes = " ".join(filter(None, self._classes))
            self.found[self._label][-1][-1].append((data.strip(), classes))


def page_of(out: Path, **options) -> Tables:
    report(collect([out], STUDIES), out / "r.html", **options)
    return Tables((out / "r.html").read_text())


@pytest.fixture(scope="session")  # tests of other modules may come between
def page(tmp_path_factory) -> Tables:
    ks = {0.0: [12, 14, 13, 12, 14], 0.1: [11, 12, 12, 13, 12], 0.5: [15, 15, 16, 13, 16],
          0.75: [16, 16, 16, 16, 16]}  # fmt: skip
    return page_of(rooms(tmp_path_factory.mktemp("page"), ks))


@pytest.mark.xdist_group("page")
def test_a_grid_has_published_ours_and_difference_with_their_marks(page) -> None:
    heading, row = page.found["κ at 50k steps"]
    names = ["baseline", "ROLLIN β = 0.1", "ROLLIN β = 0.5", "ROLLIN β = 0.75"]
    assert heading == [[], *([(name, "")] for name in names)]
    assert row == [
        [("hard, α = 0.001", "")],
        [("0.856 ± 0.006", "pub"), ("0.812 ± 0.028", "ours"), ("−0.043", "diff"),
         ("0 of 5 master the last", "solved")],
        [("0.981 ± 0.003", "pub claims"), ("0.750 ± 0.020", "ours"), ("−0.231", "diff"),
         ("0 of 5 master the last", "solved")],
        [("1.000 ± 0.000", "beats pub claims best"), ("0.938 ± 0.034", "beats ours"),
         ("−0.062", "beats diff"), ("0 of 5 master the last", "beats solved")],
        [("1.000 ± 0.000", "beats pub claims best"), ("1.000 ± 0.000", "beats ours best"),
         ("0.000", "beats diff"), ("0 of 5 master the last", "beats solved")],
    ]  # fmt: skip


@pytest.mark.xdist_group("page")
def test_the_findings_have_chance_interval_and_counts(page) -> None:
    def texts(label: str) -> list[list[Mark]]:
        return [[mark for cell in row for mark in cell] for row in page.found[label][1:]]

    rows = [row for row in texts("Probability of improvement") if row[0][0] == "κ at 50k steps"]
    everything, first, middle, last = ([text for text, _ in row[1:]] for row in rows)
    assert everything[:3] == ["all together", "3", "0.71"]  # (5.5 + 22.5 + 25)/75
    assert everything[4:] == ["2", "1", "3"]
    assert first[:3] == ["ROLLIN β = 0.1", "1", "0.22"]
    low, high = map(float, first[3].split(" – "))
    assert 0 < low < 0.22 < high < 0.6
    assert first[4:] == ["0", "1", "1"]
    assert middle[2] == "0.90"
    assert last == ["ROLLIN β = 0.75", "1", "1.00", "1.00 – 1.00", "1", "0", "1"]
    assert [row[3][1] for row in rows] == ["beats", "", "beats", "beats"]
    reached = [[text for text, _ in row] for row in texts("Seeds that reached the last context")]
    assert reached == [
        ["hard, α = 0.001", "ROLLIN β = 0.5", "2 of 5", "0 of 5", "0.444"],  # 20 / 45
        ["hard, α = 0.001", "ROLLIN β = 0.75", "5 of 5", "0 of 5", "0.008"],  # 2 / 252
    ]
    assert "2 tests, whose p are not corrected for their number." in page.text
    assert "there is no interval" not in page.text


@undrawn()
def test_few_seeds_have_no_interval_and_are_not_shaded(tmp_path) -> None:
    page = page_of(rooms(tmp_path, {0.0: [3, 4, 3, 4], 0.1: [5] * 5, 0.75: [16] * 5}))
    for row in page.found["Probability of improvement"][1:]:
        assert row[4] == [("–", "")]
        assert row[3][0][1] == ""
    assert "Where a condition has fewer than 5 seeds there is no interval (–)." in page.text


@pytest.mark.usefixtures("jobs_here")
def test_one_seed_has_no_error_in_the_terminal(tmp_path, capsys) -> None:
    arguments = ["--out", str(tmp_path), "--seeds", "1", "--steps", "600", "--jobs", "1"]
    assert main(["demo", *arguments]) == 0
    said = capsys.readouterr().out
    assert "κ = 0." in said
    assert "±" not in said
    # what the docs name of this page is there
    section = (ROOT / "docs" / "runs-reports.md").read_text().partition("## Read the report")[2]
    section = section.partition("\n## ")[0]
    named = re.findall(r"^\| \*\*(.+?)\*\* \|", section, re.M)
    page = (tmp_path / "report.html").read_text()
    headings = [re.sub("<.*?>", "", text) for text in re.findall(r"<h[23].*?</h[23]>", page)]
    assert len(named) >= 6
    assert [name for name in named if not any(name in text for text in headings)] == []
    files = re.findall(r"`([\w.-]+\.(?:csv|tex))`", section)
    assert {"runs.csv", "table-demo-scale-0.4.csv"} <= set(files)
    for file in files:
        assert (tmp_path / file.replace("0.4", "0.012")).exists()


# ------------------------------------------------------------------ above is what reads as above


def small_difference(reading: MetricAt, one: float, two: float) -> StudyResults:
    """A baseline and a ROLLIN whose means are these."""
    study = find_table("velocity-return")
    conditions = [c for c in study.conditions if c.labels["env"] == "hopper"][:2]
    runs = {}
    for condition, value in zip(conditions, (one, two), strict=True):
        end = condition.steps
        curve = Curve(np.array([float(end)]), {reading.quantity: np.array([value])})
        told = {"steps": end, "step": end, "finished": True, "costs": Costs(1.0, end, 0, end)}
        runs[condition] = [
            Record(task=condition.task, engine="rollin", seed=0, curve=curve, spec_hash="",
                   key=condition.key(), **told)
        ]  # fmt: skip
    return StudyResults(study.only(conditions), 1.0, runs)


def test_what_reads_the_same_is_neither_above_nor_better() -> None:
    reading = find_table("velocity-return").readings[-1]
    close = small_difference(reading, 100.001, 100.002)
    digits = close.digits(reading)
    assert digits < 3
    (row,) = [places for _, places in reading_tables(close)[0].rows]
    assert [place.best for place in row if place] == [False, False]  # a tie has no best
    assert [place.beats for place in row if place] == [False, False]
    apart = small_difference(reading, 100.0, 100.0 + 10**-digits)
    (row,) = [places for _, places in reading_tables(apart)[0].rows]
    assert [place.best for place in row if place] == [False, True]
    assert [place.beats for place in row if place] == [False, True]


def test_no_table_publishes_more_digits_than_it_shows() -> None:
    for table in tables().values():
        for condition in table.conditions:
            for reading, value in condition.published.items():
                shown = StudyResults(table, 1.0, {}).digits(reading)
                assert Published.parse(str(value)).mean == round(value.mean, shown)


# ------------------------------------------------------------------ runs outside tables


def headings(page: Path) -> list[str]:
    found = re.findall(r"<h2.*?</h2>", page.read_text())
    return [" ".join(re.sub("<.*?>", "", text).split()) for text in found]


def test_runs_of_no_study_have_a_section_of_their_own(tmp_path) -> None:
    for seed in (0, 1):
        spec = RunSpec("four-rooms", TabularConfig(gamma=0.9, seed=seed))
        tabular_run(tmp_path / "mine" / str(seed), spec, 8)
    page = page_of(tmp_path)
    html = (tmp_path / "r.html").read_text()
    assert '<a href="#runs-four-rooms">four-rooms</a>' in html
    assert headings(tmp_path / "r.html")[0] == "four-rooms 50,000 gradient steps"
    assert "Runs of no study" in page.text
    # a return over an infinite horizon is not the last context's
    names = [name for name in page.found if name.endswith("at the end")]
    assert names == ["κ at the end", "return at the end"]
    assert page.found["κ at the end"][1] == [
        [("all runs", "")], [("0.500 ± 0.000", "ours"), ("0 of 2 master the last", "solved")]
    ]  # fmt: skip
    # nothing is said of a paper or of plans that they do not have
    assert "ublished" not in page.text.split("ROLLIN on")[-1]
    assert "planned" not in page.text
    assert (tmp_path / "runs-four-rooms.csv").exists()


def test_runs_of_a_task_and_a_table_of_that_name_stand_beside_each_other(tmp_path) -> None:
    """Both are called four-rooms."""
    tabular_run(tmp_path / "mine", RunSpec("four-rooms", TabularConfig(gamma=0.9)), 8)
    rooms(tmp_path / "rooms", {0.0: [3], 0.1: [4], 0.75: [5]})
    page_of(tmp_path)
    html = (tmp_path / "r.html").read_text()
    ids = re.findall(r' id="([^"]*)"', html)
    assert len(ids) == len(set(ids))
    assert {"table-four-rooms", "runs-four-rooms"} < set(ids)
    assert "gamma" not in (tmp_path / "table-four-rooms.csv").read_text()
    assert len((tmp_path / "table-four-rooms.csv").read_text().splitlines()) == 1 + 2 * 3
    # a single study leaves the others out, but none of them out of runs.csv
    with undrawn():
        page_of(tmp_path, only="four-rooms-summary")
    html = (tmp_path / "r.html").read_text()
    assert "table-four-rooms-summary" in html
    assert "runs-four-rooms" not in html
    assert "<b>2</b> finished runs" in html
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 1 + 4


@undrawn()
def test_quantities_are_those_that_an_engine_tells(tmp_path) -> None:
    robots(tmp_path / "a", {"baseline": []}, seeds=1)
    sac_run(tmp_path / "b", RunSpec("Hopper-v5", SACRunConfig(seed=3)), 1.0)
    page = page_of(tmp_path)
    assert [name for name in page.found if name.endswith("at the end")] == ["return at the end"]
    assert page.found["return at the end"][1][1] == [("1.000", "ours")]
    row = [text for place in page.found["Every condition"][1] for text, _ in place]
    assert row.count("0.00") == 1  # the IQM of one seed is its mean, and is not shown again


@undrawn()
def test_only_long_tables_scroll_within_the_page(tmp_path) -> None:
    rooms(tmp_path, {0.0: [3], 0.75: [5]})
    page_of(tmp_path)
    assert "scroll tall" not in (tmp_path / "r.html").read_text()
    for condition in find_table("four-rooms").conditions:
        tabular_run(tmp_path / "all" / condition.name, condition.spec(1), 8)
    page_of(tmp_path)
    assert "scroll tall" in (tmp_path / "r.html").read_text()


@undrawn()
def test_words_sort_in_the_papers_order(tmp_path) -> None:
    every = find_table("antmaze-vanilla").conditions
    conditions = [c for c in every if c.labels["beta"] in ("0", "0.5")]
    for condition in conditions:
        deep_run(tmp_path / condition.name, condition.spec(0, 0.001), [])
    page_of(tmp_path, only="antmaze-vanilla")
    html = (tmp_path / "r.html").read_text()
    places = dict(re.findall(r'data-value="(\d+)">(1/\d+)<', html))
    assert [places[str(i)] for i in range(len(places))] == list(
        dict.fromkeys(condition.labels["delta"] for condition in conditions)
    )


# ------------------------------------------------------------------ colours and paper

CSS = (ROOT / "src" / "rollin" / "report" / "templates" / "style.css").read_text()


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_line_stands_out_from_light_and_dark_cards() -> None:
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)[:2]
    for scheme in (light, light + dark):
        names = dict(re.findall(r"(--[\w-]+): (#\w{6})", scheme))
        card = luminance(names["--card"])
        for colour in (style.SCRATCH, *style.BETA_COLOURS.values(), *style.SPARE):
            name = style.THEME.get(colour)
            line = luminance(names[f"--plot-{name}"] if name else colour)
            low, high = sorted((card, line))
            assert (high + 0.05) / (low + 0.05) >= 3, (colour, names["--card"])


def test_dark_rooms_do_not_darken_paper() -> None:
    assert "@media screen and (prefers-color-scheme: dark)" in CSS
    assert "@media (prefers-color-scheme" not in CSS
    printed = CSS.partition("@media print")[2]
    assert ".tall { max-height" not in printed


@undrawn()
@pytest.mark.parametrize("first", list("-@\r"))
def test_no_file_of_a_report_holds_a_formula(tmp_path, capsys, first) -> None:
    name = f"{first}SUM(1)\u200b\u202e"
    with_names(tmp_path / "runs", name)
    assert main(["report", str(tmp_path / "runs")]) == 0
    files = sorted((tmp_path / "runs").glob("*.csv"))
    assert {"runs.csv", "curves.csv", "switches.csv"} < {file.name for file in files}
    for file in files:
        with file.open(newline="", encoding="utf-8") as opened:
            cells = [cell for row in csv.reader(opened) for cell in row]
        assert not [cell for cell in cells if cell.startswith(first) and not is_number(cell)]
        assert any(cell.startswith(f"'{name}") for cell in cells) or file.name[:5] == "table"
    back = read_records(tmp_path / "runs")
    assert {record.family for record in back} == {name}
    assert all(name in record.curve.quantities for record in back)
    assert main(["list", str(tmp_path / "runs")]) == 0
    told = capsys.readouterr()
    assert not {"\u200b", "\u202e", "\t", "\r"} & set(told.out + told.err)


def is_number(text: str) -> bool:
    try:
        return bool(text.strip() == text and (float(text) or True))
    except ValueError:
        return all(map(is_number, text.split(" "))) if " " in text else False
