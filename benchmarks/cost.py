"""What the whole paper costs: runs, hours at measured speeds, and how long on which machines.

    python -m benchmarks.cost     # results/cost/rates.csv: steps per second of each task here
    make pages                    # the tables of results/cost/README.md, from that file

Speeds are medians over rounds in which the tasks take turns, with one run alone and with one on
each core. Hours on other machines are these speeds times their cores, as if those were like ours.
"""

import argparse
import csv
import statistics
from dataclasses import dataclass
from pathlib import Path

from rollin.paper import antmaze, four_rooms, velocity
from rollin.paper.tables import all_conditions
from rollin.runs.systems import processor, versions
from rollin.sweeps.condition import Condition
from rollin.sweeps.machine import core_seconds, cores, measure_side_by_side, sample_specs

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "cost"
ROUNDS = 5
COLUMNS = ("task", "side_by_side", "steps_per_second", "lowest", "highest", "rounds",
           "processor", "rollin")  # fmt: skip

FAMILIES: dict[str, tuple[list[Condition], int]] = {
    "four rooms": (four_rooms.conditions(), four_rooms.SEEDS),
    "ant maze": (antmaze.conditions(), antmaze.SEEDS),
    "velocities": (velocity.conditions(), velocity.SEEDS),
}
MACHINES = {"laptop, 8 cores": 8, "node of 64 cores": 64, "100 nodes of 64 cores": 6400}


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
            for task, rate in measure_side_by_side(sample_specs(all_conditions()), workers):
                found.setdefault((task, workers), []).append(rate)
        print(f"round {number + 1} of {ROUNDS}", flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "rates.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (task, workers), values in found.items():
            middle, low, high = statistics.median(values), min(values), max(values)
            numbers = [f"{value:.1f}" for value in (middle, low, high)]
            about = [ROUNDS, processor(), versions()["rollin"]]
            writer.writerow([task, workers, *numbers, *about])


def read_rates(side_by_side: int) -> dict[str, float]:
    """Steps a second of a run by task, with so many side by side."""
    with (RESULTS / "rates.csv").open(newline="") as file:
        return {
            row["task"]: float(row["steps_per_second"])
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


def tables() -> str:
    """The page's tables."""
    speed = read_rates(2)
    alone = read_rates(1)
    lines = ["| steps per second | one run | two side by side |", "|---|---|---|"]
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


def texts() -> dict[str, str]:
    """The page's tables by the name of their markers."""
    return {"cost": tables(), "schedule": schedule_table()}


def main() -> None:
    argparse.ArgumentParser(description="What the whole paper costs: measure speeds.").parse_args()
    measure()


if __name__ == "__main__":
    main()
