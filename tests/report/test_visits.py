"""Where training steps ended: counted by the run, kept over a stop, drawn by context."""

from typing import Any

import numpy as np
import pytest
from PIL import Image

from rollin.cli import main
from rollin.report.maps import panels_of, visit_maps, visits_figure
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record, run
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.metrics import Visits, read_metrics
from rollin.runs.spec import RunSpec, configured
from rollin.sac.replay import HEADER
from tests.runs.test_rollin_runs import line

OPTIONS = {"steps": 1200, "log_every": 400, "eval_episodes": 1, "warmup": 100, "hidden": (8, 8),
           "batch": 16, "env_options": ("horizon=50",), "keep_replay": True, "beta": 0.5,
           "threshold": -1.0, "window": 4}  # fmt: skip
SPEC = RunSpec("point-umaze", configured(RollinConfig(), OPTIONS))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("visits") / "run"
    run(SPEC, out)
    return out


def test_a_run_counts_all_its_steps_in_the_cells_that_they_ended_in(trained) -> None:
    """Against the file of all transitions: 4 + 2 + 2 + 4 + 1 + 1 + 2 numbers a row."""
    rows = np.fromfile(trained / "replay.f32", np.float32, offset=HEADER).reshape(1200, 16)
    told = read_metrics(trained / "visits.csv")
    edges = np.arange(-3, 11.25, 0.25)
    expected, *_ = np.histogram2d(*rows[:, -2:].T, bins=[edges, edges])
    found, *_ = np.histogram2d(told["x"], told["y"], bins=[edges, edges], weights=told["steps"])
    assert found.sum() == 1200
    np.testing.assert_array_equal(found, expected)
    by_context = np.bincount(np.array(told["k"], int), told["steps"])
    episodes = read_metrics(trained / "episodes.csv")
    lengths = np.bincount(np.array(episodes["k"], int), episodes["length"])
    assert len(by_context) > 2  # several contexts were entered
    np.testing.assert_array_equal(by_context, lengths)


def test_a_stop_loses_no_visit(trained, tmp_path) -> None:
    run(SPEC, tmp_path / "a", until=530)
    run(SPEC, tmp_path / "a")
    assert (tmp_path / "a" / "visits.csv").read_bytes() == (trained / "visits.csv").read_bytes()


def test_a_roll_in_that_is_not_recorded_is_not_counted(tmp_path) -> None:
    options = {**OPTIONS, "prefix": "hidden"}
    run(RunSpec("point-umaze", configured(RollinConfig(), options)), tmp_path / "a")
    hidden = sum(read_metrics(tmp_path / "a" / "episodes.csv")["rollin_steps"])
    assert hidden > 0
    assert sum(read_metrics(tmp_path / "a" / "visits.csv")["steps"]) == 1200 - hidden


def test_contexts_that_are_no_places_have_no_visits(tmp_path, capsys) -> None:
    run(line(300), tmp_path / "a")
    assert not (tmp_path / "a" / "visits.csv").exists()
    assert main(["plot", str(tmp_path / "a"), "--visits", "--out", str(tmp_path / "v.png")]) == 2
    said = capsys.readouterr().err
    assert "None of these runs recorded where its steps ended" in said
    assert said.count("\n") == 1


def test_steps_far_away_count_at_the_edge_so_that_cells_stay_few() -> None:
    visits = Visits([[0.0, 0.0], [8.0, 8.0]])
    visits.take(0, np.random.default_rng(0).standard_normal((5000, 2)) * 1e9)
    assert len(visits.rows()) == 4
    assert sum(steps for *_, steps in visits.rows()) == 5000


def test_many_contexts_share_panels_and_no_step_is_left_out() -> None:
    rng = np.random.default_rng(1)
    columns = {"k": rng.integers(0, 30, 500) * 2, "steps": rng.integers(1, 9, 500)}
    told = {name: column.astype(float) for name, column in columns.items()}
    told |= {name: rng.integers(0, 5, 500) + 0.5 for name in ("x", "y")}
    contexts = rng.standard_normal((60, 2))
    panels = panels_of(told, contexts, 7)
    assert len(panels) == 7
    assert sum(panel.steps.sum() for panel in panels) == told["steps"].sum()
    assert [k for panel in panels for k in panel.ks] == sorted({int(k) for k in told["k"]})
    for panel in panels:
        np.testing.assert_array_equal(panel.goals, contexts[panel.ks])
        inside = np.isin(told["k"], panel.ks)
        here = inside & (told["x"] == panel.places[0, 0]) & (told["y"] == panel.places[0, 1])
        assert panel.steps[0] == told["steps"][here].sum()


def test_cells_are_drawn_where_the_steps_ended(trained) -> None:
    maps = visit_maps(read_record(RunDirectory(trained)))
    figure = visits_figure([maps])
    panel, axis = maps.panels[1], figure.subfigs[0].axes[1]
    mesh: Any = axis.collections[-1]
    drawn = mesh.get_array()
    assert np.nansum(np.ma.filled(drawn, np.nan)) == panel.steps.sum()
    corners = mesh.get_coordinates()
    most = np.unravel_index(np.nanargmax(np.ma.filled(drawn, np.nan)), drawn.shape)
    busiest = panel.places[panel.steps.argmax()]
    np.testing.assert_allclose(corners[most] + maps.cell / 2, busiest)


def test_the_command_draws_finished_and_unfinished_runs(trained, tmp_path, capsys) -> None:
    other = configured(RollinConfig(), {**OPTIONS, "seed": 1})
    run(RunSpec("point-umaze", other), tmp_path / "half", until=600)
    out = tmp_path / "v.png"
    words = ["plot", str(trained), str(tmp_path / "half"), "--visits", "--out", str(out)]
    assert main(words) == 0
    assert f"Maps of 2 runs: {out}" in capsys.readouterr().out
    with Image.open(out) as picture:
        assert min(picture.size) > 300
    (tmp_path / "half" / "visits.csv").write_text("k,x,y,steps\n99,0,0,1\n")
    assert main(["plot", str(tmp_path / "half"), "--visits", "--out", str(out)]) == 2
    assert "visits.csv must have contexts 0 … 12." in capsys.readouterr().err
