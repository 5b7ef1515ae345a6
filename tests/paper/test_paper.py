"""The catalogue of the paper: complete, consistent, and chosen from by labels."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollin
from rollin.analysis.collect import scale_of
from rollin.envs.registry import make_contextual
from rollin.errors import RollinError
from rollin.paper.tables import EXTRAS, all_conditions, find_table, tables
from rollin.runs.engines import condition_key
from rollin.runs.engines.rollin import ENGINE
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.files import read_json
from rollin.runs.records import Costs, Curve, MetricAt, Record
from rollin.runs.spec import RunSpec, configured
from rollin.sweeps import machine
from rollin.sweeps.condition import Condition, select
from rollin.sweeps.machine import cache_rates, cached_rates, core_seconds, measure, sample_specs
from rollin.tasks import TASKS

CONDITIONS = all_conditions()
DELTAS = {name: task.delta for name, task in TASKS.items() if task.delta is not None}


def record_of(spec: RunSpec, **more) -> Record:
    """What is known of a run of a spec, before it has done a step."""
    config, nothing = spec.config, Curve(np.zeros(1), {})
    place = {"task": spec.task, "engine": config.engine, "seed": config.seed}
    known = {"spec_hash": spec.hash, "key": condition_key(spec), "steps": config.steps}
    costs = Costs(0.0, 0, 0, 0)
    return Record(**place, **known, step=0, finished=False, costs=costs, curve=nothing, **more)


def test_every_table_of_the_paper_is_there_with_its_cells() -> None:
    found = {
        name: (len(t.conditions), t.seeds, t.steps) for name, t in tables().items() if t.conditions
    }
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


def test_conditions_are_told_apart_by_name_labels_directory_key_and_run() -> None:
    assert len(CONDITIONS) == 28 + 180 + 24
    for key in (
        lambda c: c.name,
        lambda c: tuple(c.labels.items()),
        lambda c: c.spec(0).hash,
        lambda c: c.key(),
        lambda c: c.directory,
    ):
        assert len({key(condition) for condition in CONDITIONS}) == len(CONDITIONS)
    assert not any("/" in condition.directory for condition in CONDITIONS)
    for table in tables().values():
        assert set(table.conditions) <= set(CONDITIONS)
        layout = {
            tuple(c.labels[n] for n in (*table.rows, *table.columns)) for c in table.conditions
        }
        assert table.kind != "table" or len(layout) == len(table.conditions)


def test_every_condition_of_a_table_has_a_published_value() -> None:
    """But for the progress of learning from scratch, which the paper does not have."""
    for table in tables().values():
        for condition in table.conditions:
            missing = [r for r in table.readings if r not in condition.published]
            scratch = condition.labels["method"] == "scratch"
            assert missing == [r for r in table.readings if scratch and r.quantity == "kappa"]


@pytest.mark.parametrize(
    ("name", "labels", "quantity", "step", "text"),
    [  # a few from each table, read off the paper once more
        ("four-rooms-summary", "reward=hard,alpha=0.001,beta=0.75", "kappa", 50_000,
         "1.000 ± 0.000"),
        ("four-rooms", "reward=easy,alpha=0.01,beta=0.3", "return", 50_000, "1.040 ± 0.140"),
        ("antmaze-summary", "setting=relabel,sampling=geometric,delta=1/12,beta=0.1", "kappa",
         3_000_000, "0.73 ± 0.00"),
        ("antmaze-go-explore", "noise=0.5,sampling=uniform,delta=1/24,beta=0.75", "kappa",
         3_000_000, "0.65 ± 0.06"),
        ("velocity-summary", "env=hopper,method=scratch", "return", 500_000,
         "2943.6 ± 80.3"),
        ("velocity-speed", "env=ant,beta=0.5", "x_velocity", 1_000_000, "3.99 ± 0.48"),
    ],
)  # fmt: skip
def test_published_values(name, labels, quantity, step, text) -> None:
    (condition,) = select(find_table(name).conditions, labels)
    assert str(condition.published[MetricAt(quantity, step)]) == text


def test_a_conditions_run_has_the_tasks_own_options_but_for_its_labels() -> None:
    chosen = "setting=go-explore,noise=0.25,sampling=geometric,delta=1/18,beta=0.5"
    (condition,) = select(CONDITIONS, chosen)
    given = {"beta": 0.5, "go_explore": 0.25, "sampling": "geometric", "delta": 1 / 18, "seed": 3}
    own = TASKS["antmaze-umaze"].defaults
    expected = configured(RollinConfig(), {**own, **given})
    assert condition.spec(3) == RunSpec("antmaze-umaze", expected)


def test_a_baseline_shares_all_labels_but_method_and_beta() -> None:
    table = find_table("antmaze-vanilla")
    (one,) = select(table.conditions, "sampling=uniform,delta=1/12,beta=0.9")
    base = table.partner(one)
    assert base is not None
    assert base.name == one.name.replace("method=rollin,beta=0.9", "method=baseline,beta=0")
    assert table.is_baseline(base)
    assert not table.is_baseline(one)
    assert table.only([one]).partner(one) is None


def test_learning_from_scratch_is_compared_with_nothing() -> None:
    table = find_table("velocity-summary")
    (one,) = select(table.conditions, "env=ant,method=scratch")
    assert table.partner(one) is None
    assert not table.is_baseline(one)


# ------------------------------------------------------------------ shortened runs


def test_a_shortened_run_keeps_all_but_its_lengths() -> None:
    (condition,) = select(CONDITIONS, "env=hopper,beta=0.1")
    own = condition.config
    assert isinstance(own, RollinConfig)
    shorter = replace(own.algorithm, warmup=1000)
    assert condition.spec(0, 0.1).config == replace(
        own, steps=100_000, last=5000, algorithm=shorter
    )
    tiny = condition.spec(0, 0.001).config
    assert (tiny.steps, tiny.last, tiny.log_every, tiny.algorithm.warmup) == (1000, 50, 100, 256)
    (rooms,) = select(CONDITIONS, "reward=hard,alpha=0.001,beta=0")
    assert rooms.spec(1, 0.04).config == replace(rooms.config, steps=2000, seed=1)


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf])
def test_a_scale_must_be_positive(scale) -> None:
    with pytest.raises(RollinError, match="--scale must be a number greater than 0"):
        CONDITIONS[0].spec(0, scale)
    with pytest.raises(RollinError, match="--scale must be a number greater than 0"):
        ENGINE.scaled(RollinConfig(), scale)


def test_a_scale_that_leaves_nothing_to_train_on_is_refused() -> None:
    (condition,) = select(CONDITIONS, "env=hopper,beta=0.1")
    with pytest.raises(RollinError, match=r"Give a --scale of at least 0\.00028"):
        condition.spec(0, 0.0001)


@given(st.sampled_from(CONDITIONS), st.integers(0, 99), st.floats(1e-3, 1.0), st.booleans())
def test_a_run_is_found_again_by_its_condition_alone(
    condition: Condition, seed: int, scale: float, labelled: bool
) -> None:
    """By its labels and its key, or, of one that nobody labelled, by key and length."""
    if not labelled:  # as rollin reproduce has it: a whole number of steps
        scale = round(scale * condition.steps) / condition.steps
    spec = condition.spec(seed, scale)
    told = {"labels": condition.labels, "scale": scale} if labelled else {}
    record = record_of(spec, **told)
    found = {other.name: scale_of(record, other) for other in CONDITIONS}
    matches = {name: s for name, s in found.items() if s is not None}
    assert matches.keys() == {condition.name}
    assert matches[condition.name] == pytest.approx(scale, rel=0.02)


def test_what_does_not_make_another_condition_is_overlooked() -> None:
    (condition,) = select(CONDITIONS, "env=hopper,method=baseline")
    own = condition.config
    assert isinstance(own, RollinConfig)

    def scale(config, task: str = "hopper") -> float | None:
        return scale_of(record_of(RunSpec(task, config)), condition)

    other = replace(own, steps=500_000, eval_episodes=1, delta=0.1, sac=replace(own.sac, threads=2))
    assert scale(other) == 1  # half of the paper's run
    assert scale(replace(own, algorithm=replace(own.algorithm, method="rollin", beta=0.0))) == 1
    assert scale(replace(own, delta=0.2)) is None
    assert scale(own, "walker") is None
    assert scale(TabularConfig()) is None


def test_labels_are_not_believed_against_the_options() -> None:
    (baseline,) = select(CONDITIONS, "env=hopper,method=baseline")
    (rolled,) = select(CONDITIONS, "env=hopper,beta=0.5")
    record = record_of(rolled.spec(0), labels=baseline.labels, family="velocity")
    assert scale_of(record, baseline) is None
    assert scale_of(record, rolled) == 1


@pytest.mark.parametrize("task", DELTAS)
def test_a_tasks_own_step_is_the_environments(task) -> None:
    env = make_contextual(task)
    assert env.curriculum is not None
    assert env.curriculum.delta == pytest.approx(DELTAS[task])
    env.close()


# ------------------------------------------------------------------ choosing


def test_labels_choose_conditions_and_a_label_given_twice_may_be_either() -> None:
    some = find_table("velocity-progress").conditions
    assert len(select(some, "env=hopper")) == 5
    assert len(select(some, "env=hopper,beta=0,beta=0.10")) == 2
    assert [c.labels["env"] for c in select(some, " env = ant , method = baseline ")] == ["ant"]
    maze = find_table("antmaze-vanilla").conditions
    assert len(select(maze, "delta=1/12,sampling=geometric")) == 6
    assert len(select(maze, "delta=2/24")) == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("evn=hopper", r"no label 'evn' here, only env, method, beta. Did you mean env\?"),
        (
            "env=hoper",
            r"env is walker, hopper, humanoid, ant here, got 'hoper'. Did you m",
        ),
        (
            "hopper",
            r"--only must be name=value, .*got 'hopper' in 'hopper': the names here are env",
        ),
        ("env=", r"must be name=value"),
        ("", r"must be name=value"),
        ("method=scratch,beta=0.1", r"matches none of the 12 conditions"),
        ("beta=1/0", r"beta is 0, 0.1 here, got '1/0'"),
    ],
)
def test_a_bad_filter_is_told_with_the_nearest(text, message) -> None:
    with pytest.raises(RollinError, match=message):
        select(find_table("velocity-summary").conditions, text)


def test_an_unknown_table_is_told_with_the_nearest() -> None:
    with pytest.raises(RollinError, match=r"shows all 22\. Did you mean velocity-summary\?"):
        find_table("velocity-sumary")


# ------------------------------------------------------------------ cost


def test_the_cost_of_a_table_by_hand() -> None:
    speed = {"four-rooms": 1000.0}
    assert core_seconds(find_table("four-rooms").conditions, 10, speed) == 28 * 10 * 50
    assert core_seconds(find_table("four-rooms").conditions, 2, speed, 0.1) == 28 * 2 * 5


def test_speed_is_measured_with_real_runs() -> None:
    samples = sample_specs(CONDITIONS)
    assert set(samples) == {condition.task for condition in CONDITIONS}
    assert samples["hopper"].config.algorithm.method == "rollin"  # the slower of its methods
    for task in ("four-rooms", "hopper"):
        assert 0 < measure(samples[task], 0.1) < math.inf


def test_rates_are_kept_for_each_machine_and_number_of_runs(rates_cache, monkeypatch) -> None:
    assert cached_rates(["hopper"], 2) == {}
    cache_rates({"hopper": 7.0, "ant": 5.0}, 2)
    cache_rates({"ant": 6.0}, 2)
    cache_rates({"ant": 9.0}, 3)
    assert cached_rates(["ant", "hopper", "walker"], 2) == {"ant": 6.0, "hopper": 7.0}
    assert cached_rates(["ant", "hopper"], 3) == {"ant": 9.0}
    monkeypatch.setattr(machine, "processor", lambda: "another")
    assert cached_rates(["ant"], 2) == {}


def test_what_is_damaged_in_the_cache_counts_as_not_kept(rates_cache) -> None:
    cache_rates({"ant": 6.0}, 3)
    cache_rates({"ant": 6.0}, 2)
    (other, key) = read_json(rates_cache)
    for damaged in ("{", "\xff", "[]", "{}", json.dumps({key: []}),
                    json.dumps({key: {"hopper": "fast"}}), json.dumps({key: {"hopper": 0.0}}),
                    json.dumps({key: {"hopper": math.nan}}),
                    json.dumps({key: {"hopper": math.inf}, other: {"ant": 8.0}})):  # fmt: skip
        rates_cache.write_text(damaged, encoding="latin-1")
        assert cached_rates(["hopper"], 2) == {}
        cache_rates({"hopper": 7.0}, 2)
        assert cached_rates(["hopper"], 2) == {"hopper": 7.0}
    assert cached_rates(["ant"], 3) == {"ant": 8.0}  # what was whole stays


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cached_rates(["hopper"], 2) == {}
    with pytest.raises(RollinError, match=r"file.rollin could not be made: not a directory\.$"):
        cache_rates({"hopper": 7.0}, 2)
    monkeypatch.delenv("XDG_CACHE_HOME")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert cached_rates(["hopper"], 2) == {}
    with pytest.raises(RollinError, match="There is no cache directory: Could not determine"):
        cache_rates({"hopper": 7.0}, 2)


# ------------------------------------------------------------------ where a table is made


def test_a_table_of_the_paper_is_named_in_its_package_alone() -> None:
    """But for pictures, which the command line draws, a task's name, and the table of the demo."""
    names = {name for name, table in tables().items() if table.kind != "picture"} | EXTRAS.keys()
    package = Path(rollin.__file__).parent
    found = {
        (path.name, name)
        for path in package.rglob("*.py")
        if path.parent.name != "paper"
        for name in names - {"four-rooms"}
        if f'"{name}"' in path.read_text(encoding="utf-8")
    }
    assert found == {("demo.py", "four-rooms-summary")}


def test_every_study_beyond_the_tables_is_in_the_family_that_it_names() -> None:
    for name, extra in EXTRAS.items():
        assert name in extra.family()
    families = {id(extra.family()): extra.family() for extra in EXTRAS.values()}
    assert {name for family in families.values() for name in family} == EXTRAS.keys()
