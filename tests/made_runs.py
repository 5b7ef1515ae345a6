"""Finished runs written by hand through the real classes, without training."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rollin.analysis.collect import Collection
from rollin.analysis.results import StudyResults
from rollin.curriculum.progress import Advance, Progress
from rollin.paper.four_rooms import condition
from rollin.paper.tables import find_table, tables
from rollin.report.page import make_report
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import condition_key
from rollin.runs.engines.rollin_metrics import COLUMNS as ROLLIN_COLUMNS
from rollin.runs.engines.rollin_record import EPISODE_COLUMNS
from rollin.runs.engines.sac_run import COLUMNS as SAC_COLUMNS
from rollin.runs.engines.tabular_run import COLUMNS as TABULAR_COLUMNS
from rollin.runs.files import read_json, write_json
from rollin.runs.rows import MetricsWriter
from rollin.runs.spec import Membership, RunSpec
from rollin.runs.versions import versions
from rollin.runs.windows import milestones, quantities_at
from rollin.texts import csv_text

COMMAND = "rollin reproduce made-up"
STUDIES = list(tables().values())
"""Those that runs may belong to."""
EPISODE = 100  # steps of each
COUNTS = ("episodes", "updates_main", "updates_exp", "rollin_episodes", "rollin_steps")
EVALUATED = ("eval_return", "eval_success", "eval_return_final", "eval_success_final")


def write_rows(path: Path, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    """A CSV of a run; what a row does not name is 0."""
    writer = MetricsWriter(path, columns)
    for row in rows:
        writer.write({name: row.get(name, 0.0) for name in columns})
    writer.flush()


def tabular_run(
    path: Path, spec: RunSpec[Any], k: int, total: float = 0.5, of: Membership | None = None
) -> Path:
    """A tabular run that walked evenly to context k of 16 and ended with a return."""
    run = RunDirectory.claim(path, spec, "made up", COMMAND, of)
    steps = spec.config.steps
    rows = [
        {"step": steps * i // 10, "k": k * i // 10, "kappa": k * i // 10 / 16,
         "return_horizon": total * i / 10}
        for i in range(1, 11)
    ]  # fmt: skip
    write_rows(path / "metrics.csv", TABULAR_COLUMNS, rows)
    switches = [
        {"step": steps * i // (k + 1), "k": i, "reason": "", "success_rho": 0.1, "success_mu": 0.2}
        for i in range(1, k + 1)
    ]
    values = {"kappa": k / 16, "k": k, "K": 16, "final_return": total, "success": 0.5}
    values |= {"final_return_infinite": total, "env_steps": 1, "rollin_steps": 0}
    values |= {"rollin_steps_expected": 0, "gradient_steps": steps, "seconds": 36.0}
    ended = {"switches": switches, "spec_hash": spec.hash, "versions": versions()}
    run.write_result({**values, **ended})
    return path


def deep_run(
    path: Path,
    spec: RunSpec[Any],
    advances: list[int],
    gain: float = 1.0,
    command: str = COMMAND,
) -> Path:
    """A run of ROLLIN in episodes of 100 steps, which advanced at some steps.

    The return of an episode is gain times its last step, its x-velocity a thousandth of that.
    """
    run = RunDirectory.claim(path, spec, "made up", command)
    config = spec.config
    contexts = 11
    kappas = [i / (contexts - 1) for i in range(contexts)]
    first = contexts - 1 if config.algorithm.method == "scratch" else 0
    walked = [Advance(step, first + i, "mastered") for i, step in enumerate(advances, 1)]
    progress = Progress(contexts - 1, first + len(walked), walked, kappas)
    ends = range(EPISODE, config.steps + 1, EPISODE)
    episodes = [
        {"step": end, "return": gain * end, "length": EPISODE, "x_velocity": gain * end / 1000}
        for end in ends
    ]
    write_rows(path / "episodes.csv", (*EPISODE_COLUMNS, "x_velocity"), episodes)
    every = max(1, config.steps // 10)
    rows = [
        {"step": step, "kappa": progress.kappa_at(step)}
        for step in range(every, config.steps + 1, every)
    ]
    write_rows(path / "metrics.csv", ROLLIN_COLUMNS, rows)
    columns = {name: [row[name] for row in episodes] for name in episodes[0]}
    told = (config.steps, progress, columns, ("x_velocity",), config.last)
    run.write_result(
        {
            **quantities_at(*told),
            "milestones": milestones(*told),
            "k": progress.k,
            "K": progress.K,
            "env_steps": config.steps,
            "seconds": 72.0,
            "advances": [asdict(advance) for advance in walked],
            "curriculum": {"contexts": [[kappa] for kappa in kappas], "kappas": kappas,
                           "thresholds": [0.0] * contexts},
            **dict.fromkeys(COUNTS, 0),
            **dict.fromkeys(EVALUATED, 0.0),
            "spec_hash": spec.hash,
            "versions": versions(),
        }
    )  # fmt: skip
    return path


def sac_run(path: Path, spec: RunSpec[Any], total: float) -> Path:
    """A run of plain SAC that ended with a return."""
    run = RunDirectory.claim(path, spec, "made up", "rollin train")
    rows = [{"step": spec.config.steps, "eval_return": total}]
    write_rows(path / "metrics.csv", SAC_COLUMNS, rows)
    counts = {"env_steps": spec.config.steps, "episodes": 1, "updates": 1, "seconds": 1.0}
    ended = {"spec_hash": spec.hash, "versions": versions()}
    run.write_result({"eval_return": total, **counts, **ended})
    return path


def write_sweep(
    out: Path,
    names: str | Sequence[str],
    runs: dict[str, RunSpec[Any]],
    scale: float = 1.0,
    commands: Sequence[str] = (COMMAND,),
) -> None:
    """The description of a sweep of tables of the paper, as older versions wrote it."""
    planned = {name: spec.hash for name, spec in runs.items()}
    tables_of = [names] if isinstance(names, str) else list(names)
    described = {"family": "made-up", "scale": scale, "tables": tables_of,
                 "commands": list(commands), "versions": versions()}  # fmt: skip
    write_json(out / "sweep.json", {**described, "runs": planned})


def report(collection: Collection, out: Path, **options: Any) -> list[StudyResults]:
    """A page of runs, which may belong to any of the paper's tables."""
    return make_report(collection, out, STUDIES, **options)


def as_older(run: Path) -> None:
    """Let config.json be of a version that wrote no checksums: it did not name the processor."""
    config = json.loads((run / "config.json").read_text())
    config.pop("processor", None)
    (run / "config.json").write_text(json.dumps(config))


def rooms(out: Path, ks: dict[float, list[int]], scale: float = 1.0, reward: str = "hard") -> Path:
    """Runs of one row of four rooms: the last context of each seed by β."""
    for beta, reached in ks.items():
        one = condition(reward, 0.001, beta)
        for seed, k in enumerate(reached):
            place = out / f"{scale:g}" / one.name / f"seed={seed}"
            tabular_run(place, one.spec(seed, scale), k, k / 16)
    return out


def robots(out: Path, names: dict[str, list[int]], scale: float = 0.01, seeds: int = 2) -> Path:
    """Runs of hopper: the steps of the advances by method."""
    for one in find_table("velocity-summary").conditions:
        if one.labels["env"] == "hopper" and one.labels["method"] in names:
            for seed in range(seeds):
                gain = 1.0 + seed + (one.labels["method"] == "rollin")
                advances = names[one.labels["method"]]
                deep_run(out / one.name / f"seed={seed}", one.spec(seed, scale), advances, gain)
    return out


def with_names(out: Path, name: str) -> Path:
    """Runs and a sweep whose files say one thing wherever a file may hold a name."""
    conditions = find_table("velocity-summary").conditions
    task = next(c for c in conditions if c.labels["method"] == "rollin")
    keys = {beta: condition_key(task.spec(0, 0.01, beta=float(beta))) for beta in ("0", "0.1")}
    for seed in range(2):
        for beta in ("0", "0.1"):
            path = out / beta / f"seed={seed}"
            spec = task.spec(seed, 0.01, beta=float(beta))
            deep_run(path, spec, [], command=name)
            run = RunDirectory(path)
            config, result = read_json(path / "config.json"), read_json(path / "result.json")
            labels = {"beta": beta, name: f"{name} {beta}"}
            condition = Membership(name, labels, 0.01, keys[beta])
            write_json(path / "config.json", config | condition.to_json()
                       | {"versions": {"rollin": name}, "processor": name})  # fmt: skip
            write_json(path / "status.json", {"state": name, "host": name, "error": name})
            episodes = path / "episodes.csv"
            header, _, rows = episodes.read_text().partition("\n")
            columns = ["x" if c == "x_velocity" else c for c in header.split(",")]
            line = csv_text([[name if column == "x" else column for column in columns]])
            episodes.write_text(line + rows, newline="")
            del result["sha256"]
            renamed = {n.replace("x_velocity", name): v for n, v in result.items()}
            run.write_result(renamed | {"warning": name, "versions": {"rollin": name}})
    entries = [
        {"labels": {"beta": beta, name: f"{name} {beta}"}, "task": task.task,
         "options": {"steps": 10_000}, "key": keys[beta]}
        for beta in ("0", "0.1")
    ]  # fmt: skip
    study = {"name": name, "title": name, "conditions": entries, "seeds": 2, "baseline": "",
             "readings": [["kappa", None], [name, None]]}  # fmt: skip
    write_json(out / "sweep.json", {"family": name, "scale": 0.01, "commands": [name],
                                    "runs": {name: name}, "studies": [study]})  # fmt: skip
    return out
