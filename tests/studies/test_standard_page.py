"""The page of standard tasks: with records, without any, and numbers worked out on paper."""

from pathlib import Path

import numpy as np
import pytest
from studies.standard_alternatives import COLUMNS

from rollin.paper.standard import TASKS, studies
from rollin.runs.records import Costs, Curve, Record, write_records
from rollin.untrusted import csv_text
from studies import standard_page as page

STEPS = np.array([100.0, 200.0, 300.0, 400.0])
SHARES = {"adaptive": [[0, 0.9, 1, 1], [0, 0, 0.9, 0.8]], "scratch": [[0, 0, 0, 0], [0, 0, 0, 0.9]],
          "hand": [[0.5, 0.5, 0.5, 0.5]]}  # fmt: skip
"""Success at each evaluation, seed by seed."""


def record(curriculum: str, seed: int, shares: list[float]) -> Record:
    condition = next(
        c
        for c in studies()["standard"].conditions
        if c.labels == {"task": "mountain-car", "curriculum": curriculum}
    )
    quantities = {"success_final": np.array(shares), "return_final": 90 * np.array(shares)}
    return Record(
        task=condition.task, engine="rollin", seed=seed, steps=400, step=400, finished=True,
        costs=Costs(seconds=240.0), curve=Curve(STEPS, quantities), spec_hash=f"{seed}",
        key=condition.key(), k=0, K=96, labels=condition.labels, family="standard",
    )  # fmt: skip


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    records = [record(c, 30 + i, s) for c, rows in SHARES.items() for i, s in enumerate(rows)]
    for name, data in write_records(records).items():
        (tmp_path / name).write_bytes(data)
    rows = [
        ["mountain-car", "sac", 30, step, share, -share, 6 * step, "x", "a CPU"]
        for step, share in ((100, 0), (200, 0.95), (300, 0.5))
    ]
    (tmp_path / "alternatives.csv").write_text(csv_text([COLUMNS, *rows]))


@pytest.mark.usefixtures("made")
def test_a_row_has_what_its_seeds_reached_and_when() -> None:
    rows = {(row[0], row[1]): row[2:] for row in page.table().rows}
    # 0.9 at 200 and 300 of 400 steps, which took 4 minutes
    adaptive = ("2", "0.90 ± 0.10", "81.0 ± 9.0", "2 of 2", "250", "2.5")
    assert rows["mountain-car", "`--adaptive`"] == adaptive
    # one of two: the median of a number and infinity
    scratch = rows["mountain-car", "scratch"]
    assert (scratch[0], *scratch[3:]) == ("2", "1 of 2", "–", "–")
    sac = rows["mountain-car", "SB3 SAC"]
    assert (sac[0], *sac[3:]) == ("1", "1 of 1", "200", "20.0")  # 1200 seconds
    assert rows["fetch-push", "`--adaptive`"] == ("0", *["–"] * 5)


@pytest.mark.usefixtures("made")
def test_the_verdict_counts_seeds_on_tasks_that_have_all_methods() -> None:
    assert page.verdict() == (
        "**On 1 task, the adaptive curriculum in 2 of 2 seeds reaches 90 % success on the full "
        "task, learning from scratch in 1 of 2, Stable-Baselines3 in 1 of 1** (the better of its "
        "methods on each task)."
    )


@pytest.mark.usefixtures("made")
def test_the_figure_has_a_panel_for_each_task_with_runs() -> None:
    panels = [axis for axis in page.draw().axes if axis.axison]
    assert [axis.get_title(loc="left") or axis.get_title() for axis in panels] == ["mountain-car"]
    lines = {line.get_color(): np.asarray(line.get_ydata()) for line in panels[0].lines}
    np.testing.assert_allclose(lines[page.COLOURS["adaptive"]], [0, 0.45, 0.95, 0.9])


def test_without_runs_every_row_is_a_dash_and_nothing_is_claimed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    rows = page.table().rows
    assert {row[0] for row in rows} == set(TASKS)
    assert all(set(row[5:]) == {"–"} for row in rows)
    assert page.verdict().startswith("**Not known yet")
