"""Records: what a run gave, read at steps, and as CSV files that give the same back."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollin.errors import RollinError
from rollin.runs import records as records_module
from rollin.runs.records import (
    CURVES,
    RUNS,
    SWITCHES,
    Costs,
    Curve,
    MetricAt,
    Record,
    Switch,
    condition_text,
    labels_from,
    read_records,
    write_records,
)


def made(**changes) -> Record:
    """A run of 100 steps that reached context 2 of 4."""
    curve = Curve(
        np.array([40.0, 80.0, 100.0]),
        {
            "kappa": np.array([0.25, 0.5, 0.5]),
            "return": np.array([1.0, math.nan, 3.0]),
            "collects": np.array([math.nan, math.nan, 7.0]),
        },
    )
    known = {
        "task": "four-rooms", "engine": "tabular", "seed": 3, "steps": 100, "step": 100,
        "finished": True, "costs": Costs(1.5, 20, 3, 4), "curve": curve, "spec_hash": "5e",
        "version": "0.1.0", "processor": "CPU",
        "key": "7a", "fingerprint": "f", "k": 2, "K": 4, "family": "mine", "scale": 0.5,
        "labels": {"method": "rollin", "delta": "1/24"},
        "switches": (Switch(0, 0, {}), Switch(1, 30, {"a": 0.5}), Switch(2, 60, {"b": 0.25})),
    }  # fmt: skip
    return Record(**{**known, **changes})


def write(directory: Path, records: list[Record]) -> Path:
    directory.mkdir(exist_ok=True)
    for name, data in write_records(records).items():
        (directory / name).write_bytes(data)
    return directory


# ------------------------------------------------------------------ readings


def test_a_record_is_read_at_steps_and_at_its_end() -> None:
    one = made()
    assert one.value(MetricAt("kappa")) == 0.5
    assert one.value(MetricAt("kappa", 10)) == 0
    assert one.value(MetricAt("kappa", 35)) == 0.25  # the switches tell it between rows
    assert one.value(MetricAt("return")) == 3.0
    assert one.value(MetricAt("return", 100)) == 3.0
    assert one.value(MetricAt("return", 40)) == 1.0
    assert one.value(MetricAt("nothing")) is None
    assert one.value(MetricAt("return", 101)) is None  # it has not come so far


def test_a_trace_has_the_steps_at_which_a_quantity_is_told() -> None:
    trace = made().trace("return")
    assert trace is not None
    assert trace.steps.tolist() == [40, 100]
    assert trace.values.tolist() == [1, 3]
    kappa = made().trace("kappa")
    assert kappa is not None
    assert kappa.steps.tolist() == [0, 30, 60, 100]
    assert made().trace("nothing") is None


def test_the_old_name_of_a_reading_warns() -> None:
    with pytest.warns(DeprecationWarning, match=r"Reading is now called MetricAt\."):
        assert records_module.Reading is MetricAt


# ------------------------------------------------------------------ CSV files

QUANTITIES = ("return", "x_velocity")
names = st.text("abcdefghijklmnop_0123456789./-+ ü", min_size=1, max_size=8)
numbers = st.floats(-1e9, 1e9).map(lambda x: float(f"{x:.6g}"))
shares = st.floats(0, 1).map(lambda x: round(x, 4))
seen = st.fixed_dictionaries({"kappa": shares}, optional={"mean": shares})


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any record whose numbers have as many digits as a CSV keeps of curves."""
    steps = sorted(draw(st.sets(st.integers(1, 10**7), min_size=1, max_size=6)))
    quantities: dict[str, np.ndarray] = {}
    for name in draw(st.sets(st.sampled_from(QUANTITIES))):
        column = np.array([draw(numbers | st.just(math.nan)) for _ in steps])
        if not np.isnan(column).all():
            quantities[name] = column
    walks, k = draw(st.booleans()), draw(st.integers(0, 4))
    entered = sorted(draw(st.lists(st.integers(0, steps[-1]), min_size=k, max_size=k)))
    switches = tuple(Switch(i, step, draw(seen)) for i, step in enumerate([0, *entered]))
    if walks:  # κ is what the switches tell
        quantities["kappa"] = np.array(
            [[s for s in switches if s.step <= step][-1].numbers["kappa"] for step in steps]
        )
    whole = st.integers(0, 10**12)
    seconds = float(f"{draw(st.floats(0, 1e9)):.10g}")
    return Record(
        task=draw(names), engine=draw(st.sampled_from(["tabular", "sac", "mine"])),
        seed=draw(st.integers(0, 2**32)), steps=steps[-1] + draw(st.integers(0, 9)), step=steps[-1],
        finished=draw(st.booleans()),
        costs=Costs(seconds, draw(whole), draw(whole), draw(whole)),
        curve=Curve(np.array(steps, float), quantities),
        spec_hash=draw(names), key=draw(names), fingerprint=draw(names),
        k=k if walks else None, K=k + 1 if walks else None, switches=switches if walks else (),
        completed=draw(st.none() | st.integers(0, steps[-1])),
        labels=draw(st.dictionaries(names, names, max_size=3)), family=draw(names),
        scale=float(f"{draw(st.floats(1e-6, 10)):.12g}"),
        version=draw(names), processor=draw(names),
    )  # fmt: skip


def plain(record: Record) -> dict:
    """All that a CSV keeps of a record, to be compared."""
    told = {name: value.tolist() for name, value in record.curve.quantities.items()}
    values = vars(record) | {"curve": (record.curve.steps.tolist(), repr(told)), "options": {}}
    return {name: value for name, value in values.items() if name != "path"}


@given(st.lists(records(), min_size=1, max_size=4, unique_by=lambda r: (r.task, r.seed)))
def test_records_come_back_from_csv_files_as_they_were(tmp_path_factory, some) -> None:
    there = write(tmp_path_factory.mktemp("records"), some)
    again = read_records(there)
    for one, other in zip(some, again, strict=True):
        before, after = plain(one), plain(other)
        order = {name: one.curve.quantities[name].tolist() for name in other.curve.quantities}
        assert before.pop("curve")[0] == after["curve"][0]
        assert repr(order) == after.pop("curve")[1]
        assert before == after
    assert write_records(again) == write_records(some)


def test_the_end_of_a_run_keeps_more_digits_than_its_curve(tmp_path) -> None:
    values = np.array([0.123456789, 0.5, 0.123456789])
    curve = replace(made().curve, quantities={"return": values})
    (again,) = read_records(write(tmp_path, [made(curve=curve)]))
    assert again.curve.quantities["return"].tolist() == [0.123457, 0.5, 0.123456789]


def test_the_files_are_as_the_documentation_says(tmp_path) -> None:
    write(tmp_path, [made()])
    heads = {
        name: (tmp_path / name).read_text().splitlines()[0] for name in (RUNS, CURVES, SWITCHES)
    }
    assert heads[RUNS] == (
        "family,task,condition,seed,scale,engine,steps,step,finished,seconds,env_steps,"
        "rollin_steps,updates,k,K,completed,kappa,return,collects,spec_hash,key,fingerprint,"
        "version,processor"
    )
    assert heads[CURVES] == "family,task,condition,seed,scale,step,kappa,return,collects"
    assert heads[SWITCHES] == "family,task,condition,seed,scale,step,k,a,b"


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        (RUNS, "spec_hash", "hash", "runs.csv has no column spec_hash: it is from another version"),
        (CURVES, "condition", "cell", "curves.csv has no column condition"),
        (SWITCHES, ",k,", ",context,", "switches.csv has no column k"),
        (RUNS, ",3,0.5,", ",three,0.5,", "runs.csv, line 2 cannot be read"),
        (RUNS, ",3,0.5,", ",-3,0.5,", "runs.csv, line 2 cannot be read: seed -3"),
        (RUNS, ",2,4,", ",5,4,", "k must lie between 0 and K"),
        (RUNS, ",2,4,", ",2,,", "it must have both k and K, or neither"),
        (RUNS, ",1.5,", ",-1.5,", "its costs must be numbers of at least 0"),
        (RUNS, ",100,100,", ",100,1e99,", "runs.csv, line 2 cannot be read"),
        (RUNS, '"method=rollin,delta=1/24"', "method", "is not of the form name=value"),
        (RUNS, ",0.5,3,7,", ",1.5,3,7,", "κ must lie between 0 and 1"),
        (RUNS, ",CPU\n", "\n", "runs.csv, line 2 cannot be read: it is not as long as line 1"),
        (
            RUNS,
            ",CPU\n",
            ",CPU,g\n",
            "runs.csv, line 2 cannot be read: it is not as long as line 1",
        ),
        (CURVES, ",80,", ",20,", "the steps of its curve must rise from 0"),
        (SWITCHES, ",60,2,", ",60,3,", "its switches must lead to k = 2 of"),
        (SWITCHES, ",60,2,", ",600,2,", "it has a switch after its last step"),
    ],
)
def test_a_damaged_file_is_named_with_the_line(tmp_path, name, old, new, sentence) -> None:
    path = write(tmp_path, [made()]) / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(RollinError) as refused:
        read_records(tmp_path)
    assert sentence in str(refused.value)
    assert str(path.parent) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_run_that_stands_there_twice_is_refused(tmp_path) -> None:
    path = write(tmp_path, [made()]) / RUNS
    head, row = path.read_text().splitlines()
    path.write_text("\n".join([head, row, row]) + "\n")
    with pytest.raises(
        RollinError, match=r"line 3: mine, four-rooms, .* appears twice: keep one of"
    ):
        read_records(tmp_path)


@pytest.mark.parametrize("name", [RUNS, CURVES, SWITCHES])
def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path, name) -> None:
    path = write(tmp_path, [made()]) / name
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RollinError, match=f"{name} cannot be read"):
        read_records(tmp_path)
    path.unlink()
    with pytest.raises(RollinError, match=f"{name} could not be read: no such file"):
        read_records(tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step": -1}, "cannot have -1 of 100 steps"),
        ({"steps": 0}, "cannot have 100 of 0 steps"),
        ({"scale": math.nan}, "scale nan is not valid"),
        ({"k": None}, "both k and K"),
        ({"K": 0, "k": 0}, "K ≥ 1"),
        ({"switches": (Switch(0, 0, {}), Switch(99, 5, {}))}, "its switches must lead to"),
    ],
)
def test_a_record_that_cannot_be_is_not_made(changes, words) -> None:
    with pytest.raises(ValueError, match=words):
        made(**changes)


def test_labels_and_their_text_are_the_same() -> None:
    labels = {"method": "rollin", "beta": "0.1"}
    assert condition_text(labels) == "method=rollin,beta=0.1"
    assert labels_from("method=rollin,beta=0.1") == labels
    assert labels_from("") == {}
