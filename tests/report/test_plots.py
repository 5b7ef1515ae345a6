"""Learning curves of runs, and the published values that belong to them."""

from typing import Any

import numpy as np
import pytest

from rollin.analysis.collect import collect, group
from rollin.analysis.results import panels, results_of
from rollin.cli import main
from rollin.cli.train import parse_run
from rollin.errors import RollinError
from rollin.paper import antmaze, velocity
from rollin.paper.tables import tables
from rollin.report.charts import curves_figure, looks_by_name
from rollin.report.style import BETA_COLOURS, FRESH, looks_of
from rollin.runs import driver
from rollin.runs.engines import condition_key, engine_for, engine_of, run
from rollin.runs.files import read_json
from rollin.runs.records import Costs, Curve, MetricAt, Record
from rollin.runs.spec import RunSpec, configured, flat
from tests.runs.test_rollin_runs import line

STUDIES = list(tables().values())


def record_of(spec: RunSpec[Any], every: int = 10_000, end: int = 500_000) -> Record:
    """A made-up run whose return is its step / 1000 and whose κ is its step / a million."""
    config = spec.config
    steps = np.arange(every, end + 1, every, dtype=float)
    values = {"kappa": steps / 1e6, "return": steps / 1000 + config.seed}
    if config.algorithm.method == "scratch":  # which has no walk
        del values["kappa"]
    return Record(
        task=spec.task,
        engine=engine_of(spec).name,
        seed=config.seed,
        steps=config.steps,
        step=int(steps[-1]),
        finished=False,
        costs=Costs(1.0, end, 0, end),
        curve=Curve(steps, values),
        spec_hash=spec.hash,
        key=condition_key(spec),
        options=flat(config),
    )


def published_of(*arguments: str) -> dict[MetricAt, str]:
    """What the paper has of a run, however it was started."""
    spec, _ = parse_run(arguments)
    found = group([record_of(spec)], STUDIES)
    assert bool(found.runs) != bool(found.others)
    by_condition = (condition.published for condition in found.runs)
    return {reading: str(value) for known in by_condition for reading, value in known.items()}


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
    assert published_of("antmaze-umaze", *arguments) == {MetricAt("kappa", 3_000_000): kappa}


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
    half, whole = 500_000, 1_000_000
    baseline = published_of("hopper", "--delta", "0.1", "--method", "baseline")
    assert baseline[MetricAt("kappa", half)] == "0.85 ± 0.02"
    assert baseline[MetricAt("kappa", whole)] == "0.88 ± 0.01"
    assert published_of("ant", "--beta", "0.75")[MetricAt("kappa", half)] == "0.47 ± 0.05"
    assert published_of("humanoid", "--beta", "0.3") == {}
    assert published_of("humanoid", "--geometric") == {}
    assert published_of("walker", "--start", "0.5") == {}
    assert published_of("point-umaze") == {}
    scratch = published_of("hopper", "--method", "scratch", "--log-every", "1")
    assert scratch[MetricAt("return", half)] == "2943.6 ± 80.3"
    assert MetricAt("kappa", half) not in scratch


def test_published_tables_are_whole():
    assert len(velocity.PUBLISHED) == 4 * 6 * 2  # robots, five β and scratch, two steps
    assert len(antmaze.PROGRESS) == (36 + 36 + 108)  # vanilla, relabelling, Go-Explore


def test_plots_of_nothing_and_of_other_runs_are_one_sentence(tmp_path, capsys):
    assert main(["plot", str(tmp_path), "--out", str(tmp_path / "c.png")]) == 2
    assert "No run below" in capsys.readouterr().err
    assert main(["plot", str(tmp_path), "--out", str(tmp_path / "c.jpg")]) == 2
    assert "--out must end in .png or .svg" in capsys.readouterr().err
    run(line(450), tmp_path / "one" / "a")
    run(line(450, seed=1), tmp_path / "one" / "b")
    (tmp_path / "one" / "c").mkdir()
    (tmp_path / "one" / "c" / "config.json").write_text("{}")
    assert main(["plot", str(tmp_path / "one"), "--out", str(tmp_path / "c.png")]) == 0
    told = capsys.readouterr().out
    assert "Skipped" in told
    assert "Curves of 2 runs" in told


def curve(task: str = "hopper", every: int = 10_000, end: int = 500_000, **options: Any) -> Record:
    config = configured(engine_for(task).preset(task), options)
    return record_of(RunSpec(task, config), every, end)


def figure_of(records: list[Record]) -> Any:
    """As `rollin plot` draws them."""
    found = results_of(group(records, STUDIES), STUDIES)
    return curves_figure([panels(results) for results in found])


def shown(figure: Any) -> list[tuple[str, str]]:
    """Setting and quantity of the panels that are seen."""
    return [(ax.get_title(), ax.get_ylabel()) for ax in figure.axes if ax.get_visible()]


def texts(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def means(ax: Any) -> list[Any]:
    """Lines of conditions: those of single seeds are thin, published values are diamonds."""
    return [one for one in ax.lines if one.get_linewidth() > 1 and one.get_marker() != "D"]


def diamonds(ax: Any) -> list[Any]:
    return [one for one in ax.lines if one.get_marker() == "D"]


def test_lines_are_means_over_seeds_and_diamonds_are_published():
    figure = figure_of(
        [curve(seed=seed) for seed in (0, 2)] + [curve(method="baseline", end=300_000)]
    )
    kappa, total = figure.axes
    assert shown(figure) == [("hopper", "κ"), ("hopper", "return")]
    assert texts(figure) == ["baseline (1 seed)", "ROLLIN β = 0.1 (2 seeds)", "published"]
    baseline, rollin = means(total)
    (diamond,) = diamonds(total)
    assert np.array_equal(rollin.get_xdata(), np.arange(10_000, 500_001, 10_000))
    assert np.allclose(rollin.get_ydata(), np.arange(10, 501, 10) + 1)
    assert (diamond.get_xdata(), diamond.get_ydata()) == ([500_000], [3148.6])
    assert baseline.get_xdata()[-1] == 300_000  # too early for the published value
    (band,) = [c for c in total.collections if "Poly" in type(c).__name__][:1]
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(501 + 1)  # seeds 0 and 2: the standard error is 1
    assert [one.get_ydata()[0] for one in diamonds(kappa)] == [0.82]
    assert rollin.get_color() == diamond.get_color() != baseline.get_color()


def test_scratch_has_no_progress_of_its_own():
    figure = figure_of([curve(method="scratch")])
    assert shown(figure) == [("hopper", "return")]
    assert [one.get_ydata()[0] for one in diamonds(figure.axes[0])] == [2943.6]


def test_quantities_of_several_tables_stand_in_one_row():
    """All β of a robot are three tables of the paper: κ, speed and return."""
    figure = figure_of([curve(), curve(beta=0.2), curve(method="baseline"), curve(beta=0.75)])
    assert shown(figure) == [("hopper", "κ"), ("hopper", "return")]
    assert len({ax.get_subplotspec().rowspan.start for ax in figure.axes}) == 1
    names = ["baseline", "ROLLIN β = 0.1", "ROLLIN β = 0.2", "ROLLIN β = 0.75"]
    assert texts(figure) == [*(f"{name} (1 seed)" for name in names), "published"]
    assert all(len(means(ax)) == 4 for ax in figure.axes)


def test_other_options_are_other_panels_or_lines():
    maze = [
        curve("antmaze-umaze"),
        curve("antmaze-umaze", seed=1, threads=2, delta=1 / 24),
        curve("antmaze-umaze", delta=1 / 12),
        curve("antmaze-umaze", delta=1 / 12, gamma=0.5),
        curve("antmaze-umaze", sampling="geometric"),
        curve("antmaze-umaze", delta=1 / 12, gamma=0.5, hidden=(8, 8)),
    ]
    figure = figure_of(maze)
    settings = [
        "vanilla, uniform, Δ = 1/24", "vanilla, uniform, Δ = 1/12", "vanilla, geometric, Δ = 1/24"
    ]  # fmt: skip
    assert [title for title, name in shown(figure) if name == "κ"] == [*settings, "antmaze-umaze"]
    assert texts(figure) == [
        "ROLLIN β = 0.1 (1 – 2 seeds)", "β = 0.1 (1 seed)", "hidden = 8x8 (1 seed)"
    ]  # fmt: skip
    lines = [means(ax) for ax in figure.axes if ax.get_visible()]
    first = {(one.get_color(), one.get_linestyle()) for some in lines[:3] for one in some}
    assert len(first) == 1  # ROLLIN β = 0.1 looks the same everywhere
    both = {(one.get_color(), one.get_linestyle()) for one in lines[-1]}
    assert len(both) == 2
    assert not first & both


def test_a_name_looks_the_same_on_every_panel():
    """Though one of the lines has no κ, and is on one of two panels alone."""
    other: dict[str, Any] = {"gamma": 0.5}
    records = [curve(**other, hidden=(8, 8), method="scratch"), curve(**other, hidden=(8, 8)),
               curve(**other, hidden=(4, 4)), curve(**other, method="fresh")]  # fmt: skip
    kappa, total = figure_of(records).axes
    looks = [{one.get_gid(): (one.get_color(), one.get_linestyle()) for one in means(ax)}
             for ax in (kappa, total)]  # fmt: skip
    assert (len(looks[0]), len(looks[1])) == (3, 4)
    assert looks[0].items() < looks[1].items()
    assert len(set(looks[1].values())) == 4


def test_a_seed_counts_once():
    short, long = curve(end=200_000, steps=200_000), curve(steps=1_000_000)
    figure = figure_of([short, long, curve(end=100_000, threads=2)])
    assert texts(figure)[0] == "ROLLIN β = 0.1 (1 seed)"
    assert means(figure.axes[1])[0].get_xdata()[-1] == 500_000


def test_a_method_has_its_colour_whatever_else_is_drawn():
    names = [{"method": "fresh", "beta": "0.1"}, {"method": "rollin", "beta": "0.1"}]
    for order in (names, names[::-1]):
        looks = {
            labels["method"]: look["color"]
            for labels, look in zip(order, looks_of(order), strict=True)
        }
        assert looks == {"fresh": FRESH, "rollin": BETA_COLOURS[0.1]}


def test_no_two_lines_look_alike():
    methods = [{"method": "rollin", "beta": str(beta)} for beta in (0.1, 0.15, 0.4, 0.5, 0.75)]
    methods += [{"method": "fresh", "beta": str(beta)} for beta in (0.1, 0.4)]
    methods += [{"method": method, "beta": "0"} for method in ("baseline", "scratch")]
    settings = [{}, *({"setting": str(i)} for i in range(9))]
    looks = looks_of([{**m, **s} for m in methods for s in settings])
    assert len({(look["color"], look["linestyle"]) for look in looks}) == 90
    # what has a colour of its own keeps it
    assert looks[0]["color"] != looks[10]["color"]
    assert [look["color"] for look in looks[:8]] == [looks[0]["color"]] * 8


def test_seeds_that_were_logged_at_other_steps_are_held():
    slow = curve(every=7000, end=49_000, seed=1)
    (one,) = means(figure_of([curve(end=100_000), slow]).axes[1])
    steps, values = (np.asarray(data) for data in one.get_data())
    assert (steps[0], steps[-1]) == (10_000, 49_000)
    assert values[list(steps).index(20_000)] == pytest.approx((20 + 14 + 1) / 2)
    nothing = figure_of([curve(end=10_000), curve(every=300_000, seed=1)])
    assert not means(nothing.axes[1])


def test_panels_of_one_legend_share_their_looks():
    found = results_of(group([curve(), curve(beta=0.2)], STUDIES), STUDIES)
    (every,) = [panels(r)["return"] for r in found if r.study.name == "velocity-return"]
    looks = looks_by_name(every)
    assert list(looks) == ["ROLLIN β = 0.1", "ROLLIN β = 0.2"]
    assert looks["ROLLIN β = 0.1"]["color"] == BETA_COLOURS[0.1]


def test_a_run_gives_its_curve_and_counts_once(tmp_path, capsys):
    run(line(450, method="baseline"), tmp_path / "a")
    run(line(450, method="baseline"), tmp_path / "copy")
    places = [str(tmp_path), str(tmp_path / "a")]
    assert main(["plot", *places, "--out", str(tmp_path / "c.svg")]) == 0
    told = capsys.readouterr().out
    assert "Curves of 1 run:" in told
    assert "the same run as" in told
    text = (tmp_path / "c.svg").read_text()
    assert all(f">{name}<" in text for name in ("κ", "place", "push", "return"))
    (record,) = collect([tmp_path / "a"]).records
    assert {"kappa", "place", "push", "return"} <= record.curve.quantities.keys()
    result = read_json(tmp_path / "a" / "result.json")
    for name in ("return", "place", "push"):
        assert record.value(MetricAt(name)) == pytest.approx(result[name])


def test_a_run_that_is_not_finished_is_drawn_as_far_as_it_came(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(driver, "STATUS_SECONDS", 0.0)
    status = tmp_path / "a" / "status.json"
    assert not run(line(900), tmp_path / "a", should_stop=lambda: read_json(status)["step"] >= 400)
    with pytest.raises(RollinError, match="No finished run below"):
        collect([tmp_path])
    assert main(["plot", str(tmp_path), "--out", str(tmp_path / "c.png")]) == 0
    assert "Curves of 1 run:" in capsys.readouterr().out
