"""A table's results beside its page: CSV for programs, LaTeX for papers."""

import csv
import io
from typing import Any

from rollin.analysis.results import TableResults
from rollin.analysis.tables import Place, ReadingTable, grids
from rollin.report.words import percent

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "κ": r"$\kappa$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "Δ": r"$\Delta$",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
}


def file_name(results: TableResults) -> str:
    """What its files are called but for the ending; a scale that is not the paper's is named."""
    scale = "" if results.scale == 1 else f"-scale-{results.scale:g}"
    return f"table-{results.table.name}{scale}"


def table_csv(results: TableResults) -> str:
    """One row for each cell and reading."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    labels = list(dict.fromkeys(name for cell in results.table.cells for name in cell.labels))
    writer.writerow(
        [*labels, "figure", "step", "published_step", "seeds", "published", "published_error",
         "mean", "error", "iqm", "iqm_low", "iqm_high", "difference", "values"]
    )  # fmt: skip
    for r in results.results:
        published = r.published
        row: list[Any] = [r.cell.labels.get(name, "") for name in labels]
        row += [r.reading.figure, r.step, r.reading.step, r.summary.n]
        row += [published.printed_mean, published.printed_error] if published else ["", ""]
        one = r.summary.n == 1  # which knows nothing of the spread
        row += [_short(r.summary.mean), "" if one else _short(r.summary.error), _short(r.iqm.value)]
        row += ["", ""] if one else [_short(r.iqm.low), _short(r.iqm.high)]
        row += ["" if r.difference is None else _short(r.difference)]
        writer.writerow([*row, " ".join(f"{value:.6g}" for value in r.values)])
    return out.getvalue()


def _short(value: float) -> str:
    return f"{round(value, 4):g}" if abs(value) < 100 else f"{value:.2f}"


def escape(text: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def table_latex(results: TableResults) -> str:
    """A booktabs table to be included: published over ours, purple where ROLLIN is ahead."""
    lines = [
        "% needs \\usepackage{booktabs,xcolor}",
        r"\begin{table}[t]",
        r"\centering\footnotesize",
        rf"\caption{{{escape(_caption(results))}}}",
        rf"\label{{{file_name(results).replace('-', ':', 1)}}}",
    ]
    for number, grid in enumerate(grids(results)):
        lines += [r"\par\medskip"] * (number > 0)
        lines += _tabular(grid)
    return "\n".join([*lines, r"\end{table}", ""])


def _caption(results: TableResults) -> str:
    table = results.table
    sizes = sorted({len(runs) for runs in results.runs.values()})
    seeds = "–".join(str(n) for n in dict.fromkeys((sizes[0], sizes[-1])))
    text = (
        f"{table.title} ({table.printed} of the paper). Upper line: published; lower line: ours, "
        f"mean ± standard error over {seeds} {'seed' if seeds == '1' else 'seeds'}. "
        "Purple: ROLLIN above the baseline; bold: best of its row."
    )
    if results.scale != 1:
        text += f" Our training has {percent(results.scale)} of the paper's length."
    return text


def _tabular(grid: ReadingTable) -> list[str]:
    lines = [
        rf"\begin{{tabular}}{{l{'c' * len(grid.columns)}}}",
        r"\toprule",
        " & ".join(escape(text) for text in (grid.title, *grid.columns)) + r" \\",
        r"\midrule",
    ]
    for number, (name, places) in enumerate(grid.rows):
        if number:
            lines.append(r"\addlinespace")
        lines.append(" & ".join([escape(name), *(_published(p) for p in places)]) + r" \\")
        lines.append(" & ".join(["", *(_ours(p) for p in places)]) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _published(place: Place | None) -> str:
    if place is None:
        return "--"
    return _marked(place.published, bold=place.published_best, purple=place.published_beats)


def _ours(place: Place | None) -> str:
    return "--" if place is None else _marked(place.ours, bold=place.best, purple=place.beats)


def _marked(text: str, *, bold: bool, purple: bool) -> str:
    text = escape(text)
    text = rf"\textbf{{{text}}}" if bold else text
    return rf"{{\color{{purple}}{text}}}" if purple else text
