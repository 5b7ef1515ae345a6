"""The catalogue of the paper: complete, consistent, and chosen from by labels."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollin.envs.registry import TASKS, make_contextual
from rollin.errors import RollinError
from rollin.paper.tables import all_cells, find_table, tables
from rollin.runs.files import read_json
from rollin.runs.spec import RollinConfig, RunSpec, TabularConfig, rollin_config
from rollin.sweeps import rates
from rollin.sweeps.cost import core_seconds, sample_specs
from rollin.sweeps.rates import keep_rates, kept_rates, measure
from rollin.sweeps.select import choose
from rollin.sweeps.study import DELTAS, Condition, Reading, scaled

CELLS = all_cells()


def test_every_table_of_the_paper_is_there_with_its_cells() -> None:
    found = {name: (len(t.cells), t.seeds, t.steps) for name, t in tables().items() if t.cells}
    million = 1_000_000
    rooms, maze, velocity = (10, 50_000), (8, 3 * million), (8, million)
    assert found == {
        "four-rooms": (28, *rooms),
        "four-rooms-summary": (8, *rooms),
        "four-rooms-progress": (28, *rooms),
        "four-rooms-return": (28, *rooms),
        "four-rooms-easy-curves": (14, *rooms),
        "four-rooms-hard-curves": (14, *rooms),
        "antmaze-summary": (24, *maze),
        "antmaze-vanilla": (36, *maze),
        "antmaze-relabel": (36, *maze),
        "antmaze-go-explore": (108, *maze),
        "antmaze-vanilla-curves": (36, *maze),
        "antmaze-relabel-curves": (36, *maze),
        "antmaze-go-explore-0.1-curves": (36, *maze),
        "antmaze-go-explore-0.25-curves": (36, *maze),
        "antmaze-go-explore-0.5-curves": (36, *maze),
        "velocity-summary": (12, *velocity),
        "velocity-progress": (20, *velocity),
        "velocity-speed": (20, *velocity),
        "velocity-return": (20, *velocity),
        "velocity-curves": (12, *velocity),
    }
    pictures = [t.name for t in tables().values() if t.kind == "picture"]
    assert pictures == ["reward-maps", "goal-path"]
    printed = Counter(t.printed for t in tables().values())
    numbers = {f"Table {n}" for n in (1, 2, 3, *range(6, 14))} | {
        f"Figure {n}" for n in range(2, 12)
    }
    assert numbers | {"Tables 6, 7"} == set(printed)


def test_cells_are_told_apart_by_name_labels_and_run() -> None:
    assert len(CELLS) == 28 + 180 + 24
    for key in (lambda c: c.name, lambda c: tuple(c.labels.items()), lambda c: c.spec(0).hash):
        assert len({key(cell) for cell in CELLS}) == len(CELLS)
    assert not any("/" in cell.name for cell in CELLS)  # a name is a directory, too
    for table in tables().values():
        names = {cell.name for cell in table.cells}
        assert names <= {cell.name for cell in CELLS}
        layout = {tuple(c.labels[n] for n in (*table.rows, *table.columns)) for c in table.cells}
        assert table.kind != "table" or len(layout) == len(table.cells)


def test_every_cell_of_a_table_has_a_published_value() -> None:
    """But for the progress of learning from scratch, which the paper does not have."""
    for table in tables().values():
        for cell in table.cells:
            missing = [r for r in table.readings if r not in cell.published]
            scratch = cell.labels["method"] == "scratch"
            assert missing == [r for r in table.readings if scratch and r.figure == "kappa"]


@pytest.mark.parametrize(
    ("name", "labels", "figure", "step", "text"),
    [  # a few from each table, read off the paper once more
        ("four-rooms-summary", "reward=hard,alpha=0.001,beta=0.75", "kappa", 50_000,
         "1.000 ± 0.000"),
        ("four-rooms", "reward=easy,alpha=0.01,beta=0.3", "final_return", 50_000, "1.040 ± 0.140"),
        ("antmaze-summary", "setting=relabel,sampling=geometric,delta=1/12,beta=0.1", "kappa",
         3_000_000, "0.73 ± 0.00"),
        ("antmaze-go-explore", "noise=0.5,sampling=uniform,delta=1/24,beta=0.75", "kappa",
         3_000_000, "0.65 ± 0.06"),
        ("velocity-summary", "env=hopper,method=scratch", "return_mean_last", 500_000,
         "2943.6 ± 80.3"),
        ("velocity-speed", "env=ant,beta=0.5", "x_velocity_mean_last", 1_000_000, "3.99 ± 0.48"),
    ],
)  # fmt: skip
def test_published_values(name, labels, figure, step, text) -> None:
    (cell,) = choose(find_table(name).cells, labels)
    assert str(cell.published[Reading(figure, step)]) == text


def test_a_cells_run_has_the_tasks_own_options_but_for_its_labels() -> None:
    (cell,) = choose(CELLS, "setting=go-explore,noise=0.25,sampling=geometric,delta=1/18,beta=0.5")
    defaults = TASKS["antmaze-umaze"].defaults
    expected = rollin_config(
        **defaults, beta=0.5, go_explore=0.25, sampling="geometric", delta=1 / 18, seed=3
    )
    assert cell.spec(3) == RunSpec("antmaze-umaze", expected)


def test_a_baseline_shares_all_labels_but_method_and_beta() -> None:
    table = find_table("antmaze-vanilla")
    (cell,) = choose(table.cells, "sampling=uniform,delta=1/12,beta=0.9")
    base = table.baseline(cell)
    assert base is not None
    assert base.name == cell.name.replace("method=rollin,beta=0.9", "method=baseline,beta=0")
    assert table.only([cell]).baseline(cell) is None


# ------------------------------------------------------------------ shortened runs


def test_a_shortened_run_keeps_all_but_its_lengths() -> None:
    (cell,) = choose(CELLS, "env=hopper,beta=0.1")
    assert isinstance(cell.config, RollinConfig)
    config = cell.spec(0, 0.1).config
    assert config == replace(
        cell.config, steps=100_000, last=5000, algorithm=replace(cell.config.algorithm, warmup=1000)
    )
    tiny = cell.spec(0, 0.001).config
    assert (tiny.steps, tiny.last, tiny.log_every, tiny.algorithm.warmup) == (1000, 50, 100, 256)
    (rooms,) = choose(CELLS, "reward=hard,alpha=0.001,beta=0")
    assert rooms.spec(1, 0.04).config == replace(rooms.config, steps=2000, seed=1)


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf])
def test_a_scale_must_be_positive(scale) -> None:
    with pytest.raises(RollinError, match="--scale must be a number greater than 0"):
        scaled(CELLS[0].config, scale)


def test_a_scale_that_leaves_nothing_to_train_on_is_refused() -> None:
    (cell,) = choose(CELLS, "env=hopper,beta=0.1")
    with pytest.raises(RollinError, match=r"Give a --scale of at least 0\.00028"):
        cell.spec(0, 0.0001)


@given(st.sampled_from(CELLS), st.integers(0, 99), st.floats(1e-3, 1.0))
def test_a_run_is_found_again_by_its_cell_alone(cell: Condition, seed: int, scale: float) -> None:
    spec = cell.spec(seed, scale)
    found = {other.name: other.scale_of(spec) for other in CELLS if other.task == cell.task}
    matches = {name: s for name, s in found.items() if s is not None}
    assert matches.keys() == {cell.name}
    assert matches[cell.name] == pytest.approx(scale, rel=0.02)


def test_what_does_not_make_another_condition_is_overlooked() -> None:
    (cell,) = choose(CELLS, "env=hopper,method=baseline")
    assert isinstance(cell.config, RollinConfig)
    own = cell.config
    other = replace(own, steps=500_000, eval_episodes=1, delta=0.1, sac=replace(own.sac, threads=2))
    assert cell.scale_of(RunSpec("hopper", other)) == 1  # half of the paper's run
    plain = replace(own, algorithm=replace(own.algorithm, method="rollin", beta=0.0))
    assert cell.scale_of(RunSpec("hopper", plain)) == 1
    assert cell.scale_of(RunSpec("hopper", replace(own, delta=0.2))) is None
    assert cell.scale_of(RunSpec("walker", own)) is None
    assert cell.scale_of(RunSpec("hopper", TabularConfig())) is None


@pytest.mark.parametrize("task", DELTAS)
def test_a_tasks_own_step_is_the_environments(task) -> None:
    env = make_contextual(task)
    assert env.curriculum is not None
    assert env.curriculum.delta == pytest.approx(DELTAS[task])
    env.close()


# ------------------------------------------------------------------ choosing


def test_labels_choose_cells_and_a_label_given_twice_may_be_either() -> None:
    cells = find_table("velocity-progress").cells
    assert len(choose(cells, "env=hopper")) == 5
    assert len(choose(cells, "env=hopper,beta=0,beta=0.10")) == 2
    assert [c.labels["env"] for c in choose(cells, " env = ant , method = baseline ")] == ["ant"]
    maze = find_table("antmaze-vanilla").cells
    assert len(choose(maze, "delta=1/12,sampling=geometric")) == 6
    assert len(choose(maze, "delta=2/24")) == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("evn=hopper", r"no label 'evn' in this table, only env, method, beta. Did you mean env\?"),
        (
            "env=hoper",
            r"env is walker, hopper, humanoid, ant in this table, got 'hoper'. Did you m",
        ),
        (
            "hopper",
            r"--cells must be name=value, .*got 'hopper' in 'hopper': the names here are env",
        ),
        ("env=", r"must be name=value"),
        ("", r"must be name=value"),
        ("method=scratch,beta=0.1", r"leaves none of the 12 cells"),
        ("beta=1/0", r"beta is 0, 0.1 in this table, got '1/0'"),
    ],
)
def test_a_bad_filter_is_told_with_the_nearest(text, message) -> None:
    with pytest.raises(RollinError, match=message):
        choose(find_table("velocity-summary").cells, text)


def test_an_unknown_table_is_told_with_the_nearest() -> None:
    with pytest.raises(RollinError, match=r"shows all 22\. Did you mean velocity-summary\?"):
        find_table("velocity-sumary")


# ------------------------------------------------------------------ cost


def test_the_cost_of_a_table_by_hand() -> None:
    speed = {"four-rooms": 1000.0}
    assert core_seconds(find_table("four-rooms").cells, 10, speed) == 28 * 10 * 50
    assert core_seconds(find_table("four-rooms").cells, 2, speed, 0.1) == 28 * 2 * 5


def test_speed_is_measured_with_real_runs() -> None:
    samples = sample_specs()
    assert set(samples) == {cell.task for cell in CELLS}
    for task in ("four-rooms", "hopper"):
        assert 0 < measure(samples[task], 0.1) < math.inf


def test_rates_are_kept_for_each_machine_and_number_of_runs(rates_cache, monkeypatch) -> None:
    assert kept_rates(["hopper"], 2) == {}
    keep_rates({"hopper": 7.0, "ant": 5.0}, 2)
    keep_rates({"ant": 6.0}, 2)
    keep_rates({"ant": 9.0}, 3)
    assert kept_rates(["ant", "hopper", "walker"], 2) == {"ant": 6.0, "hopper": 7.0}
    assert kept_rates(["ant", "hopper"], 3) == {"ant": 9.0}
    monkeypatch.setattr(rates, "processor", lambda: "another")
    assert kept_rates(["ant"], 2) == {}


def test_what_is_damaged_in_the_cache_counts_as_not_kept(rates_cache) -> None:
    keep_rates({"ant": 6.0}, 3)
    keep_rates({"ant": 6.0}, 2)
    (other, key) = read_json(rates_cache)
    for damaged in ("{", "\xff", "[]", "{}", json.dumps({key: []}),
                    json.dumps({key: {"hopper": "fast"}}), json.dumps({key: {"hopper": 0.0}}),
                    json.dumps({key: {"hopper": math.nan}}),
                    json.dumps({key: {"hopper": math.inf}, other: {"ant": 8.0}})):  # fmt: skip
        rates_cache.write_text(damaged, encoding="latin-1")
        assert kept_rates(["hopper"], 2) == {}
        keep_rates({"hopper": 7.0}, 2)
        assert kept_rates(["hopper"], 2) == {"hopper": 7.0}
    assert kept_rates(["ant"], 3) == {"ant": 8.0}  # what was whole stays


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert kept_rates(["hopper"], 2) == {}
    with pytest.raises(RollinError, match=r"file.rollin could not be made: not a directory\.$"):
        keep_rates({"hopper": 7.0}, 2)
    monkeypatch.delenv("XDG_CACHE_HOME")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert kept_rates(["hopper"], 2) == {}
    with pytest.raises(RollinError, match="There is no cache directory: Could not determine"):
        keep_rates({"hopper": 7.0}, 2)
