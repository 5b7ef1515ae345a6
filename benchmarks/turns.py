"""Contestants as processes that take turns on the same cores, each stopped until its turn comes."""

import atexit
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Queue
from typing import IO

from benchmarks.peers.sac.case import Case

ROOT = Path(__file__).parents[1]
WORKER = ROOT / "benchmarks" / "peers" / "sac" / "worker.py"
OURS = (
    "rollin cpu",
    "rollin cpu, bfloat16",
    "rollin jax",
    "products, ours",
    "products, OpenBLAS",
)
"""Who runs in our own environment; the others run in that of the peers."""
NARROW = {
    8: {
        "NUMBA_CPU_NAME": "haswell",
        "OPENBLAS_CORETYPE": "Haswell",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        # it asks for -march=native; the last such option counts
        "RL_TOOLS_COMPILER": 'narrow() { g++ "$@" -march=haswell; }; narrow',
    }
}
"""What keeps everybody to the instructions of a machine with vectors of so many numbers."""


def environment(cores: int, lanes: int | None = None) -> dict[str, str]:
    """Of a contestant's process; lanes: numbers in a vector, the machine's own if None."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    narrow = {} if lanes is None else {"ROLLIN_LANES": str(lanes), **NARROW.get(lanes, {})}
    return {
        **os.environ,
        **dict.fromkeys(threads, str(cores)),
        "JAX_PLATFORMS": "cpu",
        "PYTHONWARNINGS": "ignore",
        **narrow,
    }


@dataclass(frozen=True)
class Turn:
    """How often a second, by the clock and by the CPU time that was used."""

    per_second: float
    per_cpu_second: float


@dataclass
class Worker:
    """A contestant's process."""

    name: str
    process: subprocess.Popen[str]
    errors: IO[str]
    start: float = 0.0
    version: str = ""
    lanes: int | None = None
    turns: dict[str, list[Turn]] = field(default_factory=dict)

    @classmethod
    def launch(
        cls,
        name: str,
        case: Case,
        peers: str,
        lanes: int | None = None,
        extra: Mapping[str, str] | None = None,
        on: Sequence[int] = (),
    ) -> "Worker":
        """Start it and wait for its first update, on the first cores or on those given; stop it."""
        python = sys.executable if name in OURS else peers
        cores = allowed_cores()[: case.threads]
        assert len(on) in (0, len(cores)), "libraries count their cores when they start"
        errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (a pipe would fill up: nobody reads it)
        process = subprocess.Popen(
            [python, str(WORKER), name, json.dumps(asdict(case))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**environment(case.threads, lanes), **(extra or {})},
        )
        os.sched_setaffinity(process.pid, on or cores)
        worker = cls(name, process, errors)
        atexit.register(worker.close)  # nobody else would end a stopped process
        said = json.loads(worker._line())
        worker.start, worker.version, worker.lanes = said["start"], said["version"], said["lanes"]
        if lanes is not None and worker.lanes not in (None, lanes):
            worker.close()
            sys.exit(f"{name} was to use vectors of {lanes} numbers and uses {worker.lanes}.")
        worker.signal(signal.SIGSTOP)
        for thread in os.listdir(f"/proc/{process.pid}/task") if on else ():
            os.sched_setaffinity(int(thread), cores)
        return worker

    def turn(self, what: str, count: int) -> Turn:
        """Do so many steps or updates, then stop."""
        self.signal(signal.SIGCONT)
        wall, used = self._time(what, count)
        self.signal(signal.SIGSTOP)
        return Turn(count / wall, count / used)

    def warm_up(self, what: str, seconds: float) -> int:
        """How many fill about so many seconds."""
        self.turn(what, 2)
        return max(1, round(seconds * self.turn(what, 5).per_second))

    def median(self, what: str) -> Turn:
        """Of all its turns."""
        turns = self.turns[what]
        return Turn(
            statistics.median(turn.per_second for turn in turns),
            statistics.median(turn.per_cpu_second for turn in turns),
        )

    def signal(self, number: int) -> None:
        """Stop or continue the process."""
        self.process.send_signal(number)

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def _time(self, what: str, count: int) -> tuple[float, float]:
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(f"{what} {count}\n")
        stdin.flush()
        wall, used = map(float, self._line().split())
        return wall, used

    def _line(self) -> str:
        stdout = self.process.stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            code = self.process.wait()
            self.errors.seek(0)
            said = self.errors.read()
            self.close()
            sys.exit(f"{self.name} ended with code {code}:\n{said}")
        return line


def launch_all(
    names: Sequence[tuple[str, Case]], peers: str, lanes: int | None = None
) -> list[Worker]:
    """Start all of them, as many at a time as there are cores, each on its own if it needs one."""
    cores = allowed_cores()
    spare: Queue[int] = Queue()
    for core in cores:
        spare.put(core)

    def launch(name: str, case: Case) -> Worker:
        core = spare.get()
        try:
            on = [core] if case.threads == 1 else []
            return Worker.launch(name, case, peers, lanes, on=on)
        finally:
            spare.put(core)

    with ThreadPoolExecutor(len(cores)) as pool:
        waiting = [pool.submit(launch, *one) for one in names]
    failed = [error for future in waiting if (error := future.exception()) is not None]
    workers = [future.result() for future in waiting if future.exception() is None]
    if failed:
        for worker in workers:
            worker.close()
        raise failed[0]
    return workers


def take_turns(workers: Sequence[Worker], what: str, rounds: int, seconds: float) -> None:
    """Each works for so many seconds a round, in turn."""
    counts = [worker.warm_up(what, seconds) for worker in workers]
    for _ in range(rounds):
        for worker, count in zip(workers, counts, strict=True):
            worker.turns.setdefault(what, []).append(worker.turn(what, count))


def end_on_request() -> None:
    """Let a request to terminate end this process as an error does, with its contestants."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def allowed_cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))
