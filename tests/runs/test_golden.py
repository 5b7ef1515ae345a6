"""Hashes that must never change: by them, runs of earlier versions are found again."""

from pathlib import Path

from rollin.envs.registry import TASKS
from rollin.paper.tables import all_conditions
from rollin.runs.engines import engine_for, engines
from rollin.runs.files import read_json
from rollin.runs.spec import RunSpec

PINNED = read_json(Path(__file__).parents[1] / "golden" / "hashes.json")
HOMES = {"tabular": "four-rooms", "sac": "Hopper-v5", "rollin": "point-umaze"}
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
