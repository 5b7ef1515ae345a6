"""Errors of users' code: the sentence names file and line, and ROLLIN_DEBUG=1 the whole of it."""

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollin
from rollin.cli import main
from rollin.errors import ForeignError, RollinError, debug_hint, foreign, format_exception
from rollin.runs.spec import Job
from rollin.sweeps.queue import attempt
from tests.toys import Line, PointGoal

FEW = ("--steps", "200", "--warmup", "16", "--batch", "16", "--hidden", "8", "8")
HINT = " ROLLIN_DEBUG=1 in the environment shows the whole traceback."

FAULTS = """\
import gymnasium
import numpy as np

from tests.toys import Line


def bare():
    assert not Line


def library():
    return gymnasium.spaces.Box(np.zeros(2), np.ones(3))


class Mute(Exception):
    def __str__(self):
        raise KeyError("text")


def mute():
    raise Mute


class Step(Line):
    def step(self, action):
        return self.missing


def leaves():
    raise SystemExit(3)


def gymnasium_s_own():
    raise gymnasium.error.Error("no such thing")


gymnasium.register("Faults-v0", gymnasium_s_own)
"""


@pytest.fixture
def faults(tmp_path, monkeypatch):
    """A module of a user's in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROLLIN_DEBUG", raising=False)
    Path("faults.py").write_text(FAULTS)
    Path("broken.py").write_text("import json\n\njson.loads('{')\n")
    yield
    for name in ("faults", "broken"):
        sys.modules.pop(name, None)
    gymnasium.registry.pop("Faults-v0", None)


def line_of(text: str) -> int:
    lines = [str(line) for line in FAULTS.splitlines()]
    return lines.index(text) + 1


BOX = "return gymnasium.spaces.Box(np.zeros(2), np.ones(3))"
PLACES = {
    "faults:bare": ("AssertionError (faults.py:{} in bare).", "    assert not Line"),
    "faults:library": ("(faults.py:{} in library, down to gymnasium", f"    {BOX}"),
    "faults:mute": ("KeyError (faults.py:{} in mute).", "    raise Mute"),
    "faults:Step": ("'missing' (faults.py:{} in step).", "        return self.missing"),
    "faults:leaves": ("it called sys.exit(3) (faults.py:{} in leaves).", "    raise SystemExit(3)"),
    "faults:Faults-v0": (
        "Error: no such thing (faults.py:{} in gymnasium_s_own).",
        '    raise gymnasium.error.Error("no such thing")',
    ),
}


@pytest.mark.usefixtures("faults")
@pytest.mark.parametrize("task", PLACES)
def test_an_error_of_an_env_names_its_file_and_line(task, capsys) -> None:
    assert main(["train", task, *FEW, "--out", "a"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    words, code = PLACES[task]
    assert words.format(line_of(code)) in line
    assert line.endswith(HINT)
    assert not Path("a").exists()


@pytest.mark.usefixtures("faults")
def test_the_library_s_own_line_is_also_named(capsys) -> None:
    assert main(["train", "faults:library", *FEW, "--out", "a"]) == 2
    line = capsys.readouterr().err
    box = Path("gymnasium", "spaces", "box.py")
    assert f"down to {box}:" in line


@pytest.mark.usefixtures("faults")
def test_an_error_at_import_names_the_line_of_the_module(capsys) -> None:
    assert main(["train", "broken:make", "--out", "a"]) == 2
    line = capsys.readouterr().err
    assert "broken:make cannot be loaded: JSONDecodeError: Expecting property name" in line
    assert "(broken.py:3 in <module>, down to " in line


@pytest.mark.usefixtures("faults")
def test_debug_prints_the_whole_traceback(capsys, monkeypatch) -> None:
    monkeypatch.setenv("ROLLIN_DEBUG", "1")
    assert main(["train", "faults:bare", *FEW, "--out", "a"]) == 2
    *before, last = capsys.readouterr().err.splitlines()
    assert before[0] == "Traceback (most recent call last):"
    assert "    assert not Line" in before
    assert last.startswith("rollin: faults:bare cannot be made: AssertionError (faults.py:")
    assert HINT not in last


@pytest.mark.usefixtures("faults")
def test_debug_set_to_zero_is_off(capsys, monkeypatch) -> None:
    monkeypatch.setenv("ROLLIN_DEBUG", "0")
    assert main(["train", "faults:bare", *FEW, "--out", "a"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(HINT)


@pytest.mark.usefixtures("faults")
def test_a_failed_run_of_a_sweep_names_the_place_and_has_its_traceback(capsys, monkeypatch) -> None:
    from rollin.runs.engines.rollin import ENGINE
    from rollin.runs.spec import RunSpec

    spec = RunSpec("faults:bare", ENGINE.preset("faults:bare"))
    given: Any = (Job("a", spec, Path("a")), "", lambda status: None, lambda: False)
    kind, status = attempt(*given)
    assert kind == "failed"
    assert status["error"].endswith(f"(faults.py:8 in bare).{HINT}")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("ROLLIN_DEBUG", "1")
    assert attempt(*given)[1]["error"].endswith("(faults.py:8 in bare).")
    assert "    assert not Line\n" in capsys.readouterr().err


class SilentError(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_a_run_that_ends_by_an_error_without_text_keeps_that_error(tmp_path) -> None:
    def on_event(event: Any) -> None:
        raise SilentError

    with pytest.raises(SilentError):
        rollin.train(Line, steps=100, warmup=16, batch=16, hidden=(8, 8), on_event=on_event,
                     out=tmp_path / "a")  # fmt: skip
    status = json.loads((tmp_path / "a" / "status.json").read_text())
    assert status["error"].startswith(
        "SilentError: its text cannot be shown, because of ValueError ("
    )


def test_errors_of_rollin_s_own_have_no_place_and_no_hint(capsys, tmp_path) -> None:
    arguments = ["train", "point-umaze", "--env-options", "mass=3", "--out", str(tmp_path / "a")]
    assert main(arguments) == 2
    assert ".py:" not in capsys.readouterr().err
    assert debug_hint(RollinError("No.")) == ""


def test_a_long_text_does_not_cut_off_the_place() -> None:
    def guide() -> None:
        raise ValueError("x" * 5000)

    with pytest.raises(ValueError, match="x") as caught:
        guide()
    made = str(foreign("The guide raised", caught.value))
    assert len(made) < 1500
    assert "test_errors.py" in made
    assert made.endswith(" in guide).")


def test_a_text_of_several_lines_stands_in_one() -> None:
    assert format_exception(ValueError("one\n  two.")) == "ValueError: one two"


class NoWay(PointGoal):
    """A goal env that fails at every step."""

    def step(self, action: Any) -> Any:
        raise RuntimeError("no simulator")


def test_a_goal_env_that_fails_in_every_way_names_its_error() -> None:
    env = rollin.GoalContext(NoWay())
    with pytest.raises(ForeignError, match=r"failed each time.*no simulator \(.*test_errors.py:"):
        env.reset(seed=0, options={"context": np.ones(1)})


class SetsNot(Line):
    def set_context(self, context: Any) -> None:
        raise LookupError("nowhere")


def test_set_context_that_raises_is_named() -> None:
    with pytest.raises(ForeignError, match=r"set_context raised LookupError: nowhere \(.*:\d+ in"):
        rollin.check_env(SetsNot())
