"""What the whole paper costs: runs, hours at measured speeds, and how long on which machines.

    python -m benchmarks.cost measure     # results/cost/rates.csv: steps a second of each task here
    python -m benchmarks.cost page        # the tables of docs/results/cost.md, from that file

Speeds are medians over rounds in which the tasks take turns, with one run alone and with one on
each core. Hours on other machines are these speeds times their cores, as if those were like ours;
those of a GPU are arithmetic alone, with its assumptions beside it.
"""

import argparse
import csv
import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rollin.envs.registry import TASKS, make_contextual
from rollin.paper import antmaze, four_rooms, velocity
from rollin.runs.versions import versions
from rollin.sac.config import SACConfig
from rollin.sac.network import Layout
from rollin.streams import Streams
from rollin.sweeps.cost import core_seconds, sample_specs
from rollin.sweeps.machine import cores
from rollin.sweeps.rates import measure_side_by_side, processor
from rollin.sweeps.study import Condition

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "cost"
PAGE = ROOT / "docs" / "results" / "cost.md"
ROUNDS = 5
COLUMNS = ("task", "side_by_side", "steps_per_second", "lowest", "highest", "rounds",
           "update_mflop", "processor", "rollin")  # fmt: skip

FAMILIES: dict[str, tuple[list[Condition], int]] = {
    "four rooms": (four_rooms.cells(), four_rooms.SEEDS),
    "ant maze": (antmaze.cells(), antmaze.SEEDS),
    "velocities": (velocity.cells(), velocity.SEEDS),
}
MACHINES = {"laptop, 8 cores": 8, "node of 64 cores": 64, "100 nodes of 64 cores": 6400}

# what the GPU's column rests on
GPU_FLOPS = 10e12  # a second, sustained in float32 on batched products of 256 × 256
GPU_CALL_SECONDS = 1.2e-3  # of an update and an action of all seeds, without the products


@dataclass(frozen=True)
class Work:
    """What a family takes: runs, hours of a core, and the hours of its longest run."""

    runs: int
    core_hours: float
    longest: float


def measure() -> None:
    """Write rates.csv."""
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(ROUNDS):
        for workers in sorted({1, cores()}):
            for task, rate in measure_side_by_side(sample_specs(), workers):
                found.setdefault((task, workers), []).append(rate)
        print(f"round {number + 1} of {ROUNDS}", flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "rates.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (task, workers), values in found.items():
            middle, low, high = statistics.median(values), min(values), max(values)
            figures = [f"{value:.1f}" for value in (middle, low, high)]
            about = [ROUNDS, f"{update_flop(task) / 1e6:.0f}", processor(), versions()["rollin"]]
            writer.writerow([task, workers, *figures, *about])


def update_flop(task: str) -> float:
    """Operations of one update of a robot's agent, as XLA counts them; 0 of a tabular task."""
    if task not in TASKS:
        return 0.0
    import jax

    from rollin.sac.jax import initial_state, update

    env, config = make_contextual(task), SACConfig()
    layout = Layout(env.observation_size + env.context_size, env.action_size, config.hidden)
    env.close()
    rows = np.zeros((config.batch, layout.row), np.float32)
    noise = np.zeros((2, layout.action_size, config.batch), np.float32)
    state = initial_state(layout, config, Streams(0))
    compiled = jax.jit(update, static_argnums=(0, 1)).lower(layout, config, state, rows, noise)
    counted = compiled.compile().cost_analysis() or {}
    return float(counted["flops"])


def read_rates(side_by_side: int, column: str = "steps_per_second") -> dict[str, float]:
    """Steps a second of a run by task, with so many side by side, or another column."""
    with (RESULTS / "rates.csv").open(newline="") as file:
        return {
            row["task"]: float(row[column])
            for row in csv.DictReader(file)
            if int(row["side_by_side"]) == side_by_side
        }


def work(speed: dict[str, float]) -> dict[str, Work]:
    """What every family takes at these speeds."""
    found = {}
    for name, (cells, seeds) in FAMILIES.items():
        longest = max(core_seconds([cell], 1, speed) for cell in cells)
        hours = core_seconds(cells, seeds, speed) / 3600
        found[name] = Work(len(cells) * seeds, hours, longest / 3600)
    return found


def wall_hours(parts: list[Work], places: int) -> float:
    """At the least: all work shared out evenly, but no shorter than the longest run."""
    return max(sum(w.core_hours for w in parts) / places, *(w.longest for w in parts))


def gpu_hours(cells: list[Condition], seeds: int) -> float:
    """Of one GPU that takes all seeds of a cell at once; a core each steps their robots between."""
    with (ROOT / "results" / "robots" / "steps.csv").open(newline="") as file:
        stepping = {row["task"]: float(row["step"]) * 1e-6 for row in csv.DictReader(file)}
    flop = read_rates(1, "update_mflop")
    total = 0.0
    for cell in cells:
        products = seeds * 1e6 * flop[cell.task] / GPU_FLOPS
        total += cell.config.steps * (stepping[cell.task] + GPU_CALL_SECONDS + products)
    return total / 3600


def tables() -> str:
    """The page's tables."""
    speed = read_rates(2)
    alone = read_rates(1)
    lines = ["| task | one run alone | two side by side |", "|---|---|---|"]
    lines += [f"| {task} | {alone[task]:,.0f} | {speed[task]:,.0f} |" for task in speed]
    parts = work(speed)
    lines += ["", "| | runs | core-hours | longest run, hours |", "|---|---|---|---|"]
    for name, w in parts.items():
        lines.append(f"| {name} | {w.runs:,} | {_hours(w.core_hours)} | {_hours(w.longest)} |")
    whole = sum(w.core_hours for w in parts.values())
    runs, longest = sum(w.runs for w in parts.values()), max(w.longest for w in parts.values())
    lines.append(f"| **all** | **{runs:,}** | **{_hours(whole)}** | **{_hours(longest)}** |")
    heads = [*parts, "all"]
    lines += ["", f"| hours on | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name, places in MACHINES.items():
        hours = [wall_hours([w], places) for w in parts.values()]
        hours.append(wall_hours(list(parts.values()), places))
        lines.append(f"| {name} | {' | '.join(_hours(h) for h in hours)} |")
    robots = [gpu_hours(*FAMILIES[name]) for name in ("ant maze", "velocities")]
    shown = ["–", *(_hours(h) for h in robots), _hours(sum(robots))]
    lines.append(f"| one GPU, 8 seeds at once (not measured) | {' | '.join(shown)} |")
    return "\n".join(lines)


def _hours(hours: float) -> str:
    """Three digits of it, as far as that makes sense."""
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def schedule_table() -> str:
    """The simulation's rows."""
    with (RESULTS / "schedule.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [
        "| places | sweep killed | errors | lost | finished | given up | done twice | forgotten | "
        "overhead |",
        "|---" * 9 + "|",
    ]
    for row in rows:
        numbers = [f"{int(float(row[name])):,}" for name in (
            "slots", "killed_sweeps", "errors", "lost", "finished", "failed_for_good",
            "run_twice", "forgotten")]  # fmt: skip
        lines.append(f"| {' | '.join(numbers)} | {100 * float(row['overhead']):.2f} % |")
    return "\n".join(lines)


def write_page() -> None:
    """Put the tables between their marks."""
    text = PAGE.read_text()
    for name, table in (("cost", tables()), ("schedule", schedule_table())):
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + table + end + rest.partition(end)[2]
    PAGE.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the whole paper costs.")
    parser.add_argument("what", choices=["measure", "page"])
    {"measure": measure, "page": write_page}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
