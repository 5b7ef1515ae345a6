"""What `rollin theory --json` writes."""

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from rollin.cli._theory_run import Run
from rollin.tabular.magnitude import Magnitude
from rollin.tabular.step_size import StepSizeCondition
from rollin.tabular.theory import Theory


def as_json(
    theory: Theory, condition: StepSizeCondition, run: Run | None, learned: list[Magnitude]
) -> dict[str, Any]:
    """All quantities; numbers beyond floats as the natural logarithm `log` (or `loglog`)."""
    found, totals, predictor = theory.assumptions, theory.totals, theory.predictor
    return {
        "alpha": theory.alpha,
        "beta": theory.beta,
        "gamma": theory.mdp.gamma,
        "mu": "recursive" if theory.recursive else "rho",
        "roll_in_discount": theory.roll_in_discount,
        "assumptions": {
            **plain(found),
            "lipschitz_holds": found.lipschitz_holds,
            "steps_hold": found.steps_hold,
            "gap_holds": found.gap_holds,
            "shift_holds": found.shift_holds,
        },
        "constants_rho": plain(theory.constants),
        "constants_mu": plain(theory.constants_rollin),
        "smallest_probability": plain(theory.smallest),
        "step_size": {
            "T1": condition.T1,
            "L": condition.L,
            "terms": plain(condition.terms),
            "binding": condition.binding,
            "limit": condition.limit,
        },
        "totals": {
            "steps": plain(totals.steps),
            "samples_rho": plain(totals.samples_rho),
            "samples_mu": plain(totals.samples_mu),
            "failure": totals.failure,
            "contexts": [
                {**plain(c), "enters": c.enters, "verdict": c.verdict} for c in totals.contexts
            ],
        },
        "scaling": plain(theory.scaling),
        "predictor": {
            **plain(predictor),
            "R_plain": plain(predictor.R_plain),
            "R_rolled": plain(predictor.R_rolled),
        },
        "bounds": [{**plain(bound), "verdict": bound.verdict} for bound in theory.bounds],
        "identity_error": theory.identity_error,
        "run": None
        if run is None
        else {
            "path": str(run.path),
            "learning_rate": run.learning_rate,
            "predictor": plain(learned),
        },
    }


def plain(value: Any) -> Any:
    """Dataclasses, lists and magnitudes as JSON has them."""
    if isinstance(value, Magnitude):
        inner = {"log": value.log} if value.loglog is None else {"loglog": value.loglog}
        return plain(inner)
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
