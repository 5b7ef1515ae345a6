"""Changes of files that are no runs, and bad values of options; see `tests.runs.mutations`."""

import json
import shutil
import tomllib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from rollin.cli import console
from rollin.errors import RollinError
from rollin.runs import driver
from rollin.runs.engines import engine
from rollin.runs.files import seal
from rollin.runs.spec import option_names
from rollin.sweeps.study import study_from
from rollin.tabular.families import four_rooms
from tests.runs.mutations import (
    BYTES,
    DELETED,
    FORGED,
    NODES,
    ROWS,
    SPECS,
    Case,
    Change,
    Forge,
    bad_values,
    call,
    changed,
    places,
    remove,
    replaced,
    rewritten,
    snapshot,
    typed,
    with_lines,
    wrong_end,
)
from tests.undrawn import undrawn


def make_others(place: Path, runs: Path) -> None:
    """Records as CSVs, a sweep, an MDP, a study and a policy, each in a directory of its own."""
    (place / "records").mkdir(parents=True)
    for name in SPECS:
        shutil.copytree(runs / name / "finished", place / "sweep" / name)
    page = str(place / "records" / "r.html")
    with undrawn():  # the page goes
        assert typed(["report", str(place / "sweep"), "--out", page])[0] == 0
    for name in SPECS.keys() - {"sac"}:  # a page of one run without maps is drawn sooner
        shutil.rmtree(place / "sweep" / name)
    for path in (place / "records").iterdir():
        if path.name not in ("runs.csv", "curves.csv", "switches.csv"):
            path.unlink()
    condition = {"labels": {"beta": "0.5"}, "task": "four-rooms", "options": {"steps": 12},
                 "key": "k"}  # fmt: skip
    study = {"name": "s", "conditions": [condition], "readings": [["kappa", 4]], "seeds": 1,
             "rows": [], "columns": ["beta"], "baseline": "beta=0.5", "compared": "",
             "kind": "table", "title": "t"}  # fmt: skip
    sweep = {"family": "f", "scale": 1.0, "commands": ["c"], "runs": {"sac": "h"},
             "versions": {"rollin": "1"}, "studies": [study], "tables": []}  # fmt: skip
    (place / "sweep" / "sweep.json").write_text(json.dumps(sweep))
    (place / "mdp").mkdir()
    four_rooms("easy").save(place / "mdp" / "m.npz")
    (place / "study").mkdir()
    (place / "study" / "s.toml").write_text(STUDY)
    policy = ["export", str(runs / "rollin" / "finished"), "--out", str(place / "policy")]
    assert typed([*policy, "--episodes", "1"])[0] == 0


STUDY = """name = "s"
title = "t"
task = "point-umaze"
seeds = 2
baseline = "beta=0"
readings = ["kappa", "return_final@100"]
rows = []
columns = ["beta"]
[options]
steps = 100
hidden = [8, 8]
[[block]]
labels = { size = "fine" }
options = { delta = "1/24" }
grid = { beta = [0, 0.1] }
"""


def other_cases(place: Path) -> dict[str, list[Case]]:
    """Changes of files that are no runs, by directory; of all it is asked that they end well."""
    looks = ("list", "report", "plot")
    found: dict[str, list[Case]] = {}
    whole = {**{n: (rewritten, new) for n, new in BYTES.items()},
             **{n: (replaced, make) for n, make in NODES.items()}}  # fmt: skip
    for folder, file, tried in (
        ("records", "runs.csv", looks[1:]),
        ("records", "curves.csv", looks[1:]),
        ("records", "switches.csv", looks[1:]),
        ("sweep", "sweep.json", looks),
        ("mdp", "m.npz", ("theory", "train")),
        ("study", "s.toml", ("study",)),
        ("policy", "policy.json", ("evaluate",)),
        ("policy", "policy.safetensors", ("evaluate",)),
    ):
        cases = [
            Case(f"{file} {name}", how(file, make), commands=tried)
            for name, (how, make) in whole.items()
        ]
        if file.endswith(".csv"):
            cases += [
                Case(f"{file} {name}", rewritten(file, new), commands=tried)
                for name, new in {**ROWS, **cell_changes(place / folder / file)}.items()
            ]
        elif file.endswith(".json"):
            change = in_policy if folder == "policy" else changed
            cases += [
                Case(f"{file} {path} {how}", change(file, path, other), commands=tried)
                for path, value in places(json.loads((place / folder / file).read_text()))
                for how, other in bad_values(value).items()
            ]
        elif file.endswith(".npz"):
            cases += [
                Case(f"{file} {name} {how}", in_npz(file, name, forge), commands=tried)
                for name in ("transitions", "rewards", "gamma", "rho", "contexts", "success")
                for how, forge in {**FORGED, "huge": _huge}.items()
            ]
        elif file.endswith(".toml"):
            cases += [
                Case(f"{file} {path} {how}", in_toml(file, path, other), commands=tried)
                for path, value in places(tomllib.loads(STUDY))
                for how, other in bad_values(value).items()
                if other is not None and other is not DELETED
            ]
        found.setdefault(folder, []).extend(cases)
    return found


BAD_CELLS = (
    "",
    "nan",
    "inf",
    "-1",
    "1e999",
    "9" * 30,
    "x",
    "a=b,c",
    "0.5",
    '"',
    "\x00",
    "$\\frac$",
)


def cell_changes(path: Path) -> dict[str, Callable[[bytes], bytes]]:
    """Another value in one cell of each column, in its first row and in its header."""
    columns = path.read_text().partition("\n")[0].split(",")
    found: dict[str, Callable[[bytes], bytes]] = {}
    for number, column in enumerate(columns):
        for row in (0, 1):
            for bad in BAD_CELLS:
                found[f"{column} {row} {bad!r}"] = _cell(row, number, bad)
    return found


def _cell(row: int, number: int, text: str) -> Callable[[bytes], bytes]:
    def swap(rows: list[bytes]) -> list[bytes]:
        if row >= len(rows):
            return rows
        cells = rows[row].split(b",")
        cells[min(number, len(cells) - 1)] = text.encode()
        return [*rows[:row], b",".join(cells), *rows[row + 1 :]]

    return with_lines(swap)


def _huge(arrays: dict[str, np.ndarray], name: str) -> None:
    arrays[name] = np.full_like(arrays[name], np.iinfo(np.int64).max // 2
                                if arrays[name].dtype.kind in "iu" else 1e38)  # fmt: skip


def in_policy(file: str, path: tuple[Any, ...], other: Any) -> Change:
    """Another value at a place of an exported policy's file, with a checksum that fits it."""

    def change(folder: Path) -> None:
        changed(file, path, other)(folder)
        rest = json.loads((folder / file).read_text())
        if path != ("checksum",):
            rest.pop("checksum", None)
            rest["checksum"] = seal(rest)
        (folder / file).write_text(json.dumps(rest))

    return change


def in_npz(file: str, name: str, forge: Forge) -> Change:
    """Another array in an MDP."""

    def change(folder: Path) -> None:
        with np.load(folder / file) as found:
            arrays = {n: np.atleast_1d(found[n]) for n in found.files}
        arrays["gamma"] = arrays["gamma"].reshape(-1)
        with np.errstate(all="ignore"):
            forge(arrays, name)
        np.savez(folder / file, **arrays)  # pyright: ignore[reportArgumentType]

    return change


def in_toml(file: str, path: tuple[Any, ...], other: Any) -> Change:
    """Another value at a place of a study."""

    def change(folder: Path) -> None:
        whole = tomllib.loads(STUDY)
        place = whole
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = other
        lines = [f"{name} = {_toml(value)}" for name, value in whole.items()]
        (folder / file).write_text("\n".join(lines))

    return change


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")


def attempt_other(place: Path, folder: str, case: Case, scratch: Path) -> list[str]:
    """What goes wrong when commands meet a changed file that is no run."""
    wrong = []
    outside = snapshot(place)
    for command in case.commands:
        copy = scratch / "copy"
        shutil.copytree(place / folder, copy)
        case.change(copy)
        code, _, err = _tried(command, copy, scratch)
        if problem := wrong_end(code, err):
            wrong.append(f"{folder}: {case.name}: {command} gave {problem}")
        remove(copy)
        shutil.rmtree(scratch / "out", ignore_errors=True)
    if snapshot(place) != outside:
        wrong.append(f"{folder}: {case.name}: something outside was changed")
    return wrong


def _tried(command: str, copy: Path, scratch: Path) -> tuple[int | None, str, str]:
    if command == "study":  # to read it is enough: its runs would take long
        try:
            study_from(copy / "s.toml")
        except RollinError as error:
            return 2, "", f"rollin: {' '.join(str(error).split())}"
        except BaseException:
            return None, "", traceback.format_exc()
        return 0, "", ""
    return call(command, copy / "m.npz" if command in ("theory", "train") else copy, scratch)


# ------------------------------------------------------------------ options

BAD_WORDS = (
    "nan", "inf", "-inf", "-1", "0", "0.5", "1", "1e39", "1e308", "1e-320", "1/0", "1/24", "x", "",
    "9" * 23, "-" + "9" * 23, "1000000", "true", "[]", "[[", "{}", "../..", "é", "\ud800",
    "[[0, 0], [1e308, 1]]", "[[1], [2, 3]]", "[[0.5], [1.0]]", "a=1",
)  # fmt: skip
TASKS = {
    "tabular": ["four-rooms", "--steps=2", "--batch=8"],
    "until-solved": ["combination-lock", "--n=4", "--steps=2"],
    "sac": ["Pendulum-v1", "--steps=40", "--warmup=16", "--batch=8", "--hidden", "8"],
    "rollin": ["point-umaze", "--steps=40", "--warmup=16", "--batch=8", "--hidden", "8"],
}


def option_cases() -> list[tuple[str, list[str]]]:
    """Command lines with a bad value of each option of each engine."""
    return [
        (name, [*words, f"--{option.replace('_', '-')}={bad}"])
        for name, words in TASKS.items()
        for option in option_names(engine(name).config_class)
        for bad in BAD_WORDS
    ]


def attempt_option(words: list[str], scratch: Path) -> list[str]:
    """What goes wrong when a run is begun with an option; it is stopped at its first step."""

    class Stop(console.Stop):
        @property
        def code(self) -> int:
            return 0  # as if nobody had asked

        def __enter__(self) -> "Stop":
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def __call__(self) -> bool:
            return True

    with (
        mock.patch("rollin.cli.train.stop_on_signal", Stop),
        mock.patch.object(driver, "STOP_SECONDS", -1.0),
    ):
        code, _, err = typed(["train", *words, f"--out={scratch / 'out'}"])
    shutil.rmtree(scratch / "out", ignore_errors=True)
    problem = wrong_end(code, err)
    return [f"train {' '.join(words)} gave {problem}"] if problem else []
