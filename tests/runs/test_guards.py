"""What an environment's own code may do wrong: the same sentence from plain SAC and from ROLLIN."""

import asyncio
import os
import sys
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollin.cli import main
from rollin.envs import box_env
from tests.toys import Line, Walk

FEW = ("--steps", "200", "--warmup", "16", "--batch", "16", "--hidden", "8", "8")
AFTER = 2  # episodes that are right: environments are tried before a run begins

ODD: dict[str, str] = {
    "four": "step must give observation, reward, terminated, truncated and info, as in Gymnasium",
    "list": "step must give observation, reward, terminated, truncated and info, as in Gymnasium",
    "array": "step must give terminated as True or False, got array([False, False]) (ndarray)",
    "word": "step must give terminated as True or False, got 'False' (str): return a bool",
    "number": "step must give terminated as True or False, got 2 (int): return a bool",
    "none": "step must give truncated as True or False, got None (NoneType): return a bool",
    "no info": "step must give observation, reward, terminated, truncated and info, as in Gym",
    "generator": "The environment's step raised GeneratorExit",
    "cancelled": "The environment's step raised CancelledError: no time",
    "mute": "The environment's step raised Mute: its text cannot be shown, because of Mute",
    "reward": "gave a reward that is not a number: Mute: its text cannot be shown",
    "os exit": "The environment's step called os._exit(0)",
    "text": "gave a reward that is not a number: '1.0'",
    "nothing": "gave a reward that is not a number",
    "endless": "an episode has not ended in 50 steps",
    "raises": "The environment's step raised ZeroDivisionError: no way on",
    "memory": "The environment's step raised MemoryError",
    "recursion": "The environment's step raised RecursionError",
    "pipe": "The environment's step raised BrokenPipeError",
    "exit": "The environment's step called sys.exit(0)",
    "reset raises": "The environment's reset raised KeyError: 'seed'",
    "reset exits": "The environment's reset called sys.exit(None)",
    "reset alone": "reset must give observation and info, as in Gymnasium, got ndarray",
}


class Mute(BaseException):
    """Nothing can be learned of it."""

    def __str__(self) -> str:
        raise Mute


class MuteNumber:
    """No number."""

    def __float__(self) -> float:
        raise Mute


def misbehave(what: str, found: Any) -> Any:
    """What a step gives in place of what it should."""
    observed, reward, terminated, truncated, info = found
    match what:
        case "four":
            return observed, reward, terminated, info
        case "list":
            return list(found)
        case "array":
            return observed, reward, np.array([terminated, False]), truncated, info
        case "word":
            return observed, reward, "False", truncated, info
        case "number":
            return observed, reward, 2, truncated, info
        case "none":
            return observed, reward, terminated, None, info
        case "no info":
            return observed, reward, terminated, truncated, [info]
        case "generator":
            raise GeneratorExit
        case "cancelled":
            raise asyncio.CancelledError("no time")
        case "mute":
            raise Mute
        case "reward":
            return observed, MuteNumber(), terminated, truncated, info
        case "os exit":
            os._exit(0)
        case "text":
            return observed, "1.0", terminated, truncated, info
        case "nothing":
            return observed, None, terminated, truncated, info
        case "endless":
            return observed, reward, False, False, info
        case "raises":
            raise ZeroDivisionError("no way on")
        case "memory":
            raise MemoryError
        case "recursion":
            return misbehave(what, found)
        case "pipe":
            raise BrokenPipeError(32, "Broken pipe")
        case "exit":
            sys.exit(0)
    return found


def misbegin(what: str, found: Any) -> Any:
    """What a reset gives in place of what it should."""
    if what == "reset raises":
        raise KeyError("seed")
    if what == "reset exits":
        sys.exit()
    return np.zeros(3) if what == "reset alone" else found


class OddWalk(Walk):
    """A walk that goes wrong after some episodes."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.episodes = what, 0

    def reset(self, **options: Any) -> Any:
        self.episodes += 1
        found = super().reset(**options)
        return misbegin(self.what, found) if self.episodes > AFTER else found

    def step(self, action: Any) -> Any:
        found = super().step(action)
        return misbehave(self.what, found) if self.episodes > AFTER else found


class OddLine(Line):
    """A contextual walk that goes wrong after some episodes."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what.replace("_", " ")

    def reset(self, **options: Any) -> Any:
        found = super().reset(**options)
        return misbegin(self.what, found) if self.episodes > self.after else found

    def step(self, action: Any) -> Any:
        found = super().step(action)
        return misbehave(self.what, found) if self.episodes > self.after else found


class Leaves(Walk):
    def __init__(self) -> None:
        sys.exit(0)


gymnasium.register("Leaves-v0", "tests.runs.test_guards:Leaves")
for name in ODD:
    gymnasium.register(
        f"Odd-{name.replace(' ', '-')}-v0", "tests.runs.test_guards:OddWalk", kwargs={"what": name}
    )


def one_sentence(capsys, arguments: list[str]) -> str:
    """The only line of a command that is refused."""
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rollin: ")
    return line


@pytest.mark.filterwarnings("ignore")  # Gymnasium's checker warns of what the envs do
@pytest.mark.parametrize("what", ODD)
def test_plain_sac_tells_in_one_sentence_what_an_env_does_wrong(
    what, tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(box_env, "LONGEST", 50)
    task = f"Odd-{what.replace(' ', '-')}-v0"
    unchecked = partial(
        gymnasium.make, disable_env_checker=True
    )  # Gymnasium's checker would see some
    monkeypatch.setattr(gymnasium, "make", unchecked)
    line = one_sentence(capsys, ["train", task, *FEW, "--out", str(tmp_path / "a")])
    assert ODD[what] in line
    assert "Step " in line


@pytest.mark.parametrize("what", ODD)
def test_rollin_says_the_same(what, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(box_env, "LONGEST", 50)
    given = ["--env-options", f"what={what.replace(' ', '_')}", "--steps", "400"]
    few = [*FEW[2:], *given, "--out", str(tmp_path / "a")]
    line = one_sentence(capsys, ["train", "tests.runs.test_guards:OddLine", *few])
    assert ODD[what].replace("got ndarray", "got") in line
    assert "step " in line


def test_an_env_that_leaves_when_it_is_made_is_no_success(tmp_path, capsys) -> None:
    line = one_sentence(capsys, ["train", "Leaves-v0", *FEW, "--out", str(tmp_path / "a")])
    assert line.startswith("rollin: Leaves-v0 cannot be made: it called sys.exit(0) (")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    ("task", "option"),
    [
        ("tests.toys:Line", "--threshold"),
        ("Walk-v0", "--target-entropy"),
        ("four-rooms", "--alpha"),
    ],
)
def test_numbers_that_are_none_are_refused(task, option, number, tmp_path, capsys) -> None:
    line = one_sentence(capsys, ["train", task, f"{option}={number}", "--out", str(tmp_path / "a")])
    assert number in line
    assert not (tmp_path / "a").exists()
