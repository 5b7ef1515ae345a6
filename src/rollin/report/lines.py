"""Lines of a chart: the mean over seeds, its standard error as a band, published values on top."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rollin.analysis.statistics import summarise
from rollin.sweeps.published import Published

POINTS = 300  # of a line, at most
BEYOND = 1.05  # of the last step: how far ahead a published value is still shown
GROUP = "line:"  # how the name of an SVG group that belongs to a line begins

Array = NDArray[np.float64]


class Trace(NamedTuple):
    """A quantity of one run against its steps."""

    steps: Array
    values: Array


@dataclass(frozen=True)
class Line:
    """A condition: its seeds, how it looks, and what was published of it by step."""

    label: str
    look: Mapping[str, Any]
    traces: Sequence[Trace]
    published: Mapping[int, Published] = field(default_factory=dict)

    def published_inside(self) -> dict[int, Published]:
        """What was published of steps that all seeds have reached, or nearly so."""
        end = min(trace.steps[-1] for trace in self.traces)
        return {step: value for step, value in self.published.items() if step <= BEYOND * end}


def draw_lines(
    ax: Axes, lines: Sequence[Line], *, stepped: bool = False, seeds: bool = False
) -> dict[str, Any]:
    """Draw them; returns what a legend shows, by label.

    stepped: values hold until they change, as κ does; seeds: thin lines of the seeds, too.
    """
    handles: dict[str, Any] = {}
    for line in lines:
        steps, mean, error = over_seeds(line.traces)
        if not len(steps):
            continue  # one seed has not come as far as where another was first logged
        colour, group = line.look["color"], GROUP + line.label
        after: Any = {"drawstyle": "steps-post"} if stepped else {}
        marker = "o" if len(steps) == 1 else ""
        (handles[line.label],) = ax.plot(
            steps, mean, marker=marker, ms=3, gid=group, **line.look, **after
        )
        if len(line.traces) > 1:
            band = ax.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.15,
                                   lw=0, step="post" if stepped else None)  # fmt: skip
            band.set_gid(group)
        for trace in line.traces if seeds and len(line.traces) > 1 else ():
            thin = _thinned(trace.steps)
            values = _held(trace, thin)
            ax.plot(thin, values, color=colour, lw=0.6, alpha=0.45, gid=group, **after)
        for step, value in line.published_inside().items():
            dot = _draw_published(ax, step, value, colour, group)
            handles.setdefault("published", dot)
    return handles


def _draw_published(ax: Axes, step: int, value: Published, colour: str, group: str) -> Any:
    dot = ax.errorbar(step, value.mean, value.error, fmt="D", ms=4, color=colour, clip_on=False)
    for artist in dot.get_children():
        artist.set_gid(group)
    return dot


def over_seeds(traces: Sequence[Trace]) -> tuple[Array, Array, Array]:
    """Steps, mean and standard error, up to where the slowest seed stands.

    Seeds may have been logged at other steps: each counts with its last value before a step.
    """
    begin = max(trace.steps[0] for trace in traces)
    end = min(trace.steps[-1] for trace in traces)
    steps = np.unique(np.concatenate([trace.steps for trace in traces]))
    steps = _thinned(steps[(steps >= begin) & (steps <= end)])
    values = [_held(trace, steps) for trace in traces]
    found = [summarise(column) for column in zip(*values, strict=True)]
    return steps, np.array([s.mean for s in found]), np.array([s.error for s in found])


def _held(trace: Trace, steps: Array) -> Array:
    return trace.values[np.searchsorted(trace.steps, steps, "right") - 1]


def _thinned(steps: Array) -> Array:
    """No more steps than a picture can show, the first and the last among them."""
    if len(steps) <= POINTS:
        return steps
    return steps[np.unique(np.linspace(0, len(steps) - 1, POINTS).round().astype(int))]
