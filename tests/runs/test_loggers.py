"""Loggers that a user asks for: W&B and MLflow in their local modes, and how they may fail."""

import json
import os
import re
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rollin.cli import main
from rollin.errors import RollinError
from rollin.runs import driver, loggers
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import condition_key, run, spec_of
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.files import read_json, write_json
from rollin.runs.loggers import FILE
from rollin.runs.metrics import read_metrics
from rollin.runs.spec import RunSpec
from tests.killing import stop_at

NAMES = ("wandb", "mlflow")


@pytest.fixture(autouse=True)
def at_home(monkeypatch) -> None:
    """As where a user has set nothing."""
    for name in [*os.environ]:
        if name.startswith(("WANDB_", "MLFLOW_")):
            monkeypatch.delenv(name)
    for name in ("exit", "excepthook"):  # which W&B puts its own in the place of
        monkeypatch.setattr(sys, name, getattr(sys, name))


def stop(spec: RunSpec[Any], out: Path) -> None:
    """Run to step 70 or a little farther."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "STATUS_SECONDS", 0.0)
        stop_at(spec, out, 70)


@pytest.fixture(scope="module")
def unlogged(tmp_path_factory) -> dict[str, list[float]]:
    """The metrics of a run without a logger."""
    out = tmp_path_factory.mktemp("unlogged") / "a"
    run(spec(), out)
    return read_metrics(out / "metrics.csv")


def spec(*names: str, **changes: Any) -> RunSpec[Any]:
    """Four rooms, which enter the second context within 200 steps."""
    options: dict[str, Any] = {"alpha": 0.001, "steps": 240, "log_every": 20, **changes}
    return RunSpec("four-rooms", TabularConfig(reward="easy", beta=0.75, log=names, **options))


class Fake:
    """Keeps what it is handed, in a list that outlives it; fails where it is told to."""

    told: list[Any]
    fails = ""

    def _take(self, *what: Any) -> None:
        if what[0] == self.fails:
            raise OSError("the disk\nis full")
        self.told.append(what)

    def open(self, about: loggers.About, id_: str | None) -> str:
        self._take("open", id_, dict(about.labels), about.options["beta"])
        return id_ or "mine"

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        self._take("write", step, dict(numbers))

    def advance(self, advance: Any) -> None:
        self._take("advance", advance.step, advance.k)

    def close(self, *, finished: bool) -> None:
        self._take("close", finished)


@pytest.fixture
def fake(monkeypatch) -> type[Fake]:
    """In the place of W&B."""
    kind = type("Mine", (Fake,), {"told": []})
    monkeypatch.setitem(loggers.KINDS, "wandb", kind)
    monkeypatch.setattr(loggers, "find_spec", lambda name: object())
    return kind


def steps(fake: type[Fake], kind: str = "write") -> list[int]:
    return [what[1] for what in fake.told if what[0] == kind]


def test_a_logger_hears_every_row_and_every_switch(fake, tmp_path) -> None:
    assert run(spec("wandb"), tmp_path / "a")
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    assert steps(fake) == metrics["step"]
    written = [what[2] for what in fake.told if what[0] == "write"]
    assert [row["kappa"] for row in written] == metrics["kappa"]
    assert all("step" not in row for row in written)
    switches = read_json(tmp_path / "a" / "result.json")["advances"]
    entered = [(s["step"], s["k"]) for s in switches]
    assert [what[1:] for what in fake.told if what[0] == "advance"] == entered
    assert len(entered) > 0
    assert fake.told[0] == ("open", None, {"task": "four-rooms", "engine": "tabular"}, 0.75)
    assert fake.told[-1] == ("close", True)
    order = [what[1] for what in fake.told[1:-1]]
    assert order == sorted(order)  # what W&B asks for


def test_a_resumed_run_goes_on_in_the_same_run_without_repeating_steps(fake, tmp_path) -> None:
    stop(spec("wandb"), tmp_path / "a")
    assert fake.told[-1] == ("close", False)
    logged = read_json(tmp_path / "a" / FILE)["loggers"]["wandb"]
    assert logged == {"id": "mine", "step": steps(fake)[-1]}
    # as if it had gone on to step 120 and was then killed
    write_json(tmp_path / "a" / FILE, {"loggers": {"wandb": {"id": "mine", "step": 120}}})
    assert run(spec("wandb"), tmp_path / "a")
    assert [what[1] for what in fake.told if what[0] == "open"] == [None, "mine"]
    assert steps(fake) == [20, 40, 60, *range(140, 241, 20)]
    assert len(set(steps(fake, "advance"))) == len(steps(fake, "advance"))


@pytest.mark.parametrize("fails", ["open", "write", "advance", "close"])
def test_a_logger_that_fails_is_one_line_and_costs_the_run_nothing(
    fake, tmp_path, capsys, unlogged, fails
) -> None:
    fake.fails = fails
    assert run(spec("wandb"), tmp_path / "a")
    said = "rollin: --log wandb failed, and the run continues without it: OSError: the disk is full"
    place = r" \(.*test_loggers\.py:\d+ in \w+\)\.\n"
    assert re.fullmatch(re.escape(said) + place, capsys.readouterr().err)
    assert read_metrics(tmp_path / "a" / "metrics.csv") == unlogged
    closed = [what for what in fake.told if what[0] == "close"]
    assert closed == ([("close", False)] if fails in ("write", "advance") else [])


def test_a_logger_is_closed_if_what_it_was_handed_cannot_be_noted(
    fake, tmp_path, capsys, monkeypatch
) -> None:
    def full(path: Path, value: Any, *, durable: bool = True) -> None:
        raise RollinError(f"{path.name} could not be written: no space left.")

    monkeypatch.setattr(loggers, "write_json", full)
    assert run(spec("wandb"), tmp_path / "a")
    assert [what[0] for what in fake.told] == ["open", "close"]
    assert capsys.readouterr().err == (
        "rollin: --log wandb failed, and the run continues without it: loggers.json could not be "
        "written: no space left.\n"
    )


def test_loggers_are_closed_also_if_tensorboard_s_file_cannot_be(
    fake, tmp_path, monkeypatch
) -> None:
    close = driver.TensorBoardLogger.close

    def full(board: Any) -> None:
        close(board)
        raise RollinError("tensorboard could not be written: no space left.")

    monkeypatch.setattr(driver.TensorBoardLogger, "close", full)
    with pytest.raises(RollinError, match="tensorboard could not be written"):
        run(spec("wandb"), tmp_path / "a")
    assert fake.told[-1][0] == "close"


@pytest.mark.parametrize("text", ["{", '{"loggers": {"wandb": {"id": "../../x", "step": 1}}}'])
def test_a_damaged_file_of_loggers_is_told_and_no_id_is_a_path(
    fake, tmp_path, capsys, text
) -> None:
    stop(spec("wandb"), tmp_path / "a")
    (tmp_path / "a" / FILE).write_text(text)
    fake.told.clear()
    assert run(spec("wandb"), tmp_path / "a")
    assert "--log wandb failed" in capsys.readouterr().err
    assert fake.told == []


def test_what_is_logged_makes_no_other_condition(fake, tmp_path) -> None:
    assert condition_key(spec("wandb")) == condition_key(spec()) == condition_key(spec("mlflow"))
    assert "log" not in spec().to_json()["config"]  # as in hashes of earlier versions
    stop(spec("wandb"), tmp_path / "a")
    with pytest.raises(RollinError, match="holds another run"):
        run(spec(), tmp_path / "a")
    assert spec_of(RunDirectory(tmp_path / "a")) == spec("wandb")


@pytest.mark.parametrize("name", NAMES)
def test_a_package_that_is_missing_is_one_sentence_before_anything_is_written(
    tmp_path, capsys, monkeypatch, name
) -> None:
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    out = tmp_path / "a"
    assert main(["train", "four-rooms", "--log", name, "--steps", "5", "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"rollin: --log {name} needs a package that is not installed: run pip install "
        f"'.[{name}]' in a clone of rollin.\n"
    )
    assert not out.exists()


@pytest.mark.parametrize("words", [("tensorboard",), ("wandb", "wandb")])
def test_loggers_that_there_are_not_are_refused(words, capsys, tmp_path) -> None:
    assert main(["train", "four-rooms", "--log", *words, "--out", str(tmp_path / "a")]) == 2
    said = f"rollin: --log must be some of wandb, mlflow, each once, got {' '.join(words)}.\n"
    assert capsys.readouterr().err == said


# ------------------------------------------------------------------ the real ones


def test_mlflow_has_the_metrics_options_and_switches_in_a_store_of_files(tmp_path) -> None:
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    from mlflow.tracking import MlflowClient  # pyright: ignore[reportMissingImports]

    out = tmp_path / "a"
    stop(spec("mlflow"), out)
    assert run(spec("mlflow"), out)
    client = MlflowClient(tracking_uri=(out / "mlflow").as_uri())
    experiment = client.get_experiment_by_name("rollin")
    assert experiment is not None
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED"
    assert found.info.run_id == read_json(out / FILE)["loggers"]["mlflow"]["id"]
    assert found.data.params["beta"] == "0.75"
    assert found.data.tags["task"] == "four-rooms"
    metrics = read_metrics(out / "metrics.csv")
    history = client.get_metric_history(found.info.run_id, "kappa")
    assert [point.step for point in history] == metrics["step"]
    assert [point.value for point in history] == metrics["kappa"]
    switches = read_json(out / "result.json")["advances"]
    advances = client.get_metric_history(found.info.run_id, "advance/k")
    assert [(a.step, a.value) for a in advances] == [(s["step"], s["k"]) for s in switches]
    assert found.data.tags["advance 1"].startswith(f"step {switches[0]['step']}: ")


BLOCK, HEADER = 32_768, 7  # bytes of a block of W&B's file, and of what stands before each piece


def pieces(data: bytes) -> Iterator[bytes]:
    """Records of a file of W&B, which is a log as LevelDB has it: some lie in several pieces."""
    at, whole = HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + HEADER : at + HEADER + length]
        at += HEADER + length
        if kind in (1, 4):  # all of it, or the last piece
            yield whole
            whole = b""


def wandb_rows(out: Path) -> list[dict[str, Any]]:
    """What all lives of a run left for W&B, in its own messages."""
    from wandb.proto import wandb_internal_pb2  # pyright: ignore[reportMissingImports]

    messages: Any = wandb_internal_pb2  # made at import, out of a checker's sight
    rows: list[dict[str, Any]] = []
    for path in sorted((out / "wandb").glob("offline-run-*/run-*.wandb")):
        for data in pieces(path.read_bytes()):
            record = messages.Record.FromString(data)
            if record.WhichOneof("record_type") == "history":
                items = {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json)
                    for item in record.history.item
                }
                rows.append({**items, "id": path.stem})
    return rows


def test_wandb_has_the_metrics_and_switches_offline(tmp_path) -> None:
    pytest.importorskip("wandb", reason="W&B is not installed")
    out = tmp_path / "a"
    stop(spec("wandb"), out)
    assert run(spec("wandb"), out)
    rows = wandb_rows(out)
    metrics = read_metrics(out / "metrics.csv")
    told = [(row["_step"], row["kappa"]) for row in rows if "kappa" in row]
    assert told == list(zip(metrics["step"], metrics["kappa"], strict=True))
    assert {row["id"] for row in rows} == {f"run-{read_json(out / FILE)['loggers']['wandb']['id']}"}
    switches = read_json(out / "result.json")["advances"]
    entered = [(row["_step"], row["advance/k"]) for row in rows if "advance/k" in row]
    assert entered == [(s["step"], s["k"]) for s in switches]
