"""What earlier versions left: hashes that never change, run directories that still open."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

import rollin
from rollin.cli import main
from rollin.paper.tables import all_conditions
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import MODULES, engine_for, engines, read_record, spec_of
from rollin.runs.files import read_json, write_json
from rollin.runs.spec import RunConfig, RunSpec, config_from
from rollin.tasks import TASKS
from tests.undrawn import undrawn

GOLDEN = Path(__file__).parents[1] / "golden"
PINNED = read_json(GOLDEN / "hashes.json")
HOMES = {
    "tabular": "four-rooms",
    "until-solved": "combination-lock",
    "sac": "Hopper-v5",
    "rollin": "point-umaze",
    "agent": "tests.corridor:Corridor",
}
"""The tasks of the specs that are pinned under the names of engines."""


def test_every_condition_of_the_paper_has_its_pinned_hash() -> None:
    found = {f"{c.task}: {c.name.replace('/', '-')}": c.spec(0).hash for c in all_conditions()}
    assert len(found) == 232
    assert found == PINNED["conditions"]


def test_every_engine_s_defaults_and_every_task_s_preset_have_their_pinned_hash() -> None:
    found = {one.name: RunSpec(HOMES[one.name], one.config_class()).hash for one in engines()}
    found |= {task: RunSpec(task, engine_for(task).preset(task)).hash for task in TASKS}
    assert found == PINNED["specs"]


def test_a_hash_tells_engine_task_and_every_option_apart() -> None:
    one = RunSpec("point-umaze", engine_for("point-umaze").preset("point-umaze"))
    other = RunSpec("point-umaze2", one.config)
    assert one.hash != other.hash
    assert RunSpec(HOMES["tabular"], one.config).hash != PINNED["specs"]["tabular"]


@dataclass(frozen=True)
class Before(RunConfig):
    engine: ClassVar[str] = "made-up"
    steps: int = 10
    seed: int = 0
    log_every: int = 1
    wide: tuple[int, ...] = (8, 8)


@dataclass(frozen=True)
class After(Before):
    later: float = field(default=0.5, metadata={"since": "0.2.0"})


def test_an_option_that_came_later_changes_no_hash_at_its_default() -> None:
    assert RunSpec("t", After()).hash == RunSpec("t", Before()).hash
    assert RunSpec("t", After(later=0.6)).hash != RunSpec("t", Before()).hash
    assert RunSpec("t", After(later=0.6)).to_json()["config"]["later"] == 0.6
    assert config_from(After, RunSpec("t", After(seed=3)).to_json()["config"]) == After(seed=3)


# ------------------------------------------------------------------ run directories

RUNS = sorted(path.parent for path in GOLDEN.rglob("config.json"))
VERSIONS = sorted({path.parents[1] for path in RUNS})


@pytest.fixture
def kept(request, tmp_path) -> Path:
    """A copy of a directory: nothing may change the one that is kept."""
    return Path(shutil.copytree(request.param, tmp_path / "kept"))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_there_is_a_finished_and_an_unfinished_run_of_every_engine(version: Path) -> None:
    found = {f"{path.parent.name}/{path.name}" for path in RUNS if version in path.parents}
    names = [one.name for one in engines()]
    assert found == {f"{name}/{state}" for name in names for state in ("finished", "unfinished")}


def test_every_run_is_of_the_version_that_it_is_kept_for() -> None:
    for path in RUNS:
        made_by = read_json(path / "config.json")["versions"]["rollin"]
        assert made_by == path.parents[1].name


@pytest.mark.parametrize("kept", VERSIONS, ids=lambda path: path.name, indirect=True)
def test_runs_of_a_version_are_plotted_and_reported(kept, capsys) -> None:
    assert main(["plot", str(kept), "--out", str(kept.parent / "curves.png")]) == 0
    assert f"Curves of {len(MODULES)} runs" in capsys.readouterr().out
    with undrawn():  # the same curves
        assert main(["report", str(kept), "--out", str(kept.parent / "report.html")]) == 0
    assert capsys.readouterr().out.count("not finished") == len(MODULES)


@pytest.mark.parametrize("kept", RUNS, ids=lambda p: "-".join(p.parts[-3:]), indirect=True)
def test_a_run_of_an_earlier_version_is_listed_and_gone_on_with(kept, capsys) -> None:
    finished = (kept / "result.json").exists()
    before = read_json(kept / "result.json") if finished else None
    hashed = read_json(kept / "config.json")["spec_hash"]
    assert spec_of(RunDirectory(kept)).hash == hashed
    assert main(["list", str(kept)]) == 0
    assert ("finished" if finished else "interrupted") in capsys.readouterr().out
    made_by = read_json(kept / "config.json")["versions"]["rollin"]
    assert main(["resume", str(kept), "--trust"]) == 0  # a factory or an agent is code
    told = f"rollin {made_by} → {rollin.__version__}" in capsys.readouterr().err
    assert told == (not finished and made_by != rollin.__version__)
    after = read_json(kept / "result.json")
    assert before in (None, after)
    record = read_record(RunDirectory(kept))
    assert record.finished
    assert record.step == record.steps
    assert record.spec_hash == hashed


def test_of_a_checkpoint_that_cannot_be_gone_on_with_only_that_is_told(tmp_path, capsys) -> None:
    kept = Path(shutil.copytree(VERSIONS[-1] / "until-solved" / "unfinished", tmp_path / "kept"))
    manifest = read_json(kept / "checkpoint" / "manifest.json")
    changes = {"step": manifest["step"] + 1, "versions": {"rollin": "0.1.0"}}
    write_json(kept / "checkpoint" / "manifest.json", manifest | changes)
    assert main(["resume", str(kept)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "checksum" in line


def test_a_run_of_a_version_that_had_other_files_is_named_in_a_sentence(tmp_path, capsys) -> None:
    kept = Path(shutil.copytree(VERSIONS[-1] / "rollin" / "finished", tmp_path / "kept"))
    config = read_json(kept / "config.json")
    del config["results"]
    write_json(kept / "config.json", config | {"versions": {"rollin": "0.1.0"}})
    for command in ("resume", "report", "evaluate"):
        assert main([command, str(kept)]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "is a run of rollin 0.1.0, whose run directories this version does not read" in said
