"""Published progress on antmaze-umaze: κ at 3 million steps, mean ± standard error over 8 seeds.

Copied from the paper's tables of vanilla goal reaching, relabelling and Go-Explore, which hold the
summary as well. All numbers in this file are the paper's.
"""

from typing import Any

from rollin.runs.records import MetricAt
from rollin.sweeps.condition import Condition, Published

TASK = "antmaze-umaze"
STEP = 3_000_000
SEEDS = 8
BETAS = (0.0, 0.1, 0.2, 0.5, 0.75, 0.9)

# setting, exploration noise, sampling, 1/Δ, then one cell for each of BETAS
_PROGRESS = (
    "vanilla   0    uniform  24 0.40±0.02 0.49±0.04 0.51±0.05 0.57±0.04 0.55±0.02 0.49±0.02",
    "vanilla   0    uniform  18 0.36±0.01 0.39±0.01 0.46±0.01 0.54±0.03 0.46±0.03 0.50±0.02",
    "vanilla   0    uniform  12 0.36±0.00 0.44±0.01 0.41±0.02 0.47±0.02 0.56±0.05 0.56±0.02",
    "vanilla   0    geometric 24 0.82±0.08 0.92±0.02 0.95±0.02 0.88±0.01 0.81±0.01 0.70±0.02",
    "vanilla   0    geometric 18 0.68±0.07 0.74±0.07 0.76±0.06 0.78±0.03 0.75±0.02 0.72±0.02",
    "vanilla   0    geometric 12 0.38±0.03 0.55±0.04 0.55±0.04 0.64±0.06 0.69±0.06 0.67±0.03",
    "relabel   0    uniform  24 0.89±0.03 0.91±0.03 0.85±0.04 0.86±0.02 0.86±0.02 0.80±0.02",
    "relabel   0    uniform  18 0.76±0.03 0.81±0.01 0.85±0.04 0.79±0.01 0.84±0.03 0.68±0.04",
    "relabel   0    uniform  12 0.66±0.04 0.74±0.01 0.73±0.03 0.66±0.06 0.67±0.05 0.69±0.03",
    "relabel   0    geometric 24 0.76±0.02 0.78±0.01 0.78±0.03 0.82±0.02 0.87±0.02 0.83±0.02",
    "relabel   0    geometric 18 0.72±0.02 0.76±0.01 0.76±0.02 0.78±0.04 0.85±0.03 0.81±0.01",
    "relabel   0    geometric 12 0.72±0.03 0.73±0.00 0.73±0.00 0.73±0.03 0.69±0.04 0.66±0.04",
    "go-explore 0.1  uniform  24 0.37±0.02 0.52±0.07 0.54±0.06 0.51±0.06 0.39±0.02 0.37±0.01",
    "go-explore 0.1  uniform  18 0.38±0.01 0.37±0.01 0.36±0.01 0.38±0.01 0.38±0.01 0.35±0.00",
    "go-explore 0.1  uniform  12 0.38±0.01 0.38±0.01 0.36±0.00 0.39±0.01 0.36±0.00 0.36±0.00",
    "go-explore 0.1  geometric 24 0.82±0.07 0.95±0.02 0.91±0.02 0.92±0.02 0.71±0.02 0.45±0.01",
    "go-explore 0.1  geometric 18 0.57±0.09 0.71±0.08 0.65±0.07 0.63±0.07 0.62±0.02 0.43±0.01",
    "go-explore 0.1  geometric 12 0.42±0.03 0.43±0.02 0.38±0.04 0.49±0.04 0.45±0.02 0.39±0.01",
    "go-explore 0.25 uniform  24 0.38±0.02 0.49±0.06 0.48±0.05 0.55±0.07 0.43±0.04 0.40±0.02",
    "go-explore 0.25 uniform  18 0.35±0.00 0.39±0.03 0.39±0.02 0.36±0.01 0.36±0.01 0.35±0.00",
    "go-explore 0.25 uniform  12 0.36±0.00 0.36±0.00 0.36±0.00 0.36±0.00 0.36±0.00 0.36±0.00",
    "go-explore 0.25 geometric 24 0.82±0.10 0.97±0.02 1.00±0.00 0.94±0.02 0.77±0.02 0.49±0.02",
    "go-explore 0.25 geometric 18 0.64±0.10 0.70±0.07 0.79±0.07 0.64±0.06 0.63±0.03 0.44±0.01",
    "go-explore 0.25 geometric 12 0.39±0.01 0.47±0.03 0.45±0.02 0.47±0.03 0.36±0.04 0.40±0.02",
    "go-explore 0.5  uniform  24 0.49±0.06 0.60±0.08 0.66±0.08 0.61±0.08 0.65±0.06 0.46±0.04",
    "go-explore 0.5  uniform  18 0.36±0.01 0.41±0.02 0.39±0.01 0.38±0.01 0.37±0.01 0.35±0.00",
    "go-explore 0.5  uniform  12 0.36±0.00 0.38±0.01 0.38±0.01 0.36±0.00 0.38±0.01 0.36±0.00",
    "go-explore 0.5  geometric 24 0.92±0.08 1.00±0.00 1.00±0.00 1.00±0.00 0.87±0.03 0.55±0.03",
    "go-explore 0.5  geometric 18 0.66±0.09 0.71±0.08 0.80±0.08 0.68±0.08 0.67±0.04 0.44±0.02",
    "go-explore 0.5  geometric 12 0.41±0.02 0.44±0.04 0.43±0.03 0.50±0.04 0.47±0.03 0.39±0.04",
)

PROGRESS: dict[tuple[str, float, str, int, float], Published] = {
    (setting, float(noise), sampling, int(parts), beta): Published.parse(cell)
    for setting, noise, sampling, parts, *cells in map(str.split, _PROGRESS)
    for beta, cell in zip(BETAS, cells, strict=True)
}
"""κ by setting, exploration noise, sampling, 1/Δ and β (0 is the baseline)."""


def conditions() -> list[Condition]:
    """All 180 of them, in the order of the printed tables."""
    return [_condition(*key) for key in PROGRESS]


def _condition(setting: str, noise: float, sampling: str, parts: int, beta: float) -> Condition:
    labels = {
        "env": TASK,
        "setting": setting,
        "noise": f"{noise:g}",
        "sampling": sampling,
        "delta": f"1/{parts}",
        "method": "rollin" if beta else "baseline",
        "beta": f"{beta:g}",
    }
    options: dict[str, Any] = {
        "method": labels["method"],
        "beta": beta,
        "sampling": sampling,
        "relabel": setting == "relabel",
        "go_explore": noise,
        "delta": 1 / parts,
        "steps": STEP,
    }
    value = PROGRESS[setting, noise, sampling, parts, beta]
    return Condition(labels, TASK, options, {MetricAt("kappa", STEP): value})
