"""Which colour and line a condition has, on every chart alike."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SCRATCH = "#111827"
BASELINE = "#6b7280"
ROLLIN = "#7c3aed"
BETA_COLOURS = {
    0.0: BASELINE,
    0.1: "#0891b2",
    0.2: "#059669",
    0.3: "#65a30d",
    0.5: "#d97706",
    0.75: ROLLIN,
    0.9: "#db2777",
}
SPARE = ("#a16207", "#be123c", "#4d7c0f", "#1d4ed8", "#a21caf", "#0f766e")
"""For conditions that have no colour of their own."""
STYLES = (
    "-",
    "--",
    ":",
    "-.",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
    (0, (8, 3)),
    (0, (3, 1, 1, 3)),
)

Look = dict[str, Any]


def beta_colour(beta: float) -> str:
    """Colour of a mixing ratio."""
    return BETA_COLOURS.get(round(beta, 4), ROLLIN if beta > 0 else BASELINE)


def own_colour(labels: Mapping[str, str]) -> str | None:
    """The colour that a method or a β has everywhere; None if the labels name neither."""
    method = labels.get("method")
    if method == "scratch":
        return SCRATCH
    if method == "baseline":
        return BASELINE
    try:
        beta = float(labels["beta"])
    except (KeyError, ValueError):
        return ROLLIN if method == "rollin" else None
    if method in ("rollin", None):
        return BETA_COLOURS.get(round(beta, 4))
    return None


def looks_of(names: Sequence[Mapping[str, str]]) -> list[Look]:
    """A look for each condition, by its labels: colour by method, so that no two look alike."""
    spare = iter(SPARE * len(names))
    taken: dict[str, int] = {}
    found: list[Look] = []
    known: dict[str, str] = {}
    for labels in names:
        method = _method(labels)
        colour = own_colour(labels) or known.get(method) or next(spare)
        known.setdefault(method, colour)
        if taken.get(colour, 0) >= len(STYLES):  # no line of that colour is left
            colour = min((*SPARE, *BETA_COLOURS.values()), key=lambda c: taken.get(c, 0))
        style = STYLES[taken.get(colour, 0) % len(STYLES)]
        taken[colour] = taken.get(colour, 0) + 1
        found.append({"color": colour, "linestyle": style, "linewidth": 1.6})
    return found


def _method(labels: Mapping[str, str]) -> str:
    """What conditions of one colour share."""
    told: Iterable[str] = ("method", "beta") if "method" in labels or "beta" in labels else labels
    return ",".join(f"{name}={labels.get(name)}" for name in told)
