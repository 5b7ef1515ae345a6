"""SAC on one core and on two: ours, jaxrl, SBX, SB3 and CleanRL taking turns in one run.

    make bench-sac    or    python -m benchmarks.sac --peers PYTHON [--only PART] [--rounds N]

Every contestant is a process of its own that runs only in its turn (the others are stopped), pinned
to the same cores. A round lets each work for about half a second; tables show medians over rounds.
Then each is started a few times for the seconds to its first update, and our own training step is
taken apart. Writes results/sac/{speed,start,parts}.csv, and from them docs/results/sac-speed.md and
docs/images/sac-speed.png.
"""

import argparse
import csv
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from matplotlib.figure import Figure

from benchmarks.peers.sac.case import Case
from rollin.report.style import BASELINE, ROLLIN, styled, to_png
from rollin.runs.rates import processor

ROOT = Path(__file__).parents[1]
DATA = ROOT / "results" / "sac"
WORKER = ROOT / "benchmarks" / "peers" / "sac" / "worker.py"
OURS = ("rollin cpu", "rollin jax")
PEERS = ("jaxrl", "SBX", "SB3", "CleanRL")
FLOORS = ("products, ours", "products, OpenBLAS", "products, MKL")
IN_PEERS_ENVIRONMENT = (*PEERS, "products, MKL")
ROUND_SECONDS = 0.5

WIDE, NARROW = ((256, 256), 256), ((32, 32), 64)
CASES = {
    "Hopper, updates": ("Hopper-v5", WIDE, False),
    "Ant, updates": ("Ant-v5", WIDE, False),
    "Hopper, training steps": ("Hopper-v5", WIDE, True),
    "Ant, training steps": ("Ant-v5", WIDE, True),
    "small networks, training steps": ("spin", NARROW, True),
}


@dataclass
class Worker:
    """A contestant's process."""

    name: str
    process: subprocess.Popen[str]
    start: float = 0.0
    count: int = 1
    rates: list[float] = field(default_factory=list)

    @classmethod
    def launch(cls, name: str, case: Case, cores: int, peers: str) -> "Worker":
        """Start it and wait for its first update; it is stopped until its turn comes."""
        python = peers if name in IN_PEERS_ENVIRONMENT else sys.executable
        threads = {n: str(case.threads) for n in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        process = subprocess.Popen(
            [python, str(WORKER), name, json.dumps(asdict(case))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads, "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"},
            preexec_fn=lambda: os.sched_setaffinity(0, allowed_cores()[:cores]),
        )
        worker = cls(name, process)
        worker.start = float(worker._line())
        worker._time(1)
        seconds = worker._time(5) / 5
        worker.count = max(1, round(ROUND_SECONDS / seconds))
        worker.signal(signal.SIGSTOP)
        return worker

    def turn(self) -> None:
        """Work for a round, then stop."""
        self.signal(signal.SIGCONT)
        self.rates.append(self.count / self._time(self.count))
        self.signal(signal.SIGSTOP)

    def signal(self, number: int) -> None:
        """Stop or continue the process."""
        self.process.send_signal(number)

    def close(self) -> None:
        """End it."""
        self.signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def _time(self, count: int) -> float:
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(f"{count}\n")
        stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        stdout: IO[str] | None = self.process.stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended with code {self.process.wait()}")
        return line


def measure(title: str, cores: int, rounds: int, peers: str) -> list[Worker]:
    """All contestants of a case on so many cores, in turn."""
    env, (hidden, batch), loop = CASES[title]
    case = Case(env, hidden, batch, loop, cores)
    names = [*OURS, *PEERS]
    if not loop and cores == 1:
        names += FLOORS
    workers = [Worker.launch(name, case, cores, peers) for name in names]
    try:
        for _ in range(rounds):
            for worker in workers:
                worker.turn()
    finally:
        for worker in workers:
            worker.close()
    return workers


Row = dict[str, str | float | int]


def rows_of(title: str, cores: int, workers: list[Worker]) -> list[Row]:
    """What goes into the CSV."""
    return [
        {
            "case": title,
            "cores": cores,
            "contestant": w.name,
            "per_second": round(statistics.median(w.rates), 2),
            "lowest": round(min(w.rates), 2),
            "highest": round(max(w.rates), 2),
            "rounds": len(w.rates),
        }
        for w in workers
    ]


def rate(rows: list[Row], case: str, cores: int, name: str) -> float | None:
    """A contestant's median rate."""
    for row in rows:
        if (row["case"], row["cores"], row["contestant"]) == (case, cores, name):
            return float(row["per_second"])
    return None


def best_peer(rows: list[Row], case: str, cores: int) -> tuple[str, float]:
    """The fastest peer; with two cores it may use only one, if that is faster."""
    found = [
        (name, value)
        for name in PEERS
        for n in range(1, cores + 1)
        if (value := rate(rows, case, n, name)) is not None
    ]
    return max(found, key=lambda pair: pair[1])


def table(rows: list[Row]) -> str:
    """The Markdown table: a row per case and number of cores."""
    names = [*OURS, *PEERS]
    lines = [
        f"| per second | cores | {' | '.join(names)} | rollin cpu / best peer |",
        f"|---|---|{'---|' * len(names)}---|",
    ]
    for title in CASES:
        for cores in (1, 2):
            rates = [rate(rows, title, cores, name) for name in names]
            if rates[0] is None:
                continue
            cells = [f"{value:,.0f}" if value else "–" for value in rates]
            peer, value = best_peer(rows, title, cores)
            ratio = f"**{rates[0] / value:.2f}×** ({peer})"
            lines.append(f"| {title} | {cores} | {' | '.join(cells)} | {ratio} |")
    return "\n".join(lines)


def floors(rows: list[Row]) -> str:
    """The Markdown table of products alone."""
    lines = [
        "| updates/s if there were products only | our kernel | OpenBLAS | MKL | rollin cpu does | "
        "of the highest |",
        "|---|---|---|---|---|---|",
    ]
    for title in CASES:
        values = [rate(rows, title, 1, name) for name in FLOORS]
        ours = rate(rows, title, 1, "rollin cpu")
        known = [v for v in values if v]
        if known and ours:
            cells = " | ".join(f"{v:,.0f}" if v else "–" for v in values)
            share = f"{100 * ours / max(known):.0f} %"
            lines.append(f"| {title.split(',')[0]} | {cells} | {ours:,.0f} | {share} |")
    return "\n".join(lines)


def starts(peers: str) -> list[Row]:
    """Seconds from the start of a process to its first update, of everybody, five times in turn."""
    env, (hidden, batch), loop = CASES["Hopper, training steps"]
    found: dict[str, list[float]] = {name: [] for name in (*OURS, *PEERS)}
    for _ in range(5):
        for name, seconds in found.items():
            worker = Worker.launch(name, Case(env, hidden, batch, loop, 1), 1, peers)
            seconds.append(worker.start)
            worker.close()
    return [
        {"contestant": name, "seconds": round(statistics.median(seconds), 2), "runs": len(seconds)}
        for name, seconds in found.items()
    ]


def parts(env: str) -> Row:
    """Microseconds that acting, storing and drawing take in our training steps, on one core."""
    from benchmarks.peers.sac.ours import RollinCpu

    os.sched_setaffinity(0, set(allowed_cores()[:1]))
    hidden, batch = NARROW if env == "spin" else WIDE
    ours = RollinCpu(Case(env, hidden, batch, True, 1))
    spent = {"act": 0.0, "append": 0.0, "draw": 0.0, "gather": 0.0}

    def watch(owner: Any, name: str) -> None:
        call = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args, **options)
            finally:
                spent[name] += time.perf_counter() - began

        setattr(owner, name, timed)

    watch(ours.learner, "act")
    for name in ("append", "draw", "gather"):
        watch(ours.replay, name)
    ours.run(50)
    spent.update(dict.fromkeys(spent, 0.0))
    count = 20_000 if env == "spin" else 1500
    began = time.perf_counter()
    ours.run(count)
    whole = time.perf_counter() - began
    micro = {name: round(1e6 * value / count, 1) for name, value in spent.items()}
    return {"env": env, **micro, "whole_step": round(1e6 * whole / count, 1)}


def allowed_cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


def versions(peers: str) -> str:
    """Machine and versions of everybody."""
    script = (
        "from importlib.metadata import version as v\n"
        "print(', '.join(f'{n} {v(n)}' for n in ('torch', 'stable-baselines3', 'sbx-rl', 'jax',"
        " 'flax', 'optax', 'tfp-nightly', 'gymnasium', 'mujoco')))"
    )
    theirs = subprocess.run([peers, "-c", script], capture_output=True, text=True, check=True)
    from rollin.runs.versions import versions as ours

    mine = ", ".join(f"{name} {value}" for name, value in ours().items())
    return f"{processor()}, {platform.system()}. Ours: {mine}. Peers: {theirs.stdout.strip()}."


def chart(rows: list[Row]) -> bytes:
    """Bars of training steps per second, one panel per case."""
    titles = [title for title, (_, _, loop) in CASES.items() if loop]
    names = [*PEERS[::-1], *OURS[::-1]]
    with styled():
        figure = Figure(figsize=(9, 2.3 * len(titles)), layout="constrained")
        for axis, title in zip(figure.subplots(len(titles)), titles, strict=True):
            for cores, shift, alpha in ((1, 0.2, 1.0), (2, -0.2, 0.5)):
                values = [rate(rows, title, cores, name) or 0.0 for name in names]
                colours = [ROLLIN if name in OURS else BASELINE for name in names]
                places = [i + shift for i in range(len(names))]
                bars = axis.barh(places, values, 0.38, color=colours, alpha=alpha)
                axis.bar_label(bars, [f"{v:,.0f}" for v in values], padding=3, fontsize=8)
            axis.set_yticks(range(len(names)), names)
            axis.set_title(f"{title} per second (dark: one core, light: two)")
            axis.grid(axis="y", visible=False)
            axis.margins(x=0.1)
        return to_png(figure)


PAGE = """# Speed of the SAC learners

*Written by `make bench-sac`. The speeds are those of one run; starts and parts are timed after it.*

{table}

Medians of {rounds} rounds of half a second, all contestants taking turns on the same cores.
"Updates" draw a batch from the replay and learn from it; "training steps" act, step the
environment, store, draw and learn. Networks are (256, 256) with batches of 256; "small networks"
are (32, 32) with batches of 64 on an environment of 5 µs a step. The best peer on two cores is the
best on two or on one of them. CleanRL and jaxrl are their structures written anew
(`benchmarks/peers/sac/`), SB3 and SBX the packages.

![Training steps per second](../images/sac-speed.png)

{floors}

The products of one update alone, on one core, in buffers that are there already; the last column
compares with the fastest of the three. From the start of the process to its first update, with
compiled kernels in the cache (medians of five starts): {starts}.

What a training step of ours spends besides the environment and the update: on Hopper {hopper}; with
small networks {small}.

{versions}
"""


def write(name: str, rows: list[Row]) -> None:
    """A CSV below results/sac."""
    with (DATA / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read(name: str) -> list[Row]:
    """A CSV below results/sac, numbers as numbers."""
    with (DATA / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = re.compile(r"[\d.]+")
    return [{n: float(v) if numbers.fullmatch(v) else v for n, v in row.items()} for row in rows]


def write_page(peers: str) -> None:
    """The page and the chart, from the CSVs alone (and versions as they are)."""
    rows = read("speed.csv")
    of = {str(row["env"]): row for row in read("parts.csv")}

    def share(env: str) -> str:
        row = of[env]
        pieces = {n: float(row[n]) for n in ("act", "append", "draw", "gather")}
        named = ", ".join(f"{name} {value:.1f} µs" for name, value in pieces.items())
        whole = float(row["whole_step"])
        return f"{named} of {whole:,.0f} µs, {100 * sum(pieces.values()) / whole:.1f} %"

    page = PAGE.format(
        table=table(rows),
        floors=floors(rows),
        starts=", ".join(f"{r['contestant']} {r['seconds']} s" for r in read("start.csv")),
        rounds=int(rows[0]["rounds"]),
        hopper=share("Hopper-v5"),
        small=share("spin"),
        versions=versions(peers),
    )
    (ROOT / "docs" / "results" / "sac-speed.md").write_text(page, encoding="utf-8")
    (ROOT / "docs" / "images" / "sac-speed.png").write_bytes(chart(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", required=True, help="Python of the peers' environment")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=("speed", "start", "parts", "page"), help="one part")
    options = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    if options.only in (None, "speed"):
        rows: list[Row] = []
        for title in CASES:
            for cores in range(1, min(2, len(allowed_cores())) + 1):
                found = rows_of(title, cores, measure(title, cores, options.rounds, options.peers))
                rows += found
                print(title, cores, *(f"{r['contestant']} {r['per_second']}" for r in found))
        write("speed.csv", rows)
    if options.only in (None, "start"):
        write("start.csv", starts(options.peers))
    if options.only in (None, "parts"):
        write("parts.csv", [parts(env) for env in ("Hopper-v5", "Ant-v5", "spin")])
    write_page(options.peers)
    rows = read("speed.csv")
    print(table(rows), floors(rows), sep="\n\n")


if __name__ == "__main__":
    main()
