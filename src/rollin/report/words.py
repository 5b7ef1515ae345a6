"""How figures, conditions and numbers are called on pages, in tables and on charts."""

from collections.abc import Iterable, Mapping

from rollin.analysis.statistics import Summary
from rollin.sweeps.study import Reading

FIGURES = {
    "kappa": "κ",
    "final_return": "final return",
    "x_velocity_mean_last": "x-velocity (m/s)",
    "return_mean_last": "return",
}
TRACES = {"kappa": "kappa", "final_return": "return", "x_velocity_mean_last": "x_velocity",
          "return_mean_last": "return"}  # fmt: skip
"""What is drawn against steps for a figure."""
_SYMBOLS = {"alpha": "α = {}", "delta": "Δ = {}", "noise": "noise {}", "beta": "β = {}"}


def figure_text(figure: str) -> str:
    """A figure's name for people."""
    return FIGURES.get(figure, figure.replace("_", " "))


def trace_text(name: str) -> str:
    """A curve's name for people."""
    return FIGURES.get(name if name == "kappa" else f"{name}_mean_last", name.replace("_", " "))


def method_text(labels: Mapping[str, str]) -> str:
    """A method in words: from scratch, the baseline, or ROLLIN with its β."""
    if labels["method"] != "rollin":
        return labels["method"]
    return f"ROLLIN β = {labels['beta']}"


def label_text(labels: Mapping[str, str], names: Iterable[str]) -> str:
    """Some of a condition's labels in words; method and β are one."""
    words = []
    for name in names:
        if name == "method":
            words.append(method_text(labels))
        elif name == "noise" and labels[name] == "0":
            continue
        elif name in labels and (name != "beta" or "method" not in names):
            words.append(_SYMBOLS.get(name, "{}").format(labels[name]))
    return ", ".join(words)


def steps_text(step: int) -> str:
    """A number of steps in short: 3M, 500k, 2,400."""
    if step >= 1_000_000 and step % 100_000 == 0:
        return f"{step / 1_000_000:g}M"
    return f"{step // 1000}k" if step >= 1000 and step % 1000 == 0 else f"{step:,}"


def reading_text(reading: Reading, scale: float = 1.0) -> str:
    """A figure and where it is read; of shortened runs, their own step."""
    return f"{figure_text(reading.figure)} at {steps_text(round(reading.step * scale))} steps"


def summary_text(summary: Summary, digits: int) -> str:
    """Mean ± standard error; one seed has none."""
    mean, error, n = summary
    return f"{mean:.{digits}f}" + (f" ± {error:.{digits}f}" if n > 1 else "")


def percent(scale: float) -> str:
    """A scale as a percentage."""
    return f"{100 * scale:.3g} %"


def signed(value: float, digits: int) -> str:
    """A difference with its sign; none before a zero."""
    shown = f"{value:+.{digits}f}"
    return shown[1:] if float(shown) == 0 else shown.replace("-", "−")
