"""Learning curves of runs, and the published values that belong to them."""

from typing import Any

import numpy as np
import pytest

from rollin.cli import main
from rollin.cli.train import parse_options
from rollin.envs.registry import TASKS
from rollin.paper import antmaze, velocity
from rollin.paper.robots import published_for
from rollin.report.learning import learning_figure, looks_of
from rollin.report.learning_curve import LearningCurve
from rollin.runs.directory import RunDirectory
from rollin.runs.execute import run
from rollin.runs.files import read_json
from rollin.runs.spec import RunSpec, rollin_config
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
        (("--beta", "0.2", "--threads", "2", "--learner", "jax"), "0.51 ± 0.05"),
        (("--beta", "0.9", "--delta", "1/18", "--geometric"), "0.72 ± 0.02"),
        (("--beta", "0.75", "--go-explore", "0.5", "--delta", "1/12"), "0.38 ± 0.01"),
    ],
)
def test_conditions_of_the_antmaze_are_combinations_of_options(arguments, kappa):
    assert published_of("antmaze-umaze", *arguments) == {3_000_000: kappa}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--beta", "0.3"),
        ("--delta", "0.08"),
        ("--go-explore", "0.2"),
        ("--relabel", "--go-explore", "0.1"),
        ("--gamma", "0.95"),
        ("--threshold", "100"),
        ("--method", "fresh"),
        ("--method", "scratch"),
        ("--env-options", "horizon=700"),
        ("--capacity", "5000"),
        ("--last", "1000"),
        ("--updates", "short"),
        ("--geometric", "--p", "0.001"),
    ],
)
def test_other_conditions_of_the_antmaze_have_no_published_value(arguments):
    assert published_of("antmaze-umaze", *arguments) == {}


def test_conditions_of_the_velocity_tasks_have_their_published_values():
    assert published_of("hopper", "--delta", "0.1", "--method", "baseline") == {
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
    assert len(velocity.FIGURES) == 4 * 6 * 2  # robots, five β and scratch, two steps
    assert len(antmaze.PROGRESS) == (36 + 36 + 108)  # vanilla, relabelling, Go-Explore


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


def curve(
    task: str = "hopper", every: int = 10_000, end: int = 500_000, **options: Any
) -> LearningCurve:
    """A made-up run whose return is its step / 1000 and whose κ is its step / a million."""
    steps = np.arange(every, end + 1, every, dtype=float)
    values = {"kappa": steps / 1e6, "return": steps / 1000 + options.get("seed", 0)}
    return LearningCurve(
        RunSpec(task, rollin_config(**{**TASKS[task].defaults, **options})), steps, values
    )


def panels(curves: list[LearningCurve]) -> tuple[Any, list[Any]]:
    """The figure and its axes."""
    figure = learning_figure(curves)
    return figure, list(figure.axes)


def texts(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_lines_are_means_over_seeds_and_diamonds_are_published():
    curves = [curve(seed=seed) for seed in (0, 2)] + [curve(method="baseline", end=300_000)]
    figure, (kappa, total) = panels(curves)
    assert [ax.get_title() for ax in figure.axes] == ["hopper: κ", "hopper: return"]
    assert texts(figure) == ["ROLLIN β = 0.1 (2 seeds)", "baseline (1 seed)", "published"]
    rollin, diamond, baseline = total.lines
    assert np.array_equal(rollin.get_xdata(), np.arange(10_000, 500_001, 10_000))
    assert np.allclose(rollin.get_ydata(), np.arange(10, 501, 10) + 1)
    assert (diamond.get_xdata(), diamond.get_ydata()) == ([500_000], [3148.6])
    assert baseline.get_xdata()[-1] == 300_000  # too early for the published value
    (band,) = [c for c in total.collections if "Poly" in type(c).__name__][:1]
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(501 + 1)  # seeds 0 and 2: the standard error is 1
    assert [line.get_ydata()[0] for line in kappa.lines if line.get_marker() == "D"] == [0.82]
    assert rollin.get_color() == diamond.get_color() != baseline.get_color()


def test_scratch_has_no_progress_of_its_own():
    _, (kappa, total) = panels([curve(method="scratch")])
    assert not kappa.get_visible()
    assert [line.get_ydata()[0] for line in total.lines][1] == 2943.6


def test_other_options_are_other_lines():
    maze = [
        curve("antmaze-umaze"),
        curve("antmaze-umaze", seed=1, threads=2, delta=1 / 24),
        curve("antmaze-umaze", delta=1 / 12),
        curve("antmaze-umaze", delta=1 / 12, gamma=0.5),
        curve("antmaze-umaze", sampling="geometric"),
    ]
    figure, axes = panels(maze)
    assert texts(figure) == [
        "ROLLIN β = 0.1 (2 seeds)",
        "ROLLIN β = 0.1, Δ = 1/12 (1 seed)",
        "ROLLIN β = 0.1, Δ = 1/12, gamma 0.5 (1 seed)",
        "ROLLIN β = 0.1, geometric (1 seed)",
    ]
    assert len({line.get_linestyle() for line in axes[0].lines}) == 4
    assert axes[0].lines[0].get_linestyle() == "-"
    both = learning_figure([curve(), curve(seed=1), maze[0], maze[4], curve(beta=0.2)])
    assert texts(both)[0] == "ROLLIN β = 0.1 (1 – 2 seeds)"


def test_a_seed_counts_once():
    short, long = curve(end=200_000, steps=200_000), curve(steps=1_000_000)
    figure, (_, total) = panels([short, long, curve(end=100_000, threads=2)])
    assert texts(figure)[0] == "ROLLIN β = 0.1 (1 seed)"
    assert total.lines[0].get_xdata()[-1] == 500_000


def test_no_two_lines_look_alike():
    methods = [{"beta": beta} for beta in (0.1, 0.15, 0.4, 0.5, 0.6, 0.75, 0.9)]
    methods += [{"method": "fresh", "beta": beta} for beta in (0.1, 0.4)]
    methods += [{"method": method} for method in ("baseline", "scratch")]
    settings = [
        {},
        {"relabel": True},
        {"sampling": "geometric"},
        {"gamma": 0.9},
        {"hidden": (8, 8)},
    ]
    curves = [curve("antmaze-umaze", **m, **s) for m in methods for s in settings]
    looks = {name: str(look) for name, look in looks_of(curves).items()}
    assert len(looks) == len(curves) == len(set(looks.values()))
    assert "baseline, hidden 8 8" in looks


def test_seeds_that_were_logged_at_other_steps_are_held():
    slow = curve(every=7000, end=49_000, seed=1)
    (line,) = learning_figure([curve(end=100_000), slow]).axes[1].lines
    steps, means = (np.asarray(data) for data in line.get_data())
    assert (steps[0], steps[-1]) == (10_000, 49_000)
    assert means[list(steps).index(20_000)] == pytest.approx((20 + 14 + 1) / 2)
    nothing = learning_figure([curve(end=10_000), curve(every=300_000, seed=1)])
    assert not nothing.axes[1].lines


def test_a_run_gives_its_curve_and_counts_once(tmp_path, capsys):
    run(line(450, method="baseline"), tmp_path / "a")
    run(line(450, method="baseline"), tmp_path / "copy")
    places = [str(tmp_path), str(tmp_path / "a")]
    assert main(["plot", *places, "--out", str(tmp_path / "c.svg")]) == 0
    told = capsys.readouterr().out
    assert "Curves of 1 run:" in told
    assert "the same run as another" in told
    found = LearningCurve.read(RunDirectory(tmp_path / "a"))
    assert list(found.values) == ["kappa", "place", "push", "return"]
    result = read_json(tmp_path / "a" / "result.json")
    for name in ("return", "place", "push"):
        assert found.values[name][-1] == pytest.approx(result[f"{name}_mean_last"])
