"""The page of all teachers: any number of seeds, none at all, and numbers worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from rollin.paper.curricula import SMALL_TASKS
from rollin.report import style
from rollin.runs.records import Costs, Curve, Record, write_records
from studies import teachers_page as page

SHARES = {
    ("adaptive", "0"): [1.0, 1.0, 0.5],
    ("hand", "0"): [0.5, 0.25, 0.0],
    ("jsrl", "0.1"): [0.5],
}


def record(task, arm, seed, share) -> Record:
    steps, none = np.array([500.0, 1000.0]), np.nan
    quantities = {"goals": np.array([none, share]), "return_final": np.array([0.0, 100 * share])}
    labels = {"task": task, "teacher": arm[0], "beta": arm[1]}
    return Record(
        task=task, engine="rollin", seed=seed, steps=1000, step=1000, finished=True,
        costs=Costs(), curve=Curve(steps, quantities), spec_hash=f"{seed}", key=f"{arm}",
        labels=labels, family="teachers",
    )  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    out = tmp_path_factory.mktemp("teachers")
    made = [
        record(task, arm, 30 + i, share)
        for task in SMALL_TASKS[:2]
        for arm, shares in SHARES.items()
        for i, share in enumerate(shares)
    ]
    for name, data in write_records(made).items():
        (out / name).write_bytes(data)
    return page.runs_in(out)


def test_goals_are_counted_and_seeds_told(found):
    table = page.table(found).splitlines()
    assert page.seeds_text(found) == "Seeds of each arm: 1 to 3. Steps of a run: 1,000."
    # 24, 24 and 12 of 24: a mean of 20, a deviation of √48, by √3
    assert table[2] == "| adaptive | 20.0 ± 4.0 (3) | 20.0 ± 4.0 (3) | – | – |"
    assert table[4] == "| `jsrl`, β = 0.1 | 12.0 (1) | 12.0 (1) | – | – |"
    assert len(table) == 5


def test_arms_are_compared_with_ours(found):
    rows = page.compared(found).splitlines()[2:]
    assert len(rows) == 2
    cell = rows[0].split(" | ")[1]
    # 12, 6, 0 against 24, 24, 12: one tie in nine pairs; four of twenty splits are as far apart
    assert cell.startswith("−14.0; 0.06 [0.00, ")
    assert cell.endswith("; 0.2")
    assert rows[1].split(" | ")[1] == "−8.0"


def test_the_lower_bound_of_a_difference_is_that_of_a_t_test():
    x, y = np.array([1.0, 0.9, 0.7, 1.0]), np.array([0.5, 0.2, 0.4])
    told = stats.ttest_ind(x, y, equal_var=False, alternative="greater").confidence_interval(0.95)
    assert page.lower_bound(x, y) == pytest.approx(told.low)
    assert page.lower_bound(np.ones(3), np.zeros(3)) == 1.0


def test_ours_is_set_beside_the_rule_by_hand(found):
    assert page.against_hand(found).count("\n") == 1  # no roll-in by hand here
    task = SMALL_TASKS[0]
    more = {**found, (task, page.HAND): found[task, ("hand", "0")]}
    (row,) = page.against_hand(more).splitlines()[2:]
    # shares 1, 1, ½ against ½, ¼, 0
    low = page.lower_bound(np.array([1.0, 1.0, 0.5]), np.array([0.5, 0.25, 0.0]))
    assert row.split(" | ")[1] == f"+0.58, above {low:+.2f}".replace("-", "−")


def test_methods_have_the_colours_of_all_figures():
    assert page.order()[0] == page.OURS
    colours = [page.colour(arm) for arm in (page.OURS, ("hand", "0"), page.HAND, ("plr", "0"))]
    assert colours == [style.ADAPTIVE, style.BASELINE, style.BETA_COLOURS[0.1], page.OTHERS]


def test_the_picture_shows_the_tasks_that_have_runs(found):
    figure = page.seeds_figure(found)
    assert [axis.get_title() for axis in figure.axes] == list(SMALL_TASKS[:2])


def test_without_records_the_page_says_so(tmp_path, monkeypatch):
    assert page.runs_in(tmp_path / "nothing") == {}
    monkeypatch.setattr(page, "runs", dict)
    assert set(page.texts().values()) == {page.NONE}
