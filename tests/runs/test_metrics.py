"""A metric is one declaration: metrics.csv, result.json, records and pages then have it."""

import pytest

from rollin.cli import main
from rollin.report.labels import quantity_text
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import _plain_number
from rollin.runs.engines import engine, engines, metric, read_record, until_solved
from rollin.runs.files import read_json
from rollin.runs.metrics import Metric, read_metrics
from rollin.runs.records import MetricAt
from tests.undrawn import undrawn

EXTRA = Metric("double", lambda run: 2 * run.step, label="twice the steps", meaning="a test's",
               result=True)  # fmt: skip
HIDDEN = Metric("triple", lambda run: 3 * run.step)


@pytest.fixture
def declared(monkeypatch) -> None:
    """The one declaration, in the engine's file."""
    metrics = (*until_solved.METRICS, EXTRA, HIDDEN)
    monkeypatch.setattr(until_solved, "METRICS", metrics)
    monkeypatch.setattr(until_solved.UntilSolvedEngine, "metrics", metrics)


@pytest.mark.usefixtures("declared")
@undrawn()
def test_a_metric_that_is_declared_once_is_everywhere(tmp_path) -> None:
    out = tmp_path / "a"
    arguments = ["corridor", "--n", "4", "--steps", "30", "--log-every", "10", "--out", str(out)]
    assert main(["train", *arguments]) == 0
    columns = read_metrics(out / "metrics.csv")
    assert columns["double"] == [2 * step for step in columns["step"]]
    assert columns["triple"][-1] == 3 * columns["step"][-1]
    result = read_json(out / "result.json")
    assert (result["double"], result["triple"]) == (2 * result["step"], 3 * result["step"])
    assert read_json(out / "config.json")["results"]["double"] == "twice the steps"
    record = read_record(RunDirectory(out))
    assert record.value(MetricAt("double")) == 2 * result["step"]
    assert "triple" not in record.curve.quantities
    assert quantity_text("double", "until-solved") == "twice the steps"
    assert main(["report", str(out)]) == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "twice the steps" in page
    assert "a test&#39;s" in page


def test_every_metric_of_an_engine_has_its_own_name() -> None:
    for one in engines():
        names = [declared.name for declared in one.metrics]
        assert len(set(names)) == len(names) > 0


def test_what_no_engine_declares_is_a_result_by_its_name() -> None:
    assert metric("my_measure") == Metric("my_measure", metric("my_measure").value, result=True)
    assert metric("my_measure").text == "my measure"
    assert metric("return", "sac") in engine("sac").metrics
    assert metric("return", "rollin") in engine("rollin").metrics


def test_a_row_of_a_checkpoint_holds_numbers() -> None:
    assert [_plain_number(value) for value in (1.5, 2, None, "inf")] == [1.5, 2, None, "inf"]
    with pytest.raises(ValueError, match="'text' is not a number"):
        _plain_number("text")
