"""The two four-room tables: 2 rewards × 2 entropy coefficients × 7 mixing ratios.

`PROGRESS` and `RETURN` are copied from the paper (Tables 6 and 7: mean ± standard error over
10 seeds at step 50,000). Nothing else in this file is a published number.
"""

from collections.abc import Sequence

from rollin.runs.records import MetricAt
from rollin.sweeps.condition import Condition, Published

TASK = "four-rooms"
STEPS = 50_000
SEEDS = 10
BETAS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 0.9)
HEADLINE_BETA = 0.75  # the β of the paper's main table
ROWS = (("hard", 0.01), ("hard", 0.001), ("easy", 0.01), ("easy", 0.001))

# β, then one cell for each of ROWS
_PROGRESS = (
    "0    0.500±0.000 0.856±0.006 0.944±0.003 1.000±0.000",
    "0.1  0.506±0.001 0.981±0.003 0.994±0.001 1.000±0.000",
    "0.2  0.512±0.001 0.981±0.001 0.994±0.001 1.000±0.000",
    "0.3  0.525±0.000 1.000±0.000 1.000±0.000 1.000±0.000",
    "0.5  0.562±0.000 1.000±0.000 1.000±0.000 1.000±0.000",
    "0.75 0.562±0.000 1.000±0.000 1.000±0.000 1.000±0.000",
    "0.9  0.562±0.000 1.000±0.000 1.000±0.000 1.000±0.000",
)
_RETURN = (
    "0    0.000±0.000 0.424±0.023  4.093±0.224 10.536±0.002",
    "0.1  0.000±0.000 0.939±0.0014 5.136±0.230 10.566±0.003",
    "0.2  0.000±0.000 0.710±0.021  4.156±0.228 10.602±0.003",
    "0.3  0.000±0.000 1.010±0.005  1.040±0.140 10.593±0.002",
    "0.5  0.000±0.000 1.062±0.000  3.913±0.218 10.611±0.002",
    "0.75 0.000±0.000 1.067±0.000  7.374±0.216 10.620±0.002",
    "0.9  0.000±0.000 1.060±0.000  4.227±0.232 10.575±0.002",
)


def _cells(table: Sequence[str]) -> dict[tuple[str, float], dict[float, Published]]:
    """The cells of a table by row and β."""
    found: dict[tuple[str, float], dict[float, Published]] = {row: {} for row in ROWS}
    for beta, *cells in map(str.split, table):
        for row, cell in zip(ROWS, cells, strict=True):
            found[row][float(beta)] = Published.parse(cell)
    return found


PROGRESS = _cells(_PROGRESS)
RETURN = _cells(_RETURN)


def conditions() -> list[Condition]:
    """All 28 of them, in the order of the printed tables."""
    return [condition(reward, alpha, beta) for reward, alpha in ROWS for beta in BETAS]


def condition(reward: str, alpha: float, beta: float) -> Condition:
    """One place of the tables."""
    labels = {
        "reward": reward,
        "alpha": f"{alpha:g}",
        "method": "rollin" if beta else "baseline",
        "beta": f"{beta:g}",
    }
    options = {"reward": reward, "alpha": alpha, "beta": beta, "steps": STEPS}
    row = (reward, alpha)
    values = {
        MetricAt("kappa", STEPS): PROGRESS[row][beta],
        MetricAt("return", STEPS): RETURN[row][beta],
    }
    return Condition(labels, TASK, options, values)
