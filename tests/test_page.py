"""What a report's page says: every text and mark of its tables, read back from the HTML."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rollin.analysis.collect import collect
from rollin.analysis.results import TableResults
from rollin.analysis.tables import grids
from rollin.cli import main
from rollin.paper.tables import find_table, tables
from rollin.report import style
from rollin.report.page import make_report
from rollin.report.records import RunRecord
from rollin.runs.spec import RunSpec, SACRunConfig, TabularConfig
from rollin.sweeps.published import published
from rollin.sweeps.study import Reading
from tests.made_runs import deep_run, robots, rooms, sac_run, tabular_run

ROOT = Path(__file__).parents[1]
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
    make_report(collect([out]), out / "r.html", **options)
    return Tables((out / "r.html").read_text())


@pytest.fixture
def page(tmp_path) -> Tables:
    ks = {0.0: [12, 14, 13, 12, 14], 0.1: [11, 12, 12, 13, 12], 0.5: [15, 15, 16, 13, 16],
          0.75: [16, 16, 16, 16, 16]}  # fmt: skip
    return page_of(rooms(tmp_path, ks))


def test_a_grid_has_published_ours_and_difference_with_their_marks(page) -> None:
    heading, row = page.found["κ at 50k steps"]
    names = ["baseline", "ROLLIN β = 0.1", "ROLLIN β = 0.5", "ROLLIN β = 0.75"]
    assert heading == [[], *([(name, "")] for name in names)]
    assert row == [
        [("hard, α = 0.001", "")],
        [("0.856 ± 0.006", "pub"), ("0.812 ± 0.028", "ours"), ("−0.043", "diff")],
        [("0.981 ± 0.003", "pub claims"), ("0.750 ± 0.020", "ours"), ("−0.231", "diff")],
        [("1.000 ± 0.000", "beats pub claims best"), ("0.938 ± 0.034", "beats ours"),
         ("−0.062", "beats diff")],
        [("1.000 ± 0.000", "beats pub claims best"), ("1.000 ± 0.000", "beats ours best"),
         ("0.000", "beats diff")],
    ]  # fmt: skip


def test_the_findings_have_chance_interval_and_counts(page) -> None:
    def texts(label: str) -> list[list[Mark]]:
        return [[mark for cell in row for mark in cell] for row in page.found[label][1:]]

    rows = [row for row in texts("Probability of improvement") if row[0][0] == "κ at 50k steps"]
    everything, first, middle, last = ([text for text, _ in row[1:]] for row in rows)
    assert everything[:3] == ["ROLLIN, all β", "3", "0.71"]  # (5.5 + 22.5 + 25)/75
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


def test_few_seeds_have_no_interval_and_are_not_shaded(tmp_path) -> None:
    page = page_of(rooms(tmp_path, {0.0: [3, 4, 3, 4], 0.1: [5] * 5, 0.75: [16] * 5}))
    for row in page.found["Probability of improvement"][1:]:
        assert row[4] == [("–", "")]
        assert row[3][0][1] == ""
    assert "Where a cell has fewer than 5 seeds there is no interval (–)." in page.text


def test_one_seed_has_no_error_in_the_terminal(tmp_path, capsys) -> None:
    arguments = ["--out", str(tmp_path), "--seeds", "1", "--steps", "600", "--jobs", "1"]
    assert main(["demo", *arguments]) == 0
    said = capsys.readouterr().out
    assert "κ = 0." in said
    assert "±" not in said
    # what the quick start tells of this page is there
    section = (ROOT / "docs" / "quickstart.md").read_text().partition("## Read the report")[2]
    section = section.partition("\n## ")[0]
    named = re.findall(r"^\| \*\*(.+?)\*\* \|", section, re.M)
    page = (tmp_path / "report.html").read_text()
    headings = [re.sub("<.*?>", "", text) for text in re.findall(r"<h[23].*?</h[23]>", page)]
    assert len(named) >= 6
    assert [name for name in named if not any(name in text for text in headings)] == []
    files = re.findall(r"`([\w.-]+\.(?:csv|tex))`", section)
    assert {"runs.csv", "table-four-rooms-summary-scale-0.4.csv"} <= set(files)
    for file in files:
        assert (tmp_path / file.replace("0.4", "0.012")).exists()


# ------------------------------------------------------------------ above is what reads as above


def small_difference(reading: Reading, one: float, two: float) -> TableResults:
    """A baseline and a ROLLIN whose means are these."""
    table = find_table("velocity-return")
    cells = [c for c in table.cells if c.labels["env"] == "hopper"][:2]
    runs = {}
    for cell, value in zip(cells, (one, two), strict=True):
        runs[cell] = [RunRecord(cell.spec(0), {reading.figure: value})]
    return TableResults(table.only(cells), 1.0, runs)


def test_what_reads_the_same_is_neither_above_nor_better() -> None:
    reading = find_table("velocity-return").readings[-1]
    close = small_difference(reading, 100.001, 100.002)
    digits = close.digits(reading)
    assert digits < 3
    (row,) = [places for _, places in grids(close)[0].rows]
    assert [place.best for place in row if place] == [True, True]
    assert [place.beats for place in row if place] == [False, False]
    apart = small_difference(reading, 100.0, 100.0 + 10**-digits)
    (row,) = [places for _, places in grids(apart)[0].rows]
    assert [place.best for place in row if place] == [False, True]
    assert [place.beats for place in row if place] == [False, True]


def test_no_table_publishes_more_digits_than_it_shows() -> None:
    for table in tables().values():
        for cell in table.cells:
            for reading, value in cell.published.items():
                shown = TableResults(table, 1.0, {}).digits(reading)
                assert published(str(value)).mean == round(value.mean, shown)


# ------------------------------------------------------------------ runs outside tables


def test_other_runs_are_called_by_one_name(tmp_path) -> None:
    tabular_run(tmp_path / "mine", RunSpec("four-rooms", TabularConfig(gamma=0.9)), 8)
    page = page_of(tmp_path)
    html = (tmp_path / "r.html").read_text()
    assert '<a href="#runs">Runs</a>' in html
    assert "Runs that are no condition of the paper's tables" in page.text
    # a return over an infinite horizon is not the last context's
    assert [cell[0][0] for cell in page.found["Runs"][0]] == [
        "task", "options", "steps", "seeds", "κ", "return"
    ]  # fmt: skip
    rooms(tmp_path / "rooms", {0.0: [3], 0.1: [4], 0.75: [5]})
    page = page_of(tmp_path, table="four-rooms-summary")
    html = (tmp_path / "r.html").read_text()
    assert '<a href="#runs">Other runs</a>' in html
    assert len(page.found["Other runs"]) == 3  # gamma 0.9, and β = 0.1, which is another table's
    assert "Runs that are not in the tables shown" in page.text


def test_columns_are_those_of_any_engine_there(tmp_path) -> None:
    robots(tmp_path / "a", {"baseline": []}, seeds=1)
    sac_run(tmp_path / "b", RunSpec("Hopper-v5", SACRunConfig(seed=3)), 1.0)
    page = page_of(tmp_path)
    assert [cell[0][0] for cell in page.found["Other runs"][0]][4:] == ["return"]


def test_only_long_tables_scroll_within_the_page(tmp_path) -> None:
    rooms(tmp_path, {0.0: [3], 0.75: [5]})
    page_of(tmp_path)
    assert "scroll tall" not in (tmp_path / "r.html").read_text()
    for cell in find_table("four-rooms").cells:
        tabular_run(tmp_path / "all" / cell.name, cell.spec(1), 8)
    page_of(tmp_path)
    assert "scroll tall" in (tmp_path / "r.html").read_text()


def test_words_sort_in_the_papers_order(tmp_path) -> None:
    cells = [c for c in find_table("antmaze-vanilla").cells if c.labels["beta"] in ("0", "0.5")]
    for cell in cells:
        deep_run(tmp_path / cell.name, cell.spec(0, 0.001), [])
    page_of(tmp_path, table="antmaze-vanilla")
    html = (tmp_path / "r.html").read_text()
    places = dict(re.findall(r'data-value="(\d+)">(1/\d+)<', html))
    assert [places[str(i)] for i in range(len(places))] == list(
        dict.fromkeys(cell.labels["delta"] for cell in cells)
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
