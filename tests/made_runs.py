"""Finished runs written by hand through the real classes, without training."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rollin.analysis.collect import Collection
from rollin.analysis.results import StudyResults
from rollin.curriculum.progress import Advance, Progress
from rollin.paper.four_rooms import condition
from rollin.paper.tables import find_table, tables
from rollin.report.page import make_report
from rollin.runs.directory import KEPT, RunDirectory, sealed
from rollin.runs.engines import condition_key
from rollin.runs.engines.rollin_options import METRICS
from rollin.runs.engines.rollin_run import EPISODE_COLUMNS, KAPPAS, means_at
from rollin.runs.engines.sac import METRICS as SAC_METRICS
from rollin.runs.engines.tabular import METRICS as TABULAR_METRICS
from rollin.runs.files import file_sha256, read_json, write_json
from rollin.runs.metrics import Metric, MetricsWriter, plain
from rollin.runs.spec import Membership, RunSpec
from rollin.runs.systems import versions
from rollin.untrusted import csv_text

COMMAND = "rollin reproduce made-up"
STUDIES = list(tables().values())
"""Those that runs may belong to."""
EPISODE = 100  # steps of each


def write_rows(path: Path, columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    """A CSV of a run; what a row does not name is 0."""
    writer = MetricsWriter(path, columns)
    for row in rows:
        writer.write({name: row.get(name, 0) for name in columns})
    writer.flush()


def tabular_run(
    path: Path, spec: RunSpec[Any], k: int, total: float = 0.5, of: Membership | None = None
) -> Path:
    """A tabular run that walked evenly to context k of 16 and ended with a return."""
    steps = spec.config.steps
    rows = [
        {"step": steps * i // 10, "k": k * i // 10, "kappa": k * i // 10 / 16,
         "return": total * i / 10, "return_infinite": total * i / 10, "success": 0.5}
        for i in range(1, 11)
    ]  # fmt: skip
    rows[-1] |= {"k": k, "kappa": k / 16, "return": total, "return_infinite": total}
    chances = {"success_rho": 0.1, "success_mu": 0.2}
    advances = [
        {"step": steps * i // (k + 1), "k": i, "reason": "", "numbers": chances}
        for i in range(1, k + 1)
    ]
    outcome = {"k": k, "K": 16, "advances": advances, "seconds": 36.0, "updates": steps}
    return made_run(path, spec, COMMAND, TABULAR_METRICS, rows, outcome, of)


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
    config = spec.config
    contexts = 11
    kappas = [i / (contexts - 1) for i in range(contexts)]
    first = contexts - 1 if config.algorithm.method == "scratch" else 0
    walked = [Advance(step, first + i, "mastered") for i, step in enumerate(advances, 1)]
    progress = Progress(contexts - 1, first + len(walked), walked, kappas)
    episodes = [
        {"step": end, "return": gain * end, "length": EPISODE, "x_velocity": gain * end / 1000}
        for end in range(EPISODE, config.steps + 1, EPISODE)
    ]
    columns = {name: [row[name] for row in episodes] for name in episodes[0]}
    rows = []
    for step in sorted({config.steps * i // d for d in (10, 6) for i in range(1, d + 1)}):
        means = means_at(step, columns, ("x_velocity",), config.last)
        kappa_mean = progress.mean_kappa(max(step - config.last, 0), step)
        row = {"step": step, "k": progress.k_at(step), "kappa": progress.kappa_at(step)}
        told = {name: math.nan if mean is None else mean for name, mean in means.items()}
        rows.append(row | {"kappa_mean": kappa_mean, **told})
    outcome = {
        "k": progress.k,
        "K": progress.K,
        "env_steps": config.steps,
        "updates": 0,
        "rollin_steps": 0,
        "seconds": 72.0,
        "advances": [asdict(advance) for advance in walked],
        "curriculum": {"contexts": [[kappa] for kappa in kappas], "kappas": kappas,
                       "thresholds": [0.0] * contexts},
    }  # fmt: skip
    metrics = [
        replace(m, result=m.result and not (first and m.name in KAPPAS))
        for m in METRICS
        if not m.name.startswith("goals")
    ]
    tables = {"episodes.csv": ((*EPISODE_COLUMNS, "x_velocity"), episodes)}
    return made_run(path, spec, command, metrics, rows, outcome, tables=tables)


def sac_run(path: Path, spec: RunSpec[Any], total: float) -> Path:
    """A run of plain SAC that ended with a return."""
    rows = [{"step": spec.config.steps, "return": total}]
    costs = {"env_steps": spec.config.steps, "updates": 0, "seconds": 1.0}
    return made_run(path, spec, "rollin train", SAC_METRICS, rows, costs)


def made_run(
    path: Path,
    spec: RunSpec[Any],
    command: str,
    metrics: Sequence[Metric],
    rows: list[dict[str, Any]],
    outcome: dict[str, Any],
    of: Membership | None = None,
    tables: Mapping[str, tuple[Sequence[str], list[dict[str, Any]]]] = {},
) -> Path:
    """A finished run of these rows of metrics.csv, of which the last is its result."""
    results = {metric.name: metric.text for metric in metrics if metric.result}
    run = RunDirectory.claim(path, spec, "made up", command, of, results=results)
    columns = ("step", *(metric.name for metric in metrics))
    for name, table in {"metrics.csv": (columns, rows), **tables}.items():
        write_rows(path / name, *table)
    last = {name: plain(rows[-1].get(name, 0)) for name in columns}
    ended = {"spec_hash": spec.hash, "versions": versions()}
    run.write_result({**last, **outcome, **ended})
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


def reseal(run: Path, **values: Any) -> None:
    """Other values in a run's result.json, with checksums that agree; ... takes one away."""
    found = json.loads((run / "result.json").read_text()) | values
    kept = {name: value for name, value in found.items() if value is not ...}
    sums = {p.name: file_sha256(p, sys.maxsize) for p in run.iterdir() if p.name in KEPT}
    kept["sha256"] = sums
    kept["sha256"] = {**sums, "result.json": sealed(kept)}
    (run / "result.json").write_text(json.dumps(kept))


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
            results = {n.replace("x_velocity", name): name for n in config["results"]}
            write_json(path / "config.json", config | condition.to_json() | {"results": results}
                       | {"versions": {"rollin": name}, "processor": name})  # fmt: skip
            write_json(path / "status.json", {"state": name, "host": name, "error": name})
            for file in (path / "episodes.csv", path / "metrics.csv"):
                header, _, rows = file.read_text().partition("\n")
                columns = [name if c == "x_velocity" else c for c in header.split(",")]
                file.write_text(csv_text([columns]) + rows, newline="")
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
