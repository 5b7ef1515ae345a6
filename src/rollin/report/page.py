"""One self-contained HTML page from collected runs, with LaTeX and CSV tables beside it."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from threadpoolctl import threadpool_limits

from rollin import __version__
from rollin.analysis.collect import Collection
from rollin.analysis.findings import ENOUGH
from rollin.analysis.results import TableResults, results_of
from rollin.report.conditions import columns, conditions
from rollin.report.exports import file_name, table_csv, table_latex
from rollin.report.panels import other_panels, panels, panels_figure
from rollin.report.pictures import Picture, pictures
from rollin.report.records import RunRecord, TabularRecord
from rollin.report.runs_csv import RUNS_FILE, fits_csv, runs_csv
from rollin.report.sections import curve_block, section
from rollin.report.style import save_picture, styled, to_svg
from rollin.runs.files import make_directory, write_atomically


def make_report(
    collection: Collection,
    out: Path,
    title: str | None = None,
    *,
    table: str | None = None,
    images: bool = False,
) -> list[TableResults]:
    """Write the page to `out`, and its tables as LaTeX and CSV beside it.

    table: show that table of the paper and no other; images: every figure as PNG, too, in figures/.
    """
    results = results_of(collection, table)
    make_directory(out.parent)
    _keep_runs(collection, out.parent / RUNS_FILE)
    with styled(), threadpool_limits(1):  # many small solves, which threads only slow down
        drawn = pictures(collection.records)
        write_atomically(out, render(collection, results, drawn, title).encode())
        if images:
            _write_images(out.parent / "figures", results, drawn)
    for found in results:
        if found.results:
            name = file_name(found)
            write_atomically(out.parent / f"{name}.csv", table_csv(found).encode())
            write_atomically(out.parent / f"{name}.tex", table_latex(found).encode())
    return results


def _keep_runs(collection: Collection, path: Path) -> None:
    """Write the runs' CSV, but never over one that was read or that holds anything else."""
    rooms = [r for r in collection.records if isinstance(r, TabularRecord) and fits_csv(r)]
    if not rooms or collection.was_read(path):
        return
    data = runs_csv(rooms)
    if path.exists() and not set(path.read_bytes().splitlines()) <= set(data.splitlines()):
        collection.notes.append(
            f"{path} was left as it is: it holds other runs than these. Move it away, or choose "
            "another --out."
        )
        return
    write_atomically(path, data)


def _write_images(folder: Path, results: Sequence[TableResults], drawn: Sequence[Picture]) -> None:
    make_directory(folder)
    for picture in drawn:
        save_picture(folder / f"{picture.name}.png", picture.figure)
    for found in results:
        for name, some in panels(found).items():
            file = f"{file_name(found).removeprefix('table-')}-{name}.png"
            save_picture(folder / file, panels_figure(some))


def render(
    collection: Collection,
    results: Sequence[TableResults],
    drawn: Sequence[Picture],
    title: str | None,
) -> str:
    """The page as text."""
    records = collection.records
    matched = {id(run) for found in results for runs in found.runs.values() for run in runs}
    others = [record for record in records if id(record) not in matched]
    apart = conditions(others)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                              lstrip_blocks=True)  # fmt: skip
    return environment.from_string(_template("report.html.j2")).render(
        title=title or default_title(records),
        style=Markup(_template("style.css")),
        script=Markup(_template("page.js")),
        facts=_facts(records),
        warnings=_warnings(collection, results),
        skipped=collection.skipped,
        sections=[section(found) for found in results],
        conditions=apart,
        condition_columns=columns(apart),
        enough=ENOUGH,
        others=curve_block(other_panels(others), "others"),
        pictures=[(p, Markup(to_svg(p.figure, f"{p.name}-"))) for p in drawn],
        collection=collection,
        seeds=sorted({record.seed for record in records}),
        version=__version__,
    )


def _template(name: str) -> str:
    return files("rollin.report").joinpath(f"templates/{name}").read_text("utf-8")


def default_title(records: Sequence[RunRecord]) -> str:
    """The tasks that were run."""
    return f"ROLLIN on {', '.join(sorted({record.spec.task for record in records}))}"


def _facts(records: Sequence[RunRecord]) -> list[tuple[str, str]]:
    """Numbers at the head of the page, with what they count."""
    seeds = len({record.seed for record in records})
    facts = [
        (f"{len(records):,}", "finished run" if len(records) == 1 else "finished runs"),
        (f"{seeds}", "seed" if seeds == 1 else "seeds"),
    ]
    for what, tabular in (("gradient steps", True), ("environment steps", False)):
        steps = sum(r.steps for r in records if isinstance(r, TabularRecord) == tabular)
        if steps:
            facts.append((f"{steps:,}", what))
    minutes = sum(record.seconds for record in records) / 60
    if minutes < 60:
        return [*facts, (f"{minutes:.1f}", "core-minutes")]
    return [*facts, (f"{minutes / 60:,.1f}", "core-hours")]


def _warnings(collection: Collection, results: Sequence[TableResults]) -> list[str]:
    """Everything in which these results are not the paper's, or not of one piece."""
    notes: list[str] = []
    for found in results:
        if len(results) == 1:
            notes += found.warnings()
        elif own := found.warnings():
            notes.append(f"{found.table.title}: {' '.join(own)}")
    notes += collection.notes
    for sweep in collection.sweeps:
        if sweep.missing:
            notes.append(
                f"{len(sweep.missing)} of the {sweep.planned} runs planned in {sweep.path} are "
                "missing or not finished."
            )
    differing = _differing(collection.versions)
    if differing:
        notes.append(f"These runs were made with different versions: {differing}.")
    if len(collection.commands) > 1:
        notes.append(f"These runs were made by {len(collection.commands)} different commands.")
    return notes


def _differing(versions: Sequence[dict[str, Any]]) -> str:
    names = dict.fromkeys(name for found in versions for name in found)
    seen = {n: dict.fromkeys(v[n] for v in versions if n in v) for n in names}
    return ", ".join(f"{n} {' and '.join(some)}" for n, some in seen.items() if len(some) > 1)
