"""What the published numbers say: counts, seeds, thresholds, the command and the page."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from rollin.analysis.sheets import Findings
from rollin.cli import main
from rollin.envs.velocity import ROBOTS
from rollin.paper.numbers import (
    READINGS,
    ceiling,
    numbers,
    seeds_of_cells,
    share_needed,
    threshold,
    weigh,
)

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "results" / "paper-numbers"
PAGE = RECORDS / "README.md"


pytestmark = pytest.mark.xdist_group("paper-numbers")  # which are counted once


@pytest.fixture(scope="session")  # tests of other modules may come between
def found() -> Findings:
    return numbers()


def table(found: Findings, name: str) -> list[dict[str, str]]:
    (one,) = (sheet for sheet in found.tables if sheet.name == name)
    return [dict(zip(one.columns, row, strict=True)) for row in one.rows]


# ------------------------------------------------------------------ what the paper's cells say


def test_how_many_cells_are_impossible_on_each_lattice(found) -> None:
    head = next(one for one in found.tables if one.name == "lattices")
    got = {
        (row[0], row[2], row[3].strip("*")): tuple(int(x.strip("*")) for x in row[4:])
        for row in head.rows
    }
    maze, robots, rooms = "ant maze", "velocities", "four rooms"
    assert got == {
        (maze, "s/√8", "k/(N - 1)"): (0, 0),
        (maze, "s/√8", "k/N, k = 0 … N"): (19, 27),
        (maze, "s/√8", "k/N, k = 1 … N"): (19, 27),
        (maze, "s/√8", "k/N, k = 0 … N - 1"): (27, 35),
        (maze, "s/√8", "k/(N + 1)"): (19, 19),
        (maze, "s/√8", "k/(N - 2)"): (27, 26),
        (robots, "s/√8", "k/9"): (0, 0),
        (robots, "s/√8", "k/10, k = 0 … 10"): (3, 3),
        (robots, "s/√8", "0.1 … 1 as the text has κ"): (4, 4),
        (robots, "s/√8", "k/8"): (15, 15),
        (robots, "s/√8", "k/11"): (6, 6),
        (robots, "s/√8", "k/18"): (0, 0),
        (robots, "s/√8", "k/19"): (0, 0),
        (rooms, "s/√10", "k/16"): (9, 9),
        (rooms, "s/√500", "k/16"): (1, 1),
        (rooms, "s/√10", "k/15"): (13, 13),
        (rooms, "s/√500", "k/15"): (13, 13),
        (rooms, "s/√10", "k/17"): (13, 13),
        (rooms, "s/√500", "k/17"): (9, 9),
    }
    sizes = dict(row[:2] for row in head.rows)
    assert sizes == {maze: "180 × 8", robots: "40 × 8", rooms: "28 × 10"}


def test_where_the_four_room_seeds_stand(found) -> None:
    rows = {(r["row"], r["β"]): list(r.values())[4:] for r in table(found, "rooms-progress")}
    hard, clear, easy = "hard, α = 0.01", "hard, α = 0.001", "easy, α = 0.01"
    assert rows[hard, "0.1"] == ["9 × 8, 1 × 9", "0"]
    assert rows[hard, "0.3"] == ["none", "–"]
    assert rows[clear, "0.1"] == ["1 × 13, 9 × 16", "9"]
    assert rows[clear, "0.2"] == ["3 × 15, 7 × 16", "7"]
    assert rows[easy, "0.1"] == rows[easy, "0.2"] == ["1 × 15, 9 × 16", "9"]
    assert [r["Σk"] for r in table(found, "rooms-progress") if r["κ"] == "0.944 ± 0.003"] == [
        "151 of 160"
    ]
    assert len(rows) == 9


def test_returns_are_those_of_whole_seeds_with_the_pooled_error_alone(found) -> None:
    rows = table(found, "rooms-returns")
    pooled, plain = (
        [round(sum(map(float, r[name].split(" – "))) / len(r[name].split(" – ")), 2) for r in rows]
        for name in ("seeds of ten, ± as s/√500", "seeds of ten, ± as s/√10")
    )
    assert [round(x) for x in pooled] == [4, 9, 7, 10, 4, 5, 4, 1, 4, 7, 4]
    assert all(abs(x - round(x)) < 0.13 for x in pooled)
    assert sum(abs(x - round(x)) < 0.13 for x in plain) < 6
    assert {r["row"] for r in rows} == {"hard, α = 0.001", "easy, α = 0.01"}
    assert all(9.9 < float(r["each earns"]) < 10.7 for r in rows if r["row"].startswith("easy"))


# ------------------------------------------------------------------ thresholds


def test_thresholds_and_ceilings_by_hand() -> None:
    hopper, humanoid = ROBOTS["hopper"], ROBOTS["humanoid"]
    assert threshold(hopper, Fraction(8, 10)) == 4100
    assert threshold(hopper, Fraction(8, 9)) == 4500
    assert ceiling(hopper, Fraction(9, 10)) == 4500  # 3 m/s · 1000 + 1500
    assert ceiling(humanoid, Fraction(1, 10)) == 7750  # 1.25 · 0.2 m/s · 1000 + 7500
    assert share_needed(hopper, 4100, 2.65) == pytest.approx(0.95)
    assert share_needed(ROBOTS["ant"], 4250 + 250 + 1250 * 0.4, 4.25) == pytest.approx(0.4)


def test_every_velocity_cell_has_seeds_and_the_ants_of_a_million_steps_are_at_the_end() -> None:
    found = seeds_of_cells()
    assert len(found) == 40
    assert all(at.sets for at in found)
    ends = [at for at in found if str(at.kappa) == "1.00 ± 0.00"]
    assert [(at.cell.task, at.step, at.sets) for at in ends] == [
        ("ant", 1_000_000, ((9,) * 8,))
    ] * 2  # fmt: skip
    passed = {name: weigh(ends[0], reading).passed for name, reading in READINGS.items()}
    assert passed == {"(k + 1)/10": 4550, "k/9": 4500, "k/10": 4100}
    assert weigh(ends[0], READINGS["k/10"]).above is None


def test_which_readings_of_the_threshold_cells_contradict(found) -> None:
    rows = {
        r["R at"].strip("*"): [v.strip("*") for v in list(r.values())[2:]]
        for r in table(found, "thresholds")
        if r["robot"] == "**all**"
    }
    assert rows == {
        "(k + 1)/10": ["40", "40", "19", "2", "1", "0 of 18"],
        "k/9": ["40", "36", "16", "0", "1", "0 of 18"],
        "k/10": ["40", "20", "8", "0", "0", "0 of 18"],
        "(k - 1)/10": ["40", "6", "3", "0", "0", "0 of 18"],
        "(k - 2)/10": ["40", "5", "1", "0", "0", "7 of 18"],
    }
    (strongest,) = [at for at in seeds_of_cells() if weigh(at, READINGS["k/9"]).over]
    assert (strongest.cell.name, strongest.step) == ("env=hopper,method=rollin,beta=0.2", 1_000_000)
    assert min(one.count(9) for one in strongest.sets) == 2


# ------------------------------------------------------------------ the command, records and page


def test_the_command_writes_what_is_kept(tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "paper-numbers", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Cells that no seeds on a lattice can give" in said
    assert f"Written: {out / 'cells.csv'}" in said
    assert "**" not in said
    names = {path.name for path in out.iterdir()}
    assert names == {path.name for path in RECORDS.iterdir()} - {"README.md"}
    for name in names:
        assert (out / name).read_text() == (RECORDS / name).read_text(), name


def test_records_have_a_row_for_each_cell_lattice_and_convention() -> None:
    with (RECORDS / "cells.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 180 * 6 * 2 + 40 * 7 * 2 + 28 * 3 * 2 * 2
    assert len({tuple(row.values())[:9] for row in rows}) == len(rows)
    assert all((row["possible"] == "yes") == (int(row["multisets"]) > 0) for row in rows)
    with (RECORDS / "thresholds.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 40 * 5


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--cells", "env=hopper"), "--only does not apply to paper-numbers: it takes --out."),
        (("--seeds", "3"), "--seeds does not apply to paper-numbers: it takes --out."),
        (("--out", "file/below"), "could not be made"),
    ],
)
def test_bad_input_gets_one_sentence(more, sentence, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "paper-numbers", *more]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_page_shows_every_table(found) -> None:
    assert PAGE.read_text().count("<!-- begin: ") == len(found.tables)
