"""A study's results beside its page: CSV for programs, LaTeX for papers."""

import re
from typing import Any

from rollin.analysis.results import StudyResults
from rollin.analysis.tables import Place, ReadingTable, reading_tables
from rollin.report.words import label_text, percent, place_text, table_title
from rollin.texts import csv_text, one_line

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


def safe_name(name: str) -> str:
    """A name as a part of a file's name, and of an anchor in a page."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:80] or "study"


def file_name(results: StudyResults) -> str:
    """What its files are called but for the ending; a scale that is not the paper's is named.

    Runs of no study are called by their task, which may have the name of a table.
    """
    scale = "" if results.scale == 1 else f"-scale-{results.scale:g}"
    return f"{'runs' if results.own else 'table'}-{safe_name(results.study.name)}{scale}"


def table_csv(results: StudyResults) -> str:
    """One row for each condition and reading."""
    labels = list(dict.fromkeys(name for c in results.study.conditions for name in c.labels))
    rows: list[list[Any]] = [
        [*labels, "quantity", "step", "published_step", "seeds", "published", "published_error",
         "mean", "error", "iqm", "iqm_low", "iqm_high", "difference", "mastered_last", "values"]
    ]  # fmt: skip
    for r in results.results:
        published = r.published
        row: list[Any] = [r.condition.labels.get(name, "") for name in labels]
        row += [r.reading.quantity, _or_end(r.step), _or_end(r.reading.step), r.summary.n]
        row += [published.printed_mean, published.printed_error] if published else ["", ""]
        one = r.summary.n == 1  # which knows nothing of the spread
        row += [_short(r.summary.mean), "" if one else _short(r.summary.error), _short(r.iqm.value)]
        row += ["", ""] if one else [_short(r.iqm.low), _short(r.iqm.high)]
        row += ["" if r.difference is None else _short(r.difference)]
        mastered = results.solved(r.condition, r.reading)
        row += ["" if mastered is None else mastered[0]]
        rows.append([*row, " ".join(f"{value:.6g}" for value in r.values)])
    return csv_text(rows)


def _or_end(step: int | None) -> int | str:
    return "end" if step is None else step


def _short(value: float) -> str:
    return f"{round(value, 4):g}" if abs(value) < 100 else f"{value:.2f}"


def escape(text: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(_LATEX.get(letter, letter) for letter in one_line(text))


def table_latex(results: StudyResults) -> str:
    """A booktabs table to be included, purple where the baseline is beaten.

    What was published stands over ours.
    """
    lines = [
        "% needs \\usepackage{booktabs,xcolor}",
        r"\begin{table}[t]",
        r"\centering\footnotesize",
        rf"\caption{{{escape(_caption(results))}}}",
        rf"\label{{{file_name(results).replace('-', ':', 1)}}}",
    ]
    for number, table in enumerate(reading_tables(results)):
        lines += [r"\par\medskip"] * (number > 0)
        lines += _tabular(table, of_the_paper=results.of_the_paper)
    return "\n".join([*lines, r"\end{table}", ""])


def _caption(results: StudyResults) -> str:
    study = results.study
    sizes = sorted({len(runs) for runs in results.runs.values()})
    seeds = "–".join(str(n) for n in dict.fromkeys((sizes[0], sizes[-1])))
    over = f"ean ± standard error over {seeds} {'seed' if seeds == '1' else 'seeds'}. "
    if results.of_the_paper:
        printed = f" ({study.printed} of the paper)" if study.printed else ""
        text = (
            f"{study.heading}{printed}. Upper line: published; lower line: ours, m{over}"
            "Purple: ROLLIN above the baseline; bold: best of its row."
        )
        whole = "Our training has {} of the paper's length."
    else:
        purple = "Purple: better than the baseline; bold" if study.baseline else "Bold"
        text = f"{study.heading}. M{over}{purple}: best of its row."
        whole = "Training has {} of its full length."
    return text if results.scale == 1 else f"{text} {whole.format(percent(results.scale))}"


def _tabular(table: ReadingTable, *, of_the_paper: bool) -> list[str]:
    columns = [label_text(column) or "all runs" for column in table.columns]
    lines = [
        rf"\begin{{tabular}}{{l{'c' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(escape(text) for text in (table_title(table), *columns)) + r" \\",
        r"\midrule",
    ]
    for number, (labels, places) in enumerate(table.rows):
        if number:
            lines.append(r"\addlinespace")
        name, ours = escape(label_text(labels)), [_ours(p) for p in places]
        if of_the_paper:
            lines.append(" & ".join([name, *(_published(p) for p in places)]) + r" \\")
            name = ""
        lines.append(" & ".join([name, *ours]) + r" \\")
        if any(p and p.solved for p in places):
            told = (rf"\scriptsize {escape(place_text(p).solved)}" if p else "" for p in places)
            lines.append(" & ".join(["", *told]) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _published(place: Place | None) -> str:
    if place is None:
        return "--"
    return _marked(
        place_text(place).published, bold=place.published_best, purple=place.published_beats
    )


def _ours(place: Place | None) -> str:
    if place is None:
        return "--"
    return _marked(place_text(place).ours, bold=place.best, purple=place.beats)


def _marked(text: str, *, bold: bool, purple: bool) -> str:
    text = escape(text)
    text = rf"\textbf{{{text}}}" if bold else text
    return rf"{{\color{{purple}}{text}}}" if purple else text
