"""`make fuzz`: changes of files and options at random, for as long as one likes.

Each is tried in a process of its own, which must not crash and must not take longer than a minute.
What goes wrong is written as a case that `python -m tests.fuzz --repeat FILE` tries again.
"""

import argparse
import json
import os
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.runs.mutations import (
    JSON_FILES,
    SPECS,
    Case,
    all_cases,
    attempt,
    make_runs,
    rewritten,
)
from tests.runs.other_mutations import (
    attempt_option,
    attempt_other,
    make_others,
    option_cases,
    other_cases,
)

LONGEST = 60.0  # seconds that one change may take
SEALED = {
    "finished": {
        "result.json": {"list", "report", "resume"},
        "policy.safetensors": {"list", "report", "resume"},
        "metrics.csv": {"list", "report", "resume"},
        "episodes.csv": {"list", "report", "resume"},
    },
    "unfinished": {
        "checkpoint/manifest.json": {"resume"},
        "checkpoint/state": {"resume"},
        "metrics.csv": {"resume"},
        "episodes.csv": {"resume"},
        "replay.f32": {"resume"},
    },
}
"""What checksums cover, and the commands that must refuse another content."""
ODD_BYTES = (b"\x00", b"\xff", b'"', b"\n", b"{", b"[" * 5000, b",", b"9" * 400, b"nan", b"-")

Try = Callable[[Path], list[str]]


class Fuzzer:
    """Runs to be changed, and ways to change them."""

    def __init__(self, place: Path) -> None:
        self.runs, self.others = place / "runs", place / "others"
        make_runs(self.runs)
        make_others(self.others, self.runs)
        self.listed = {(e, s): all_cases(self.runs, e, s) for e in SPECS for s in JSON_FILES}
        self.no_runs = other_cases(self.others)
        self.options = option_cases()

    def draw(self, rng: random.Random) -> tuple[str, Try]:
        """The name of a change, and what tries it."""
        kind = rng.choices(("listed", "bytes", "two", "other", "option"), (3, 4, 2, 2, 2))[0]
        if kind == "option":
            name, words = rng.choice(self.options)
            if rng.random() < 0.3:  # two at a time
                words = [*words, rng.choice([w for n, w in self.options if n == name])[-1]]
            return f"option {' '.join(words)}", lambda scratch: attempt_option(words, scratch)
        if kind == "other":
            folder = rng.choice(list(self.no_runs))
            case = rng.choice(self.no_runs[folder])
            return (
                f"{folder} {case.name}",
                lambda scratch: attempt_other(self.others, folder, case, scratch),
            )
        engine, state = rng.choice(list(self.listed))
        case = rng.choice(self.listed[engine, state])
        if kind == "bytes":
            case = self._bytes(rng, engine, state)
        elif kind == "two":
            case = _both(case, rng.choice(self.listed[engine, state]))
        return (
            f"{engine} {state} {case.name}",
            lambda scratch: attempt(self.runs, engine, state, case, scratch),
        )

    def _bytes(self, rng: random.Random, engine: str, state: str) -> Case:
        """Some bytes of some file changed."""
        place = self.runs / engine / state
        files = [f.relative_to(place).as_posix() for f in sorted(place.rglob("*")) if f.is_file()]
        file = rng.choice([name for name in files if "events.out" not in name])
        how, new = _blow(rng, (place / file).read_bytes())
        known = SEALED.get(state, {})
        sealed = next((known[name] for name in known if file.startswith(name)), set[str]())
        same = _means_the_same((place / file).read_bytes(), new, file, state)
        refused = frozenset[str]() if same else frozenset(sealed)
        tried = tuple(sorted(refused | {"list", "resume", rng.choice(("plot", "evaluate"))}))
        return Case(f"{file} {how}", rewritten(file, lambda data: new), refused, tried)


def _blow(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """Other bytes, somewhere."""
    at, to = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    match rng.randrange(5):
        case 0 if data:
            at = rng.randrange(len(data))
            bit = 1 << rng.randrange(8)
            return f"bit {bit} of byte {at}", data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
        case 1:
            return f"cut at {at}", data[:at]
        case 2:
            return f"without {at}:{to}", data[:at] + data[to:]
        case 3:
            return f"{at}:{to} twice", data[:to] + data[at:]
    odd = rng.choice(ODD_BYTES)
    return f"{odd[:8]!r} at {at}", data[:at] + odd + data[at:]


def _means_the_same(old: bytes, new: bytes, file: str, state: str) -> bool:
    """Whether another content may be taken for the one that was written."""
    if old == new:
        return True
    if file.endswith(".json"):
        try:
            before, after = json.loads(old), json.loads(new)
        except (ValueError, RecursionError):
            return False
        if file == "result.json":
            before.pop("seconds", None)
            after.pop("seconds", None) if isinstance(after, dict) else None
        return before == after
    # rows behind those that a checkpoint counts are cut off
    return state == "unfinished" and file.endswith((".csv", ".f32")) and new.startswith(old)


def _both(one: Case, other: Case) -> Case:
    """Two changes, of which the second may find nothing to change."""

    def change(run_: Path) -> None:
        one.change(run_)
        try:
            other.change(run_)
        except Exception:  # what the first has left is another thing altogether
            return

    return Case(f"{one.name}, and {other.name}", change, frozenset(), ("list", "resume", "plot"))


# ------------------------------------------------------------------ trying


def alone(attempted: Try, scratch: Path) -> list[str]:
    """What goes wrong in a process of its own; its crash or endless wait is wrong, too."""
    told = scratch / "told.json"
    told.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        code = 1
        try:
            told.write_text(json.dumps(attempted(scratch / "work")))
            code = 0
        except BaseException:
            told.write_text(json.dumps([f"the test itself failed\n{traceback.format_exc()}"]))
        os._exit(code)
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.005)
    else:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return [f"it hangs: no end after {LONGEST:g} s"]
    if os.WIFSIGNALED(status):
        return [f"it crashed: signal {os.WTERMSIG(status)}"]
    return json.loads(told.read_text())


def try_one(fuzzer: Fuzzer, seed: int, number: int, scratch: Path) -> tuple[str, list[str]]:
    """The change of that number, which depends on nothing but the seed and the number."""
    name, attempted = fuzzer.draw(random.Random(f"{seed} {number}"))
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "work").mkdir(parents=True)
    return name, alone(attempted, scratch)


def report(out: Path, case: dict[str, Any]) -> None:
    """Write what went wrong, to be tried again."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"case-{case['seed']}-{case['number']}.json"
    path.write_text(json.dumps(case, indent=2))
    first = case["wrong"][0]
    print(
        f"{path}: {case['name']}\n{first}\nAgain: python -m tests.fuzz --repeat {path}", flush=True
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="random if not given")
    parser.add_argument("--repeat", type=Path, default=None, help="a case that was written")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="rollin-fuzz-"))
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    try:
        fuzzer = Fuzzer(place)
        if options.repeat is not None:
            case = json.loads(options.repeat.read_text())
            name, wrong = try_one(fuzzer, case["seed"], case["number"], place / "scratch")
            print("\n".join([name, *wrong]) if wrong else f"{name}: nothing is wrong")
            return 1 if wrong else 0
        return _long(fuzzer, options, place / "scratch")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _long(fuzzer: Fuzzer, options: argparse.Namespace, scratch: Path) -> int:
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    sys.stdout = open(1, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
    print(f"seed {seed}", flush=True)
    until, number = time.monotonic() + 60 * options.minutes, 0
    kinds: Counter[str] = Counter()
    while time.monotonic() < until:
        name, wrong = try_one(fuzzer, seed, number, scratch)
        if wrong:
            kind = wrong[0].partition("it hangs")[1] or wrong[0].partition("it crashed")[1]
            kinds[kind or ("taken" if "took it" in wrong[0] else "ends badly")] += 1
            report(options.out, {"seed": seed, "number": number, "name": name, "wrong": wrong})
        number += 1
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "nothing is wrong"
    print(f"{number} changes with seed {seed}: {told}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
