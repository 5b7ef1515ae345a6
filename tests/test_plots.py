"""Learning curves of runs, and the published values that belong to them."""

import numpy as np
import pytest

from rollin.cli import main
from rollin.cli.train import parse_options
from rollin.paper.robots import ANTMAZE, VELOCITY, published_for
from rollin.report.learning import LearningCurve, learning_figure, trailing_mean
from rollin.runs.driver import run
from rollin.runs.spec import RunSpec, rollin_config
from rollin.runs.store import read_metrics
from rollin.runs.sweep import find_runs
from tests.test_rollin_runs import line


def published_of(*arguments: str) -> dict[int, str]:
    options = parse_options(arguments)
    found = published_for(RunSpec(options.task, options.config))
    return {step: str(figures["kappa"]) for step, figures in found.items() if "kappa" in figures}


@pytest.mark.parametrize(
    ("arguments", "kappa"),
    [
        (("--method", "baseline"), "0.40 ± 0.02"),
        (("--delta", "1/24"), "0.49 ± 0.04"),
        (("--delta", "1/12", "--geometric"), "0.55 ± 0.04"),
        (("--geometric", "--beta", "0.1", "--seed", "7", "--steps", "20000"), "0.92 ± 0.02"),
        (("--relabel", "--method", "baseline"), "0.89 ± 0.03"),
        (("--relabel", "--geometric"), "0.78 ± 0.01"),
        (("--go-explore", "0.1", "--beta", "0"), "0.37 ± 0.02"),
        (("--go-explore", "0.1", "--sampling", "geometric"), "0.95 ± 0.02"),
    ],
)
def test_conditions_of_the_antmaze_are_combinations_of_options(arguments, kappa):
    assert published_of("antmaze-umaze", *arguments) == {3_000_000: kappa}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--beta", "0.2"),  # not in the summary
        ("--delta", "1/18"),
        ("--go-explore", "0.25"),
        ("--relabel", "--go-explore", "0.1"),
        ("--gamma", "0.95"),
        ("--threshold", "100"),
        ("--method", "fresh"),
        ("--method", "scratch"),
        ("--env-options", "horizon=700"),
    ],
)
def test_other_conditions_of_the_antmaze_have_no_published_value(arguments):
    assert published_of("antmaze-umaze", *arguments) == {}


def test_conditions_of_the_velocity_tasks_have_their_published_values():
    assert published_of("hopper", "--method", "baseline") == {
        500_000: "0.85 ± 0.02", 1_000_000: "0.88 ± 0.01"
    }  # fmt: skip
    assert published_of("ant", "--beta", "0.75")[500_000] == "0.47 ± 0.05"
    assert published_of("humanoid", "--beta", "0.3") == {}
    assert published_of("humanoid", "--geometric") == {}
    assert published_of("walker", "--start", "0.5") == {}
    assert published_of("point-umaze") == {}
    scratch = published_for(RunSpec("hopper", rollin_config(method="scratch", log_every=1)))
    assert str(scratch[500_000]["return_mean_last"]) == "2943.6 ± 80.3"
    assert "kappa" not in scratch[500_000]


def test_published_tables_are_whole():
    assert len(VELOCITY) == 4 * 6 * 2  # robots, five β and scratch, two steps
    assert len(ANTMAZE) == 3 * 2 * 4


def test_trailing_means_leave_out_rows_that_say_nothing():
    values = np.array([1.0, np.nan, 3.0, 5.0, np.nan, np.nan, np.nan])
    found = trailing_mean(values, 3)
    assert np.array_equal(found, [1, 1, 2, 4, 4, 5, np.nan], equal_nan=True)
    assert np.array_equal(trailing_mean(values[:1], 3), [1.0])


def test_plots_of_nothing_and_of_other_runs_are_one_sentence(tmp_path, capsys):
    assert main(["plot", str(tmp_path), "--out", str(tmp_path / "c.png")]) == 2
    assert "No run of ROLLIN with metrics below" in capsys.readouterr().err
    assert main(["plot", str(tmp_path), "--out", str(tmp_path / "c.jpg")]) == 2
    assert "--out must end in .png or .svg" in capsys.readouterr().err
    run(line(450), tmp_path / "one" / "a")
    run(line(450, seed=1), tmp_path / "one" / "b")
    (tmp_path / "one" / "c").mkdir()
    (tmp_path / "one" / "c" / "config.json").write_text("{}")
    assert main(["plot", str(tmp_path / "one"), "--out", str(tmp_path / "c.png")]) == 0
    told = capsys.readouterr().out
    assert "Passed over" in told
    assert "Curves of 2 runs" in told


def test_a_curve_is_named_by_its_method_and_seeds_are_counted(tmp_path):
    for seed in (0, 1):
        run(line(450, seed=seed), tmp_path / f"rollin-{seed}")
    run(line(450, method="baseline", relabel=True), tmp_path / "baseline")
    assert main(["plot", str(tmp_path), "--out", str(tmp_path / "c.svg")]) == 0
    curves = [LearningCurve.read(found) for found in find_runs(tmp_path)]
    figure = learning_figure(curves)
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["baseline, relabelling (1)", "ROLLIN β = 0.4 (2)"]
    kappa, *_, total = figure.axes
    steps, means = kappa.lines[1].get_data()
    assert np.array_equal(steps, [150, 300, 450])
    rows = [read_metrics(tmp_path / f"rollin-{seed}" / "metrics.csv") for seed in (0, 1)]
    assert np.allclose(means, np.mean([row["kappa"] for row in rows], axis=0))
    assert total.get_title() == "tests.envs:Line: return"
