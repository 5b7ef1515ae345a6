"""Tables of a study as CSV for programs, as LaTeX for papers and for the terminal."""

import re
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rollin.analysis.results import Place, ReadingTable, StudyResults, reading_tables
from rollin.errors import one_line
from rollin.report.labels import NONE, label_text, percent, place_text, published_at, table_title
from rollin.untrusted import csv_text

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

    Published values stand above measured ones.
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
            f"{study.heading}{printed}. Upper line: published; lower line: measured, m{over}"
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
        rows = [[_ours(place) for place in places]]
        if of_the_paper:
            rows.insert(0, [_published(place) for place in places])
        if any(p and p.solved for p in places):
            solved = (p and escape(place_text(p).solved) for p in places)
            rows.append([rf"\scriptsize {text}" if text is not None else "" for text in solved])
        names = [escape(label_text(labels)), *[""] * (len(rows) - 1)]
        lines += [" & ".join([n, *row]) + r" \\" for n, row in zip(names, rows, strict=True)]
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _published(place: Place | None) -> str:
    known = place and (place_text(place).published, place.published_best, place.published_beats)
    return _marked(*known) if known else "--"


def _ours(place: Place | None) -> str:
    return _marked(place_text(place).ours, place.best, place.beats) if place else "--"


def _marked(text: str, bold: bool, purple: bool) -> str:
    text = escape(text)
    text = rf"\textbf{{{text}}}" if bold else text
    return rf"{{\color{{purple}}{text}}}" if purple else text


def terminal_tables(results: StudyResults) -> list[Group]:
    """One table for each reading; purple where a condition is better than its baseline."""
    return [_table(table, results) for table in reading_tables(results)]


def _table(table: ReadingTable, results: StudyResults) -> Group:
    title = table_title(table) + ": published over measured" * results.of_the_paper
    if any(place and place.solved for _, places in table.rows for place in places):
        title += "; below: seeds that master the last context"
    if at := published_at(table):
        title += f" ({percent(results.scale)} of the paper's {at})"
    grid = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    grid.add_column("")
    for column in table.columns:  # what does not fit folds the names of rows, never a number
        name = label_text(column).removeprefix("ROLLIN ").replace(" = ", "=")
        grid.add_column(name, justify="right", no_wrap=True)
    for labels, places in table.rows:
        cells = (_place(place, of_the_paper=results.of_the_paper) for place in places)
        grid.add_row(label_text(labels), *cells)
    return Group(Text(title, style="italic"), grid)  # a table's own title is as narrow as it


def _place(place: Place | None, *, of_the_paper: bool) -> Text:
    if place is None:
        return Text(NONE)
    digits = place.digits
    below = f"{place.result.summary.mean:.{digits}f}" if place.result else NONE
    above = f"{place.published.mean:.{digits}f}" if place.published else NONE
    parts: list[tuple[str, str]] = [(f"{above}\n", "")] if of_the_paper else []
    parts.append((below, "bold magenta" if place.beats else ""))
    if place.solved is not None:
        parts.append((f"\n{place.solved[0]}/{place.solved[1]}", "dim"))
    return Text.assemble(*parts)
