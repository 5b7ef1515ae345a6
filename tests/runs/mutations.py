"""Changes of files and options, and what every command must make of them.

A change ends in exit code 0 or 2, with one sentence on stderr if it is 2, never in a traceback, a
crash or an endless wait, and nothing outside the run is touched. What a checksum covers is refused.
test_mutations.py tries a sample, always the same; `make fuzz` tries at random, for long.
"""

import io
import json
import os
import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from safetensors.numpy import load, save

import tests.toys  # noqa: F401  (registers the environments)
from rollin.cli import main
from rollin.runs import driver
from rollin.runs.engines import run
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.engines.until_solved import UntilSolvedConfig
from rollin.runs.files import seal, sha256
from rollin.runs.spec import RunSpec, configured
from tests.killing import stop_at
from tests.made_runs import reseal

ALL = bool(os.environ.get("ROLLIN_ALL_MUTATIONS"))
DEEP = {"hidden": (8, 8), "batch": 16, "eval_episodes": 1, "warmup": 32}
SPECS: dict[str, RunSpec[Any]] = {
    "tabular": RunSpec(
        "four-rooms",
        TabularConfig(steps=12, batch=50, log_every=2, alpha=0.01, threshold=0.02, beta=0.5),
    ),
    "until-solved": RunSpec(
        "combination-lock",
        UntilSolvedConfig(
            n=6, gradient="sampled", beta=0.9, mu="recursive", seed=3, steps=60, log_every=5
        ),
    ),
    "sac": RunSpec(
        "tests.toys:Walk-v0",
        configured(SACRunConfig(), {**DEEP, "steps": 150, "log_every": 25}),
    ),
    "rollin": RunSpec(
        "tests.toys:Line",
        configured(
            RollinConfig(),
            {**DEEP, "steps": 200, "log_every": 25, "beta": 0.4, "threshold": -1.0, "window": 4},
        ),
    ),
}
STOPPED = {"tabular": 6, "until-solved": 30, "sac": 80, "rollin": 110}
JSON_FILES = {
    "finished": ("config.json", "result.json", "status.json"),
    "unfinished": ("config.json", "checkpoint/manifest.json", "status.json"),
    "resealed": ("checkpoint/manifest.json",),
}
CSVS = {
    "tabular": ("metrics",),
    "until-solved": ("metrics",),
    "sac": ("metrics",),
    "rollin": ("metrics", "episodes"),
}
DELETED = object()
Change = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """A change of a run.

    refused: the commands that must refuse it. Of the others it is only asked that they end with 0,
    or with 2 and one sentence.
    """

    name: str
    change: Change
    refused: frozenset[str] = frozenset()
    commands: tuple[str, ...] = ("list", "report", "plot", "evaluate", "resume")


def make_runs(place: Path) -> None:
    """A finished and an unfinished run of each engine, the latter twice."""
    with mock.patch.object(driver, "STATUS_SECONDS", -1.0):
        for name, spec in SPECS.items():
            run(spec, place / name / "finished")
            stop_at(spec, place / name / "unfinished", STOPPED[name])
            shutil.copytree(place / name / "unfinished", place / name / "resealed")


def resealed(change: Change) -> Change:
    """A change of a checkpoint or of what it counts, after which its checksums fit."""

    def both(run_: Path) -> None:
        change(run_)
        path = run_ / "checkpoint" / "manifest.json"
        manifest = json.loads(path.read_text())
        writers = manifest.get("values", {}) or {}
        for stem, counted in (writers["writers"] if _counts(writers) else {}).items():
            file = run_ / f"{stem}.csv"
            if file.is_file() and isinstance(counted, dict) and type(counted.get("rows")) is int:
                lines = file.read_bytes().splitlines(keepends=True)[: max(counted["rows"], -1) + 1]
                counted["sha256"] = sha256(b"".join(lines))
        manifest.pop("checksum", None)
        path.write_text(json.dumps(manifest | {"checksum": seal(manifest)}))

    return both


def _counts(values: Any) -> bool:
    return isinstance(values, dict) and isinstance(values.get("writers"), dict)


# ------------------------------------------------------------------ trying a change


def attempt(runs: Path, engine: str, state: str, case: Case, scratch: Path) -> list[str]:
    """What goes wrong when commands meet a changed run."""
    wrong = []
    outside = snapshot(runs)
    for command in case.commands:
        copy = scratch / "copy"
        shutil.copytree(runs / engine / state, copy, symlinks=True)
        case.change(copy)
        around = snapshot(scratch / "outside")
        code, out, err = call(command, copy, scratch)
        if snapshot(scratch / "outside") != around:
            wrong.append(f"{engine} {state}: {case.name}: {command} changed what a link leads to")
        if problem := wrong_end(code, err):
            wrong.append(f"{engine} {state}: {case.name}: {command} gave {problem}")
        elif command in case.refused and not (code == 2 or "broken: " in out):
            wrong.append(f"{engine} {state}: {case.name}: {command} took it\n{out[-300:]}")
        remove(copy)
    if snapshot(runs) != outside:
        wrong.append(f"{engine} {state}: {case.name}: something outside was changed")
    return wrong


def call(command: str, place: Path, scratch: Path) -> tuple[int | None, str, str]:
    """A command on a run: its exit code, None after a traceback, and what it wrote."""
    more = {
        "plot": ["--out", str(scratch / "curves.png")],
        "evaluate": ["--episodes", "1"],
        "theory": ["--alpha", "0.1"] if place.suffix == ".npz" else [],
        "train": ["--steps", "2", "--batch", "8", "--out", str(scratch / "out")],
    }
    return typed([command, str(place), *more.get(command, [])])


def typed(arguments: Sequence[str]) -> tuple[int | None, str, str]:
    """A command line: its exit code, None after a traceback, and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as left:  # of the parser of options
            code = left.code
        except BaseException:
            traceback.print_exc()
    lines = err.getvalue().splitlines()
    # a run that learned nothing says so, which is no error
    told = [line for line in lines if code != 0 or not line.startswith("rollin: ")]
    return code, out.getvalue(), "\n".join(told)


def wrong_end(code: int | None, err: str) -> str:
    """What is wrong with an end; empty if nothing."""
    lines = err.splitlines()
    sentence = len(lines) == 1 and lines[0].startswith("rollin: ")
    return "" if (code == 0 and not lines) or (code == 2 and sentence) else f"{code}\n{err[-2000:]}"


def snapshot(place: Path) -> dict[str, tuple[int, int]]:
    """Sizes and times of all files; of links their own."""
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, files in os.walk(place):  # thousands of times: paths would take longer
        for name in (*files, *(n for n in folders if os.path.islink(f"{folder}/{n}"))):
            about = os.lstat(f"{folder}/{name}")
            found[f"{folder}/{name}"] = about.st_size, about.st_mtime_ns
    return found


def remove(place: Path) -> None:
    shutil.rmtree(place)


# ------------------------------------------------------------------ JSON files


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value in a file, with the keys that lead there; of a list its first and its last."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for name, part in value.items():
            yield from places(part, (*path, name))
    elif isinstance(value, list):
        for index in sorted({0, len(value) - 1} if value else ()):
            yield from places(value[index], (*path, index))


def bad_values(value: Any) -> dict[str, Any]:
    """Values that do not belong there."""
    found: dict[str, Any] = {
        "null": None, "text": "x", "list": [], "object": {}, "true": True, "number": 0.5,
        "nan": float("nan"), "inf": float("inf"), "huge": 10**30, "negative": -7,
        "deleted": DELETED,
    }  # fmt: skip
    if isinstance(value, int | float) and not isinstance(value, bool):
        found["off by one"] = value + 1
    elif isinstance(value, str):
        found |= {"longer": value + "x", "empty": ""}
    elif isinstance(value, dict):
        found["added"] = {**value, "added": 1}
    elif isinstance(value, list):
        found |= {"shorter": value[:-1], "longer": [*value, *(value[-1:] or [0])]}
    return {
        name: other
        for name, other in found.items()
        if other is DELETED or type(other) is not type(value) or other != value
    }


def changed(file: str, path: tuple[Any, ...], other: Any) -> Change:
    """Another value at a place of a JSON file."""

    def change(run_: Path) -> None:
        whole = json.loads((run_ / file).read_text())
        place = whole
        for key in path[:-1]:
            place = place[key]
        if other is DELETED:
            del place[path[-1]]
        else:
            place[path[-1]] = other
        (run_ / file).write_text(json.dumps(whole))

    return change


def must_refuse(state: str, file: str, path: tuple[Any, ...], how: str) -> frozenset[str]:
    """The commands that can know that a value is wrong."""
    if file == "result.json":
        if path == ("seconds",) and how in ("off by one", "huge", "number", "deleted"):
            return frozenset()  # in which alone two runs of one spec may differ
        return frozenset({"list", "report", "plot", "evaluate", "resume"})
    if file == "config.json" and path[0] in ("engine", "task", "config", "spec_hash"):
        if path == ("spec_hash",) and how in ("deleted", "null"):
            return frozenset()  # a run that is given in Python may have none
        return frozenset({"list", "report", "plot", "evaluate", "resume"})
    if file == "config.json" and path == ("fingerprint",) and how not in ("deleted", "null"):
        return frozenset({"resume"})
    if state == "unfinished" and file.endswith("manifest.json"):
        return frozenset({"plot", "resume"})
    return frozenset()


def commands(state: str, file: str, refused: frozenset[str]) -> tuple[str, ...]:
    """Those to try; a page is drawn for a change that is taken if all changes are tried."""
    some = ["list", "resume", "evaluate"]
    if file == "status.json":
        return ("list", "resume")
    some += ["plot"] if refused or ALL else []
    some += ["report"] if state == "finished" and (refused or ALL) else []
    return tuple(some)


def json_cases(run_: Path, state: str, file: str) -> list[Case]:
    found = []
    for path, value in places(json.loads((run_ / file).read_text())):
        for how, other in bad_values(value).items():
            refused = must_refuse(state, file, path, how)
            name = f"{file} {'.'.join(map(str, path))} {how}"
            tried = commands(state, file, refused)
            change = changed(file, path, other)
            found.append(
                Case(name, resealed(change) if state == "resealed" else change, refused, tried)
            )
    return found


# ------------------------------------------------------------------ files as a whole


def rewritten(file: str, new: Callable[[bytes], bytes]) -> Change:
    """Other bytes in a file."""

    def change(run_: Path) -> None:
        (run_ / file).write_bytes(new((run_ / file).read_bytes()))

    return change


def replaced(file: str, make: Callable[[Path], Any]) -> Change:
    """Something else in the place of a file, which goes beside it."""

    def change(run_: Path) -> None:
        (run_ / file).rename(run_ / "moved")
        make(run_ / file)

    return change


def flipped(share: float) -> Callable[[bytes], bytes]:
    """One bit turned over, somewhere."""

    def flip(data: bytes) -> bytes:
        at = int(share * (len(data) - 1))
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return flip


NODES: dict[str, Callable[[Path], Any]] = {
    "link": lambda path: path.symlink_to(path.parents[0] / "moved"),
    "pipe": os.mkfifo if hasattr(os, "mkfifo") else Path.touch,
    "directory": Path.mkdir,
}
BYTES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "last byte": lambda data: data[:-2],
    "flip 0.3": flipped(0.3),
    "flip 0.9": flipped(0.9),
    "binary": lambda data: bytes([0xFF, 0, 0x80]) + data,
}


def elsewhere(folder: str) -> Change:
    """A link in the place of a directory, to one outside with files of the same names."""

    def change(run_: Path) -> None:
        outside = run_.parent / "outside"
        shutil.rmtree(outside, ignore_errors=True)
        (run_ / folder).rename(outside)
        (run_ / folder).symlink_to(outside)

    return change


def with_lines(swap: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda data: b"\n".join(swap(data.rstrip(b"\n").split(b"\n"))) + b"\n"


ROWS: dict[str, Callable[[bytes], bytes]] = {
    "dropped column": with_lines(lambda rows: [row.rpartition(b",")[0] for row in rows]),
    "swapped rows": with_lines(lambda rows: [rows[0], rows[2], rows[1], *rows[3:]]),
    "dropped row": with_lines(lambda rows: [rows[0], *rows[2:]]),
    "doubled row": with_lines(lambda rows: [*rows[:2], *rows[1:]]),
    "header only": with_lines(lambda rows: rows[:1]),
    "nan": with_lines(lambda rows: [rows[0], b",".join([b"nan"] * (rows[0].count(b",") + 1))]),
    "long field": with_lines(lambda rows: [*rows, b"1" * 200_000]),
    "text": with_lines(lambda rows: [rows[0], rows[1].replace(b",", b",x", 1), *rows[2:]]),
}


def csv_cases(engine: str, state: str) -> list[Case]:
    everywhere = {"plot", "resume"} | ({"list", "report"} if state == "finished" else set())
    tried = tuple(sorted(everywhere | {"evaluate", "list"}))
    found = []
    for stem in CSVS[engine]:
        file = f"{stem}.csv"
        known = set(everywhere)
        if state == "unfinished" and (stem == "episodes" or engine == "until-solved"):
            known.remove("plot")  # curves are of metrics.csv, whose rows may be none
        for name, new in {**BYTES, **ROWS}.items():
            # what comes after the rows that a checkpoint counts is cut off
            behind = state == "unfinished" and name in ("long field", "last byte", "flip 0.9")
            refused = frozenset() if behind else frozenset(known)
            found.append(Case(f"{file} {name}", rewritten(file, new), refused, tried))
        for name, make in NODES.items():
            found.append(Case(f"{file} {name}", replaced(file, make), frozenset(known), tried))
    return found


# ------------------------------------------------------------------ arrays


Forge = Callable[[dict[str, np.ndarray], str], None]


def _other_dtype(arrays: dict[str, np.ndarray], name: str) -> None:
    arrays[name] = arrays[name].astype(np.float16 if arrays[name].dtype.kind == "f" else np.int32)


def _longer(arrays: dict[str, np.ndarray], name: str) -> None:
    more = np.zeros((1, *arrays[name].shape[1:]), arrays[name].dtype)
    arrays[name] = np.concatenate([arrays[name], more])


def _flat(arrays: dict[str, np.ndarray], name: str) -> None:
    arrays[name] = arrays[name].reshape(1, -1)


def not_finite(arrays: dict[str, np.ndarray], name: str) -> None:
    if arrays[name].dtype.kind == "f":
        arrays[name].flat[:] = np.nan
    else:
        arrays[name] = arrays[name] + np.array(1, arrays[name].dtype)


def _dropped(arrays: dict[str, np.ndarray], name: str) -> None:
    del arrays[name]


FORGED: dict[str, Forge] = {
    "other dtype": _other_dtype,
    "longer": _longer,
    "flat": _flat,
    "not finite": not_finite,
    "dropped": _dropped,
}


def forged(name: str, forge: Forge, *, resealed: bool) -> Change:
    """Another array in a checkpoint, or in a policy; resealed: with checksums that fit it."""

    def change(run_: Path) -> None:
        folder = run_ / "checkpoint"
        manifest = json.loads((folder / "manifest.json").read_text())
        arrays = dict(load((folder / manifest["file"]).read_bytes()))
        forge(arrays, name)
        data = save(arrays)
        (folder / manifest["file"]).write_bytes(data)
        if resealed:
            manifest["sha256"] = sha256(data)
            manifest["arrays"] = {n: [str(a.dtype), list(a.shape)] for n, a in arrays.items()}
            del manifest["checksum"]
            manifest["checksum"] = seal(manifest)
            (folder / "manifest.json").write_text(json.dumps(manifest))

    return change


def arrays_of(run_: Path) -> list[str]:
    (path,) = (run_ / "checkpoint").glob("state-*.safetensors")
    return sorted(load(path.read_bytes()))


def policy_change(name: str, forge: Forge) -> Change:
    """Another tensor in a policy, of a run whose result has no checksums."""

    def change(run_: Path) -> None:
        path = run_ / "policy.safetensors"
        arrays = dict(load(path.read_bytes()))
        forge(arrays, name)
        path.write_bytes(save(arrays))
        reseal(run_)

    return change


def resealed_csv_cases(engine: str) -> list[Case]:
    return [
        Case(
            f"{stem}.csv {name}",
            resealed(rewritten(f"{stem}.csv", new)),
            commands=("plot", "resume"),
        )
        for stem in CSVS[engine]
        for name, new in {**BYTES, **ROWS}.items()
        if name != "empty"  # which is a run that has just begun
    ]


WHOLE = {
    "finished": ("config.json", "result.json", "status.json", "policy.safetensors", ".lock"),
    "unfinished": ("config.json", "checkpoint/manifest.json", "status.json", ".lock"),
}


def node_cases(engine: str, state: str) -> list[Case]:
    """Other things in the place of files, and files that are no longer what they were."""
    deep = b"[" * 200_000
    cases = []
    for file in WHOLE[state]:
        if (engine, file) == ("until-solved", "policy.safetensors"):  # which leaves none
            continue
        whole = {name: replaced(file, make) for name, make in NODES.items()}
        if file not in (".lock", "policy.safetensors"):
            whole["nested"] = rewritten(file, lambda data: deep)
            whole["nested value"] = rewritten(
                file, lambda data: b'{"k": ' + deep + b"]" * 200_000 + b"}"
            )
            whole |= {name: rewritten(file, new) for name, new in BYTES.items()}
        refused = frozenset[str]() if file in ("status.json", ".lock") else {"resume"}
        for name, change in whole.items():
            # a bit of what was typed, or of the versions, makes no other run
            sure = frozenset[str]() if (file, name[:4]) == ("config.json", "flip") else refused
            cases.append(Case(f"{file} {name}", change, frozenset(sure), ("list", "resume")))
    return cases + (held_cases(engine) if state == "unfinished" else [])


def held_cases(engine: str) -> list[Case]:
    """Changes of what an unfinished run holds besides its JSON files and CSVs."""
    refused = frozenset({"resume"})
    cases = [
        Case(f"{folder} elsewhere", elsewhere(folder), refused, ("list", "plot", "resume"))
        for folder in ("checkpoint", "tensorboard")
    ]
    if engine in ("tabular", "until-solved"):
        return cases
    for name, make in NODES.items():
        cases.append(Case(f"replay.f32 {name}", replaced("replay.f32", make), refused, ("resume",)))
    for name, new in BYTES.items():
        cases.append(Case(f"replay.f32 {name}", rewritten("replay.f32", new), refused, ("resume",)))
    return cases


def array_cases(run_: Path, *, resealed: bool) -> list[Case]:
    cases = []
    for name in arrays_of(run_):
        for how, forge in FORGED.items():
            # who fits the checksums may also pass another stream or number off as the right one
            known = not resealed or how in ("other dtype", "longer", "flat")
            known = known or ("stream" not in name and "rows" not in name and how == "not finite")
            refused = frozenset({"resume"} if known else ())
            change = forged(name, forge, resealed=resealed)
            cases.append(Case(f"{name} {how}", change, refused, ("resume", "evaluate")))
    return cases


def policy_cases(run_: Path) -> list[Case]:
    cases = []
    for name in load((run_ / "policy.safetensors").read_bytes()):
        for how, forge in FORGED.items():
            # critics are not loaded; plain SAC has no k, older policies have no context space
            optional = name in ("k", "context_space") and how == "dropped"
            refused = frozenset() if name.startswith("critic") or optional else {"evaluate"}
            cases.append(
                Case(f"{name} {how}", policy_change(name, forge), frozenset(refused), ("evaluate",))
            )
    return cases


def all_cases(runs: Path, engine: str, state: str) -> list[Case]:
    """Every change that is listed of a run."""
    place = runs / engine / state
    cases = [case for file in JSON_FILES[state] for case in json_cases(place, state, file)]
    if state == "resealed":
        return cases + resealed_csv_cases(engine)
    cases += csv_cases(engine, state) + node_cases(engine, state)
    if state == "unfinished":
        return [*cases, *array_cases(place, resealed=False), *array_cases(place, resealed=True)]
    return cases + (policy_cases(place) if engine == "rollin" else [])
