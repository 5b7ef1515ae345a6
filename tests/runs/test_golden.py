"""What earlier versions left: hashes that never change, run directories that still open."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from rollin.cli import main
from rollin.envs.registry import TASKS
from rollin.paper.tables import all_conditions
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine_for, engines, read_record, spec_of
from rollin.runs.files import read_json
from rollin.runs.options import config_from
from rollin.runs.spec import RunConfig, RunSpec

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


@pytest.fixture
def kept(request, tmp_path) -> Path:
    """A copy of a run directory: nothing may change the one that is kept."""
    return Path(shutil.copytree(request.param, tmp_path / "run"))


def test_there_is_a_finished_and_an_unfinished_run_of_every_engine() -> None:
    states = {f"{path.parent.name}/{path.name}" for path in RUNS}
    names = [found.name for found in engines()]
    assert states == {f"{name}/{state}" for name in names for state in ("finished", "unfinished")}


@pytest.mark.parametrize("kept", RUNS, ids=lambda p: f"{p.parent.name}-{p.name}", indirect=True)
def test_a_run_of_an_earlier_version_is_listed_plotted_and_gone_on_with(kept, capsys) -> None:
    finished = (kept / "result.json").exists()
    before = read_json(kept / "result.json") if finished else None
    hashed = read_json(kept / "config.json")["spec_hash"]
    assert spec_of(RunDirectory(kept)).hash == hashed
    assert main(["list", str(kept)]) == 0
    assert ("finished" if finished else "interrupted") in capsys.readouterr().out
    assert main(["plot", str(kept), "--out", str(kept.parent / "curves.png")]) == 0
    assert main(["resume", str(kept), "--trust"]) == 0  # an agent is code
    assert main(["report", str(kept), "--out", str(kept.parent / "report.html")]) == 0
    after = read_json(kept / "result.json")
    assert before in (None, after)
    record = read_record(RunDirectory(kept))
    assert record.finished
    assert record.step == record.steps
    assert record.spec_hash == hashed
