"""A new task, teacher or option touches its own file and one table; a name means one thing."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import rollin
from rollin.deep.options import RollinOptions
from rollin.envs.registry import make_contextual, make_raw
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.spec import option_names
from rollin.sac.config import SACConfig
from rollin.tasks import TASKS, gymnasium_id, plain_name
from rollin.teachers import TEACHERS, SamplingTeacher

ROOT = Path(rollin.__file__).parent
IDS = {
    "point-umaze": "rollin/PointUmaze-v0", "dead-end": "rollin/DeadEnd-v0",
    "key-door": "rollin/KeyDoor-v0", "point-speed": "rollin/PointSpeed-v0",
    "antmaze-umaze": "rollin/AntmazeUmaze-v0", "walker": "rollin/Walker-v0",
    "hopper": "rollin/Hopper-v0", "humanoid": "rollin/Humanoid-v0", "ant": "rollin/Ant-v0",
}  # fmt: skip
"""Published ids, which never change."""
DEEP_OPTIONS = ("RollinOptions", "RollinConfig", "SACConfig", "SACRunConfig")
STUDIES = ("paper/", "report/")  # what the paper compares and what the report draws may be named
OTHER_MEANINGS = {"uniform", "fixed"}  # teachers whose names other options have as values
PRIVATE = {
    "AdvanceFile",
    "Counters",
    "CountersSaved",
    "CurriculumFile",
    "Episode",
    "LearnerSaved",
    "SweepProgress",
}
"""Names that two modules still have."""


@cache
def trees() -> dict[str, ast.Module]:
    """Every module by its path below the package."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(ROOT.rglob("*.py"))
    }


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for place, tree in trees().items():
        for node in ast.walk(tree):
            yield place, node


def places_of(names: set[str]) -> set[str]:
    """Modules outside studies that hold one of these words as a string."""
    return {
        place
        for place, node in nodes()
        if isinstance(node, ast.Constant) and node.value in names
        if not place.startswith(STUDIES)
    }


# ------------------------------------------------------------------ tasks


def test_only_the_table_knows_the_tasks() -> None:
    # the robots are also rows of the paper's table of their constants
    places = places_of({*TASKS, *IDS.values()}) - {"runs/engines/older.py"}
    assert places == {"tasks.py", "envs/velocity.py"}


def test_ids_of_gymnasium_stay_and_lead_to_the_plain_name() -> None:
    assert {name: gymnasium_id(name) for name in TASKS} == IDS
    assert {plain_name(id): id for id in IDS.values()} == IDS
    others = ["point-umaze", "rollin/PointUmase-v0", "Pendulum-v1", "module:factory", ""]
    assert [plain_name(name) for name in others] == others


@pytest.mark.parametrize("name", TASKS)
def test_a_line_of_the_table_is_all_that_a_task_needs(name: str) -> None:
    module, factory = TASKS[name].factory.split(":")
    assert callable(getattr(import_module(module), factory))
    assert gymnasium.spec(IDS[name]).entry_point == TASKS[name].factory
    raw, ours = gymnasium.make(IDS[name]), make_contextual(name)
    assert raw.observation_space == ours.env.observation_space
    assert ours.curriculum is not None
    assert type(make_raw(IDS[name])) is type(ours.env)
    steps = np.diff(ours.curriculum.positions)
    delta = TASKS[name].delta
    assert delta is not None
    np.testing.assert_allclose(steps, delta)
    for env in (raw, ours):
        env.close()


# ------------------------------------------------------------------ teachers


def test_only_the_table_knows_the_teachers() -> None:
    assert places_of({*TEACHERS} - OTHER_MEANINGS) == {"teachers/__init__.py"}


def test_a_line_of_the_table_is_all_that_a_teacher_needs(monkeypatch) -> None:
    class Alternating(SamplingTeacher):
        """The first context and the last in turn."""

        about = "the first context and the last in turn"
        last = False

        def _draw(self) -> int:
            self.last = not self.last
            return self.curriculum.K if self.last else 0

    monkeypatch.setitem(TEACHERS, "alternating", Alternating)
    few = {"steps": 450, "warmup": 200, "hidden": (8, 8), "batch": 16}
    trained = rollin.train("point-umaze", teacher="alternating", **few)
    assert len(trained.returns) == 2


# ------------------------------------------------------------------ options


@cache
def declarations() -> dict[str, set[str]]:
    """Options of the deep engines, and the modules that declare them."""
    found: dict[str, set[str]] = defaultdict(set)
    for place, node in nodes():
        if isinstance(node, ast.ClassDef) and node.name in DEEP_OPTIONS:
            for part in node.body:
                if isinstance(part, ast.AnnAssign):
                    found[ast.unparse(part.target)].add(place)
    return found


@pytest.mark.parametrize("name", [field.name for field in fields(RollinOptions)])
def test_an_option_of_the_deep_loop_is_declared_once(name: str) -> None:
    assert declarations()[name] - {"runs/engines/sac.py"} == {"deep/options.py"}
    assert name in option_names(RollinConfig)  # so it is on the command line and in every hash


@pytest.mark.parametrize("name", [field.name for field in fields(SACConfig)])
def test_an_option_of_sac_is_declared_once_for_both_deep_engines(name: str) -> None:
    assert declarations()[name] == {"sac/config.py"}
    assert name in option_names(RollinConfig)
    assert name in option_names(SACRunConfig)


# ------------------------------------------------------------------ names


def test_two_classes_never_share_a_name() -> None:
    places = defaultdict(list)
    for place, node in nodes():
        if isinstance(node, ast.ClassDef):
            places[node.name].append(place)
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert not {name: found for name, found in shared.items() if name not in PRIVATE}
