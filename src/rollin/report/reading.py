"""Reads a finished run from its directory; what cannot be used is refused with the reason."""

import csv
import math
from collections.abc import Mapping
from typing import Any

from rollin.curriculum.progress import Advance, Progress
from rollin.errors import RollinError, reason
from rollin.report.checks import (
    check_figures,
    check_order,
    check_places,
    is_number,
    number,
    objects,
    whole,
)
from rollin.report.learning_curve import LearningCurve
from rollin.report.records import RollinRecord, RunRecord, TabularRecord
from rollin.report.runs_csv import FIGURES
from rollin.runs.directory import RunDirectory
from rollin.runs.files import read_json
from rollin.runs.rows import read_metrics
from rollin.runs.spec import RunSpec, TabularConfig, spec_from_json

CURVE_POINTS = 50  # of the return of a tabular run
NEEDED = {
    "tabular": FIGURES,
    "rollin": ("kappa", "k", "K", "env_steps", "seconds"),
    "sac": ("eval_return", "env_steps", "seconds"),
}


def read_record(run: RunDirectory) -> RunRecord:
    """A finished run as its directory has it."""
    try:
        return _read(run)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, csv.Error) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise RollinError(f"its files cannot be read: {what}") from error
    except OSError as error:
        raise RollinError(f"{error.filename} could not be read: {reason(error)}") from error


def _read(run: RunDirectory) -> RunRecord:
    result, described = run.result(), read_json(run.path / "config.json")
    spec = spec_from_json(described)
    for name in ("seed", "steps"):
        whole(vars(spec.config), name)
    for name in NEEDED[spec.config.engine]:
        number(result, name)
    check_figures(result)
    fingerprint = str(described.get("fingerprint") or "")
    if spec.config.engine == "tabular":
        check_places(result)
        return _read_tabular(run, spec, result, fingerprint)
    if spec.config.engine == "rollin":
        check_places(result)
        return _read_rollin(run, spec, result, fingerprint)
    return RunRecord(spec, result, run.path, fingerprint=fingerprint)


def _read_rollin(
    run: RunDirectory, spec: RunSpec[Any], result: Mapping[str, Any], fingerprint: str
) -> RollinRecord:
    milestones = result["milestones"]
    if not isinstance(milestones, dict):
        raise RollinError(f"milestones must be an object, got {milestones!r}")
    for figures in objects(list(milestones.values()), "milestones"):
        number(figures, "kappa")
        check_figures(figures)
    curve, progress = LearningCurve.read(run), _progress(result)
    return RollinRecord(spec, result, run.path, curve, progress, fingerprint=fingerprint)


def _progress(result: Mapping[str, Any]) -> Progress:
    top, k = whole(result, "K"), whole(result, "k")
    kappas = result["curriculum"]["kappas"]
    if len(kappas) != top + 1 or not all(is_number(v) and 0 <= v <= 1 for v in kappas):
        raise RollinError(f"curriculum.kappas must be {top + 1} numbers between 0 and 1")
    advances = [
        Advance(whole(a, "step"), whole(a, "k"), str(a["reason"]))
        for a in objects(result["advances"], "advances")
    ]
    check_order([a.step for a in advances], "advances")
    reached = [a.k for a in advances]
    if any(not 1 <= there <= top for there in reached) or (reached and reached[-1] != k):
        raise RollinError(f"advances must lead to k = {k} of K = {top}, got {reached}")
    return Progress(top, k, advances, [float(kappa) for kappa in kappas])


def _read_tabular(
    run: RunDirectory, spec: RunSpec[TabularConfig], result: dict[str, Any], fingerprint: str
) -> TabularRecord:
    metrics = read_metrics(run.path / "metrics.csv")
    steps, returns = metrics.get("step"), metrics.get("return_horizon")
    if not (steps and returns):
        raise RollinError("metrics.csv has no rows")
    check_order(steps, "metrics.csv")
    if not all(map(math.isfinite, returns)):
        raise RollinError("metrics.csv has a return that is not finite")
    stride = max(1, math.ceil(len(steps) / CURVE_POINTS))
    kept = slice(stride - 1, None, stride)
    switches = objects(result["switches"], "switches")
    at, rho, mu = (
        [number(s, name) for s in switches] for name in ("step", "success_rho", "success_mu")
    )
    check_order(at, "switches")
    if len(at) > result["K"]:
        raise RollinError(f"there are {len(at)} switches, but K = {result['K']}")
    curve = (steps[kept], returns[kept])
    return TabularRecord(spec, result, run.path, at, rho, mu, *curve, fingerprint=fingerprint)
