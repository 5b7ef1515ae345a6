"""Published values of walker, hopper, humanoid and ant: mean ± standard error over 8 seeds.

Copied from the paper: κ at half a million and a million steps, x-velocity and return of the 50,000
steps before, for all β and from scratch. All numbers in this file are the paper's.
"""

from rollin.runs.records import MetricAt
from rollin.sweeps.condition import Condition, Published

BETAS = (0.0, 0.1, 0.2, 0.5, 0.75)
STEPS = (500_000, 1_000_000)
SEEDS = 8
QUANTITIES = ("kappa", "x_velocity", "return")

Values = dict[str, Published]
"""By quantity."""

# robot, half or a whole million steps, then one cell for each of BETAS
_KAPPA = (
    "walker   0.5  0.83±0.03   0.79±0.04   0.75±0.04   0.78±0.05   0.76±0.05",
    "walker   1    0.92±0.03   0.94±0.03   0.90±0.01   0.92±0.04   0.92±0.03",
    "hopper   0.5  0.85±0.02   0.82±0.03   0.83±0.02   0.78±0.02   0.75±0.02",
    "hopper   1    0.88±0.01   0.89±0.00   0.89±0.03   0.82±0.02   0.81±0.02",
    "humanoid 0.5  0.32±0.05   0.36±0.04   0.21±0.07   0.33±0.04   0.14±0.06",
    "humanoid 1    0.67±0.03   0.69±0.06   0.62±0.02   0.76±0.03   0.71±0.06",
    "ant      0.5  0.72±0.02   0.82±0.06   0.68±0.08   0.64±0.05   0.47±0.05",
    "ant      1    1.00±0.00   1.00±0.00   0.83±0.08   0.86±0.06   0.71±0.07",
)
_SPEED = (
    "walker   0.5  3.09±0.31   2.83±0.31   2.41±0.33   2.77±0.31   2.88±0.32",
    "walker   1    3.69±0.27   3.62±0.26   3.09±0.28   3.48±0.27   3.14±0.34",
    "hopper   0.5  2.42±0.18   2.26±0.22   2.45±0.14   2.34±0.16   2.34±0.16",
    "hopper   1    2.58±0.16   2.65±0.15   2.65±0.17   2.39±0.18   2.52±0.19",
    "humanoid 0.5  0.26±0.05   0.32±0.07   0.27±0.05   0.34±0.05   0.38±0.07",
    "humanoid 1    0.39±0.05   0.46±0.09   0.41±0.05   0.41±0.06   0.49±0.10",
    "ant      0.5  3.38±0.43   3.85±0.41   3.43±0.53   3.15±0.45   2.38±0.46",
    "ant      1    4.29±0.51   4.66±0.30   3.93±0.45   3.99±0.48   3.50±0.49",
)
_RETURN = (
    "walker   0.5  3450.1±307.4  3350.4±184.6  2897.4±276.5  3255.9±203.8  3185.8±341.5",
    "walker   1    4032.3±224.3  4128.8±159.6  3685.5±135.6  4028.8±164.2  3895.4±265.4",
    "hopper   0.5  3192.5±80.4  3148.6±160.7  3241.5±130.8  3116.5±141.8  3059.6±153.8",
    "hopper   1    3386.2±124.7  3421.9±109.8  3262.3±98.1  3170.7±180.6  3394.5±126.5",
    "humanoid 0.5  2910.1±262.9  2939.7±392.0  2598.9±309.8  3137.3±305.6  2259.6±245.4",
    "humanoid 1    3017.2±169.0  3173.6±238.3  2935.8±181.1  2905.5±125.9  3290.7±275.9",
    "ant      0.5  2976.2±252.4  3593.1±237.8  3071.8±340.0  2818.3±265.2  2188.3±256.2",
    "ant      1    4248.5±88.6  4473.0±102.2  3683.1±345.0  3708.7±290.5  3250.1±316.2",
)
# learning the last context alone: x-velocity and return
_SCRATCH = (
    "walker   0.5  3.07±0.26  3373.1±170.5",
    "walker   1    3.30±0.36  4212.3±151.4",
    "hopper   0.5  2.50±0.13  2943.6±80.3",
    "hopper   1    2.55±0.12  3073.2±137.7",
    "humanoid 0.5  0.24±0.05  2417.1±188.2",
    "humanoid 1    0.37±0.05  2763.8±96.5",
    "ant      0.5  3.60±0.49  2910.7±354.3",
    "ant      1    4.55±0.36  4277.9±120.0",
)


def _published() -> dict[tuple[str, str, float, int], Values]:
    found: dict[tuple[str, str, float, int], Values] = {}
    tables = {"kappa": _KAPPA, "x_velocity": _SPEED, "return": _RETURN}
    for name, table in tables.items():
        for robot, millions, *cells in map(str.split, table):
            step = round(1_000_000 * float(millions))
            for beta, cell in zip(BETAS, cells, strict=True):
                method = "rollin" if beta else "baseline"
                found.setdefault((robot, method, beta, step), {})[name] = Published.parse(cell)
    for robot, millions, speed, total in map(str.split, _SCRATCH):
        values = {"x_velocity": Published.parse(speed), "return": Published.parse(total)}
        found[robot, "scratch", 0.0, round(1_000_000 * float(millions))] = values
    return found


PUBLISHED = _published()
"""Values by robot, method, β (0 without roll-in) and step."""


def conditions() -> list[Condition]:
    """All 24 of them: four robots, from scratch and with five β (0 is the baseline)."""
    printed = dict.fromkeys(key[:3] for key in PUBLISHED)
    order = {"scratch": 0, "baseline": 1, "rollin": 2}
    robots = list(dict.fromkeys(robot for robot, *_ in printed))
    found = sorted(printed, key=lambda c: (robots.index(c[0]), order[c[1]], c[2]))
    return [_condition(*condition) for condition in found]


def _condition(robot: str, method: str, beta: float) -> Condition:
    labels = {"env": robot, "method": method, "beta": f"{beta:g}"}
    options = {"method": method, "beta": beta, "steps": STEPS[-1]}
    values = {
        MetricAt(name, step): value
        for step in STEPS
        for name, value in PUBLISHED[robot, method, beta, step].items()
    }
    return Condition(labels, robot, options, values)
