"""Seeds as dots on an axis that all conditions of a reading share, with the published mean."""

from collections.abc import Sequence

from markupsafe import Markup

from rollin.analysis.results import Result

WIDTH, HEIGHT, MARGIN = 116, 20, 5


def common_axis(results: Sequence[Result]) -> tuple[float, float]:
    """What the dots of these results lie between: 0 and 1 for κ."""
    values = [value for r in results for value in r.values]
    values += [r.published.mean for r in results if r.published]
    low, high = min(0.0, *values), max(values)
    high = 1.0 if results[0].reading.quantity == "kappa" else high
    return low, high if high > low else low + 1.0


def strip(result: Result, axis: tuple[float, float]) -> Markup:
    """A small drawing, described in words for who cannot see it."""
    low, high = axis

    def x(value: float) -> str:
        return f"{MARGIN + (WIDTH - 2 * MARGIN) * (value - low) / (high - low):.1f}"

    middle = HEIGHT / 2
    dots = Markup("").join(
        Markup('<circle cx="{}" cy="{}" r="3"/>').format(x(value), middle)
        for value in result.values
    )
    tick = Markup("")
    words = "seeds: " + ", ".join(f"{value:.4g}" for value in result.values)
    if result.published:
        at = x(result.published.mean)
        tick = Markup('<path class="known" d="M{} 2V{}"/>').format(at, HEIGHT - 2)
        words += f"; published {result.published}"
    return Markup(
        '<svg class="strip" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'aria-label="{words}"><title>{words}</title><path class="axis" d="M{m} {y}H{end}"/>'
        "{dots}{tick}</svg>"
    ).format(w=WIDTH, h=HEIGHT, words=words, m=MARGIN, y=middle, end=WIDTH - MARGIN,
             dots=dots, tick=tick)  # fmt: skip
