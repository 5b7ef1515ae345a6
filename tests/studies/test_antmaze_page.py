"""The page of AntMaze: the tests that were fixed, and numbers worked out by hand."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from studies.antmaze import GOALS
from studies.shared import key_of, merge_rows

from rollin.paper.decisive import FAMILY, studies
from rollin.runs.records import Costs, Curve, Record, Switch, write_records
from studies import antmaze_page as page

AT = 1_500_000
KS = {"0": [4, 4, 4, 5], "0.5": [4, 5, 6, 6], "0.9": [6, 7, 5]}


def record(condition, seed: int, k: int, step: int = AT) -> Record:
    """A run at context k of 11 from half a million steps on, and one farther after the reading."""
    switches = [Switch(i, 100 * i, {"kappa": i / 11}) for i in range(k + 1)]
    if step > AT:
        switches.append(Switch(k + 1, AT + 1, {"kappa": (k + 1) / 11}))
    curve = Curve(np.array([step], float), {"kappa": np.array([k / 11])})
    return Record(
        task=condition.task, engine="rollin", seed=seed, steps=condition.steps, step=step,
        finished=False, costs=Costs(), curve=curve,
        spec_hash=f"{seed}", key=condition.key(), k=switches[-1].k, K=11, switches=tuple(switches),
        labels=condition.labels, family=FAMILY,
    )  # fmt: skip


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the decisive study, one of them too short and one past the reading."""
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    by_beta = {c.labels["beta"]: c for c in studies()["antmaze-decisive"].conditions}
    records = [
        record(by_beta[beta], 10 + i, k) for beta, ks in KS.items() for i, k in enumerate(ks)
    ]
    records[-1] = record(by_beta["0.9"], 12, 5, step=2_000_000)
    records.append(record(by_beta["0.9"], 13, 11, step=AT - 1000))
    goals = {}
    for r in records[:2]:  # the first solves 3 of 12 goals, and 4 with drawn actions
        rows = [[AT, i, 1.0 * (i < 4), 250.0 * (i < 3), 0.8 * (i < 5), 0.0] for i in range(1, 13)]
        goals[key_of(r)] = [[500_000, *row[1:]] for row in rows] + rows
    for name, data in write_records(records).items():
        (tmp_path / name).write_bytes(data)
    merge_rows(tmp_path / "goals.csv", GOALS, goals)


@pytest.mark.usefixtures("made")
def test_conditions_are_read_at_the_step() -> None:
    base, _, most = page.decisive().rows
    mean, error = np.mean(KS["0"]) / 11, np.std(KS["0"], ddof=1) / 2 / 11
    assert base[:6] == (
        "baseline", "4", "0.36 ± 0.00", f"**{mean:.2f} ± {error:.2f}**", "4, 4, 4, 5", "1 of 4"
    )  # fmt: skip
    assert base[6:] == ("3, 3", "4, 4", "2, 2")
    assert most[1] == "3"  # not the seed that has not come so far
    assert most[4:7] == ("6, 7, 5", "3 of 3", "–")  # as of the step, not later


@pytest.mark.usefixtures("made")
def test_p_values_are_those_of_the_exact_tests() -> None:
    confirmatory, exploratory = page.tests().rows
    assert confirmatory[:3] == ("β = 0.9 against 0", "**confirmatory**", "3 and 4")
    for row, beta in ((confirmatory, "0.9"), (exploratory, "0.5")):
        ks, base = KS[beta], KS["0"]
        passed = [[sum(k >= 5 for k in side), sum(k < 5 for k in side)] for side in (ks, base)]
        assert float(row[3]) == pytest.approx(stats.fisher_exact(passed)[1], abs=5e-4)
        found = stats.permutation_test(
            (ks, base), lambda x, y: abs(np.mean(x) - np.mean(y)), n_resamples=10**6,
            alternative="greater",
        )  # fmt: skip
        assert float(row[4]) == pytest.approx(found.pvalue, abs=5e-4)


def test_without_runs_the_tables_are_empty(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    for table in page.tables():
        assert all("–" in row for row in table.rows)


def test_a_panel_has_the_middles_of_the_cells_and_the_context_s_goal() -> None:
    goals = np.array([[2.0, 0.0], [4.0, 0.0]])
    panel = page._panel(1, "-1 0 24;3 -2 5", goals)
    assert panel.ks == [1]
    assert panel.goals.tolist() == [[4.0, 0.0]]
    assert panel.places.tolist() == [[-0.25, 0.25], [1.75, -0.75]]
    assert panel.steps.tolist() == [24.0, 5.0]


def test_the_picture_shows_every_step_of_its_runs() -> None:
    for maps in page.visits():
        assert sum(panel.steps.sum() for panel in maps.panels) == maps.record.step
        assert [panel.ks[0] for panel in maps.panels] == list(range(page.k_at(maps.record) + 1))
