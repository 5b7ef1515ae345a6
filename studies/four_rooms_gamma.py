"""Four rooms: which γ gives the published progress and the published returns?

    python -m studies.four_rooms_gamma run --jobs 2     # runs/four-rooms-gamma; goes on by itself
    python -m studies.four_rooms_gamma collect          # results/four-rooms-gamma
    make pages                                          # the tables of docs/results/four-rooms.md

The paper does not state γ. Seed 0 is for choosing a setting; seeds 10 – 19, which took part
in no choice, are for reporting it. What the settings can give at all, without any run, is in
`studies.four_rooms_returns`.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.paper.four_rooms import HEADLINE_BETA, ROWS
from rollin.paper.four_rooms import condition as printed
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.files import make_directory, write_atomically
from rollin.runs.records import MetricAt, write_records
from rollin.runs.spec import Job, JobEvent
from rollin.sweeps.condition import Condition
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.queue import run_jobs
from rollin.sweeps.study import Study

RECORDS = Path(__file__).parents[1] / "results" / "four-rooms-gamma"
BETAS = (0.0, HEADLINE_BETA)
CHOOSING = range(1)


@dataclass(frozen=True)
class Setting:
    """A reading of the paper, why it is tried, and the rows of the table it is tried on."""

    name: str
    why: str
    changes: dict[str, Any]
    rows: tuple[tuple[str, float], ...] = ROWS

    @property
    def labels(self) -> dict[str, str]:
        """What its conditions share."""
        adam = "reset" if self.changes.get("reset_adam", True) else "kept"
        return {"gamma": f"{self.changes.get('gamma', 0.95):g}", "adam": adam}

    def condition(self, reward: str, alpha: float, beta: float) -> Condition:
        """A place of the paper's table, with this reading."""
        known = printed(reward, alpha, beta)
        options = {**known.options, **self.changes}
        return Condition({**self.labels, **known.labels}, known.task, options, known.published)


# Every reason was written before the setting was run.
SETTINGS = (
    Setting("γ = 0.95", "our default", {}),
    Setting(
        "γ = 0.973",
        "collecting at the edge of the easy reward is worth 10.62 over 50 steps",
        {"gamma": 0.973},
    ),
    Setting(
        "γ = 0.963",
        "the same over an infinite horizon",
        {"gamma": 0.963},
    ),
    Setting("γ = 0.97", "the round number below 0.973", {"gamma": 0.97}),
    Setting(
        "γ = 0.975",
        "the round number above it: a policy 5 or 6 % below the best edge collector "
        "would have both returns",
        {"gamma": 0.975},
    ),
    Setting(
        "γ = 0.973, Adam kept",
        "both returns need a hard policy 1 % farther from the edge collector than the easy one; "
        "at γ = 0.95 keeping Adam's moments leaves it farther away",
        {"gamma": 0.973, "reset_adam": False},
        tuple((reward, alpha) for reward, alpha in ROWS if alpha == 0.001),
    ),
    Setting(
        "γ = 0.93",
        "where, at α = 0.01 and over an infinite horizon, collecting at the edge of the hard "
        "reward is worth the entropy it costs up to context 8 and not beyond; published: 8, 9",
        {"gamma": 0.93},
        tuple((reward, alpha) for reward, alpha in ROWS if alpha == 0.01),
    ),
)
# The default, and the two settings that are nearest to the published returns on seed 0. The second
# of them was added when the other had failed on these seeds, before any of its own was seen.
REPORTED = {"γ = 0.95": range(10, 20), "γ = 0.963": range(10, 15), "γ = 0.973": range(10, 15)}


STUDY = Study(
    "four-rooms-gamma",
    tuple(
        setting.condition(reward, alpha, beta)
        for setting in SETTINGS
        for reward, alpha in setting.rows
        for beta in BETAS
    ),
    (MetricAt("kappa"), MetricAt("return"), MetricAt("return_infinite")),
    seeds=1,
    rows=("gamma", "adam", "reward", "alpha"),
    columns=("method", "beta"),
    baseline="method=baseline",
    title="Four rooms: which discount?",
)


def jobs(out: Path) -> Iterator[Job]:
    """All runs: those for choosing first, then those for reporting."""
    plan = [(setting, CHOOSING) for setting in SETTINGS]
    plan += [(setting, REPORTED[setting.name]) for setting in SETTINGS if setting.name in REPORTED]
    by_labels = {condition.name: condition for condition in STUDY.conditions}
    for setting, seeds in plan:
        for seed in seeds:
            for reward, alpha in reversed(setting.rows):
                for beta in BETAS:
                    one = by_labels[setting.condition(reward, alpha, beta).name]
                    place = out / one.directory / f"seed={seed}"
                    member = one.membership(STUDY.shared)
                    yield Job(f"{one.name}, seed {seed}", one.spec(seed), place, member)


def run(out: Path, workers: int) -> None:
    """Do what is not yet done."""
    todo = [job for job in jobs(out) if not RunDirectory(job.out).finished]

    def tell(event: JobEvent) -> None:
        if event.is_end:
            print(event.kind, event.job.name, event.status.get("error", ""), flush=True)

    run_jobs(todo, LocalExecutor(workers, "python -m studies.four_rooms_gamma run"), on_event=tell)


def collect(out: Path, results: Path = RECORDS) -> None:
    """The records of all finished runs."""
    planned = list(jobs(out))
    done = [run_ for job in planned if (run_ := RunDirectory(job.out)).finished]
    make_directory(results)
    for name, text in write_records([read_record(run_) for run_ in done]).items():
        write_atomically(results / name, text)
    print(f"{len(done)} of {len(planned)} runs in {results}")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Four rooms: which γ?")
    parser.add_argument("what", choices=["run", "collect"])
    parser.add_argument("--out", type=Path, default=Path("runs/four-rooms-gamma"))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    try:
        if options.what == "run":
            run(options.out, options.jobs)
        else:
            collect(options.out)
    except RollinError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
