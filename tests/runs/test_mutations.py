"""Every field, array and CSV of a run is changed in every way: one sentence, and never a traceback.

A sample of the changes is tried, always the same; ROLLIN_ALL_MUTATIONS=1 tries all of them.
"""

import io
import json
import os
import random
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

import tests.toys  # noqa: F401  (registers the environments)
from rollin.cli import main
from rollin.runs import driver
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.sac_options import SACRunConfig
from rollin.runs.engines.tabular_options import TabularConfig
from rollin.runs.engines.until_solved_options import UntilSolvedConfig
from rollin.runs.execute import run
from rollin.runs.files import seal, sha256
from rollin.runs.options import configured
from rollin.runs.spec import RunSpec
from tests.killing import needs_signals, stop_at

pytestmark = [pytest.mark.xdist_group("mutations"), needs_signals]  # Windows has no FIFO

ALL = bool(os.environ.get("ROLLIN_ALL_MUTATIONS"))
SAMPLE = 8  # changes of each file of each run, if not all
DEEP = {"hidden": (8, 8), "batch": 16, "eval_episodes": 1, "warmup": 32}
SPECS: dict[str, RunSpec[Any]] = {
    "tabular": RunSpec(
        "four-rooms",
        TabularConfig(steps=12, batch=50, log_every=2, alpha=0.01, threshold=0.02, beta=0.5),
    ),
    "until-solved": RunSpec(
        "combination-lock",
        UntilSolvedConfig(
            n=6, gradient="sampled", beta=0.9, mu="recursive", seed=3, steps=60, log_every=20
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
    "older": ("checkpoint/manifest.json",),
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


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Iterator[Path]:
    """A finished and an unfinished run of each engine, the latter also in the older format."""
    place = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "STATUS_SECONDS", -1.0)
        for engine, spec in SPECS.items():
            run(spec, place / engine / "finished")
            stop_at(spec, place / engine / "unfinished", STOPPED[engine])
            shutil.copytree(place / engine / "unfinished", place / engine / "older")
            make_older(place / engine / "older")
    yield place
    shutil.rmtree(place)


def make_older(run_: Path) -> None:
    """A checkpoint of the format before checksums of manifest and CSVs."""
    path = run_ / "checkpoint" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["checksum"], manifest["arrays"]
    for counted in manifest["values"]["writers"].values():
        del counted["sha256"]
    path.write_text(json.dumps(manifest | {"format": 1}))


# ------------------------------------------------------------------ trying a change


def attempt(runs: Path, engine: str, state: str, case: Case, scratch: Path) -> list[str]:
    """What goes wrong when commands meet a changed run."""
    wrong = []
    outside = snapshot(runs)
    for command in case.commands:
        copy = scratch / "copy"
        shutil.copytree(runs / engine / state, copy)
        case.change(copy)
        code, out, err = call(command, copy, scratch)
        lines = err.splitlines()
        sentence = len(lines) == 1 and lines[0].startswith("rollin: ")
        if code not in (0, 2) or (code == 2 and not sentence):
            wrong.append(f"{engine} {state}: {case.name}: {command} gave {code}\n{err[-2000:]}")
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
    }
    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([command, str(place), *more.get(command, [])])
        except BaseException:
            traceback.print_exc()
    lines = err.getvalue().splitlines()
    # a run that learned nothing says so, which is no error
    told = [line for line in lines if code != 0 or not line.startswith("rollin: ")]
    return code, out.getvalue(), "\n".join(told)


def snapshot(place: Path) -> dict[str, tuple[int, int]]:
    """Sizes and times of all files."""
    found = ((path, path.lstat()) for path in place.rglob("*"))
    return {str(path): (about.st_size, about.st_mtime_ns) for path, about in found}


def remove(place: Path) -> None:
    shutil.rmtree(place)


def sampled(cases: list[Case], seed: str) -> list[Case]:
    """The changes to try."""
    return cases if ALL else random.Random(seed).sample(cases, min(SAMPLE, len(cases)))


def check(runs: Path, engine: str, state: str, cases: list[Case], scratch: Path) -> None:
    wrong = [note for case in cases for note in attempt(runs, engine, state, case, scratch)]
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:10])


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
        if path == ("sha256",) and how in ("deleted", "object"):
            return frozenset()  # as in results of older versions
        return frozenset({"list", "report", "plot", "evaluate", "resume"})
    if file == "config.json" and path[0] in ("engine", "task", "config", "spec_hash"):
        if path == ("spec_hash",) and how in ("deleted", "null"):
            return frozenset()  # as in those of older versions
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
            found.append(Case(name, changed(file, path, other), refused, tried))
    return found


@pytest.mark.parametrize(
    ("engine", "state", "file"),
    [(e, s, f) for e in SPECS for s, files in JSON_FILES.items() for f in files],
)
def test_every_value_of_a_json_file(runs, tmp_path, engine, state, file) -> None:
    cases = json_cases(runs / engine / state, state, file)
    assert len(cases) > 100
    check(runs, engine, state, sampled(cases, f"{engine} {state} {file}"), tmp_path)


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
        for name, new in {**BYTES, **ROWS}.items():
            # what comes after the rows that a checkpoint counts is cut off
            behind = state == "unfinished" and name in ("long field", "last byte", "flip 0.9")
            refused = frozenset() if behind else frozenset(everywhere)
            found.append(Case(f"{file} {name}", rewritten(file, new), refused, tried))
        for name, make in NODES.items():
            case = Case(f"{file} {name}", replaced(file, make), frozenset(everywhere), tried)
            found.append(case)
    return found


@pytest.mark.parametrize("state", ["finished", "unfinished"])
@pytest.mark.parametrize("engine", SPECS)
def test_every_csv(runs, tmp_path, engine, state) -> None:
    check(runs, engine, state, csv_cases(engine, state), tmp_path)


@pytest.mark.parametrize("engine", SPECS)
def test_a_csv_without_checksum_is_still_no_traceback(runs, tmp_path, engine) -> None:
    cases = [
        Case(f"{stem}.csv {name}", rewritten(f"{stem}.csv", new), commands=("plot", "resume"))
        for stem in CSVS[engine]
        for name, new in {**BYTES, **ROWS}.items()
        if name != "empty"  # which is a run that has just begun
    ]
    check(runs, engine, "older", sampled(cases, engine), tmp_path)


@pytest.mark.parametrize("engine", SPECS)
def test_other_things_in_the_place_of_files(runs, tmp_path, engine) -> None:
    deep = "[" * 200_000
    for state, files in {
        "finished": ("config.json", "result.json", "status.json", "policy.safetensors", ".lock"),
        "unfinished": ("config.json", "checkpoint/manifest.json", "status.json", ".lock"),
    }.items():
        cases = []
        for file in files:
            whole = {name: replaced(file, make) for name, make in NODES.items()}
            if file not in (".lock", "policy.safetensors"):
                whole["nested"] = rewritten(file, lambda data: deep.encode())
                whole["nested value"] = rewritten(
                    file, lambda data: b'{"k": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
                )
                whole |= {name: rewritten(file, new) for name, new in BYTES.items()}
            refused = frozenset[str]() if file in ("status.json", ".lock") else {"resume"}
            for name, change in whole.items():
                # a bit of what was typed, or of the versions, makes no other run
                sure = frozenset[str]() if (file, name[:4]) == ("config.json", "flip") else refused
                case = Case(f"{file} {name}", change, frozenset(sure), ("list", "resume"))
                cases.append(case)
        check(runs, engine, state, sampled(cases, f"{engine} {state}"), tmp_path)


def test_a_deep_file_in_one_run_takes_down_no_listing(runs, tmp_path) -> None:
    for name in ("a", "b"):
        shutil.copytree(runs / "tabular" / "finished", tmp_path / name)
    for file in ("config.json", "result.json", "status.json"):
        (tmp_path / "a" / file).write_text('{"x": ' + "[" * 200_000)
    code, out, err = call("list", tmp_path, tmp_path)
    assert (code, err) == (0, "")
    assert "finished" in out
    assert "broken: " in out


# ------------------------------------------------------------------ arrays


Forge = Callable[[dict[str, np.ndarray], str], None]


def _other_dtype(arrays: dict[str, np.ndarray], name: str) -> None:
    arrays[name] = arrays[name].astype(np.float16 if arrays[name].dtype.kind == "f" else np.int32)


def _longer(arrays: dict[str, np.ndarray], name: str) -> None:
    more = np.zeros((1, *arrays[name].shape[1:]), arrays[name].dtype)
    arrays[name] = np.concatenate([arrays[name], more])


def _flat(arrays: dict[str, np.ndarray], name: str) -> None:
    arrays[name] = arrays[name].reshape(1, -1)


def _not_finite(arrays: dict[str, np.ndarray], name: str) -> None:
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
    "not finite": _not_finite,
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


@pytest.mark.parametrize("resealed", [False, True], ids=["plain", "resealed"])
@pytest.mark.parametrize("engine", SPECS)
def test_every_array_of_a_checkpoint(runs, tmp_path, engine, resealed) -> None:
    cases = []
    for name in arrays_of(runs / engine / "unfinished"):
        for how, forge in FORGED.items():
            # who fits the checksums may also pass another stream or number off as the right one
            known = not resealed or how in ("other dtype", "longer", "flat")
            known = known or ("stream" not in name and "rows" not in name and how == "not finite")
            refused = frozenset({"resume"} if known else ())
            change = forged(name, forge, resealed=resealed)
            cases.append(Case(f"{name} {how}", change, refused, ("resume", "evaluate")))
    assert len(cases) > 30
    check(runs, engine, "unfinished", sampled(cases, f"{engine} {resealed}"), tmp_path)


def test_nan_in_the_law_of_first_states_crashes_nothing(runs, tmp_path) -> None:
    case = Case("mu", forged("start/mu", _not_finite, resealed=True), frozenset({"resume"}))
    check(runs, "tabular", "unfinished", [case], tmp_path)


def policy_change(name: str, forge: Forge) -> Change:
    """Another tensor in a policy, of a run whose result has no checksums."""

    def change(run_: Path) -> None:
        path = run_ / "policy.safetensors"
        arrays = dict(load(path.read_bytes()))
        forge(arrays, name)
        path.write_bytes(save(arrays))
        result = json.loads((run_ / "result.json").read_text())
        del result["sha256"]
        (run_ / "result.json").write_text(json.dumps(result))

    return change


def test_every_tensor_of_a_policy(runs, tmp_path) -> None:
    path = runs / "rollin" / "finished" / "policy.safetensors"
    cases = []
    for name in load(path.read_bytes()):
        for how, forge in FORGED.items():
            # the critics are not loaded, and a policy without contexts may be one of plain SAC
            known = not name.startswith("critic") and (name, how) != ("k", "dropped")
            refused = frozenset({"evaluate"} if known else ())
            cases.append(Case(f"{name} {how}", policy_change(name, forge), refused, ("evaluate",)))
    check(runs, "rollin", "finished", sampled(cases, "policy"), tmp_path)


# ------------------------------------------------------------------ what is not damaged


@pytest.mark.parametrize("engine", SPECS)
def test_whole_runs_are_taken_and_go_on_to_the_same_end(runs, tmp_path, engine) -> None:
    looks = {"finished": ("list", "report", "plot", "evaluate", "resume"), "unfinished": ("plot",)}
    for state, tried in looks.items():
        check(runs, engine, state, [Case("nothing", lambda run_: None, commands=tried)], tmp_path)
    for state in ("unfinished", "older"):
        shutil.copytree(runs / engine / state, tmp_path / state)
        code, _, err = call("resume", tmp_path / state, tmp_path)
        assert (code, err) == (0, "")
        for name in ("metrics.csv", "episodes.csv", "policy.safetensors"):
            if (runs / engine / "finished" / name).exists():
                expected = (runs / engine / "finished" / name).read_bytes()
                assert (tmp_path / state / name).read_bytes() == expected


def test_a_temporary_file_that_a_kill_left_is_removed_at_the_next_look(runs, tmp_path) -> None:
    shutil.copytree(runs / "tabular" / "unfinished", tmp_path / "a")
    left = tmp_path / "a" / ".rollin-status.json.x1"
    left.write_text("{")
    assert call("list", tmp_path, tmp_path)[0] == 0
    assert not left.exists()
