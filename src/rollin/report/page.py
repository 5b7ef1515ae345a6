"""One self-contained HTML page from collected runs, with LaTeX and CSV tables beside it.

A live page has the progress of its runs above the report. The two are made apart: progress changes
every second and is quick to make; the report changes when a run has saved or ended and takes
seconds.
"""

import hashlib
import os
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup
from threadpoolctl import threadpool_limits

from rollin import __version__
from rollin.analysis.collect import Collection, group
from rollin.analysis.findings import ENOUGH, setting_of
from rollin.analysis.results import StudyResults, panels, results_of
from rollin.report.charts import panels_figure
from rollin.report.exports import file_name, safe_name, table_csv, table_latex
from rollin.report.labels import (
    label_text,
    place_text,
    published_at,
    shown,
    table_title,
    warnings,
)
from rollin.report.sections import section
from rollin.report.style import save_picture, styled, to_svg
from rollin.runs.engines import engine
from rollin.runs.files import make_directory, own_directory, write_atomically
from rollin.runs.records import RUNS, Record, write_records
from rollin.sweeps.study import Study
from rollin.untrusted import LARGEST_RECORDS, read_bounded

if TYPE_CHECKING:
    from rollin.report.maps import Picture

PLACE = "<!-- progress -->"
"""Where the progress goes; text of files cannot hold it, because its brackets are escaped."""
BROAD = 5.0  # inches of a picture above which a phone shows it at its size, to be scrolled


def make_report(
    collection: Collection,
    out: Path,
    studies: Sequence[Study],
    title: str | None = None,
    *,
    only: str | None = None,
    images: bool = False,
) -> list[StudyResults]:
    """Write the page to `out`, and its tables as LaTeX and CSV beside it.

    studies: those that runs may belong to, besides their sweeps' own; only: show that study and no
    other; images: also every figure as PNG, in figures/.
    """
    fill = filled(collection, studies)
    results = fill(only)
    every = results if only is None else fill(None)
    make_directory(out.parent)
    _keep_runs(collection, labelled(every), out.parent)
    with drawing():
        drawn = extra_pictures(labelled(results))
        page = render(collection, results, drawn, title)
        write_atomically(out, page.encode(errors="replace"))  # paths may hold lone surrogates
        if images:
            _write_images(out.parent / "figures", results, drawn)
    for found in results:
        if found.results:
            name = file_name(found)
            write_atomically(out.parent / f"{name}.csv", table_csv(found).encode())
            write_atomically(out.parent / f"{name}.tex", table_latex(found).encode())
    return results


def filled(
    collection: Collection, studies: Sequence[Study]
) -> Callable[[str | None], list[StudyResults]]:
    """Which studies the runs fill: asked for one of them, or for all.

    What there is to note about the runs is added to the collection.
    """
    known = [*studies, *collection.studies]
    grouping = group(collection.records, known)
    collection.skipped += grouping.skipped
    collection.notes += grouping.notes
    named = list(dict.fromkeys(name for sweep in collection.sweeps for name in sweep.studies))
    return lambda only: results_of(grouping, known, named, only)


def extra_pictures(records: Sequence[Record]) -> "list[Picture]":
    """Pictures beside the curves; what draws them is imported only for tasks that have some."""
    marks = {name for record in records for s in record.switches for name in s.numbers}
    if "success_mu" not in marks and all(record.task != "four-rooms" for record in records):
        return []
    from rollin.report.maps import pictures

    return pictures(records)


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the style of the pages, and with one thread, which is faster for small figures."""
    with styled(), threadpool_limits(1):
        yield


def labelled(results: Sequence[StudyResults]) -> list[Record]:
    """Every run that is shown, once, under the name of its condition."""
    found: dict[int, Record] = {}
    for study in results:
        for condition, runs in study.runs.items():
            for run in runs:
                place = {"labels": condition.labels, "family": study.study.shared}
                found.setdefault(id(run), replace(run, **place, scale=study.scale))
    return list(found.values())


def _keep_runs(collection: Collection, records: Sequence[Record], directory: Path) -> None:
    """Write the records as CSV, but never over some that were read or that hold other runs."""
    if collection.was_read(directory / RUNS):
        return
    data = write_records(records)
    path = directory / RUNS
    there = read_bounded(path, LARGEST_RECORDS) if os.path.lexists(path) else b""
    if not set(there.splitlines()) <= set(data[RUNS].splitlines()):
        collection.notes.append(
            f"{path} was left as it is: it holds other runs than these. Move it away, or choose "
            "another --out."
        )
        return
    for name, text in data.items():
        write_atomically(directory / name, text)


def _write_images(
    folder: Path, results: Sequence[StudyResults], drawn: "Sequence[Picture]"
) -> None:
    own_directory(folder)
    for picture in drawn:
        save_picture(folder / f"{picture.name}.png", picture.figure)
    for found in results:
        for name, some in panels(found).items():
            file = f"{file_name(found).removeprefix('table-')}-{safe_name(name)}.png"
            save_picture(folder / file, panels_figure(some))


def render(
    collection: Collection,
    results: Sequence[StudyResults],
    drawn: "Sequence[Picture]",
    title: str | None,
    live: Markup | None = None,
) -> str:
    """The page as text; live: what stands first on a page that follows its runs."""
    records = labelled(results)
    tasks = ", ".join(sorted({record.task for record in records}))
    script = template("page.js") + (template("live.js") if live is not None else "")
    style = template("style.css") + (template("live.css") if live is not None else "")
    return compiled("report.html.j2").render(
        title=title or (f"ROLLIN on {tasks}" if tasks else "ROLLIN"),
        style=Markup(style),
        script=Markup(script),
        policy=Markup(policy(script, live=live is not None)),
        live=live,
        facts=_facts(records),
        warnings=_warnings(collection, results),
        skipped=collection.skipped,
        sections=[section(found) for found in results],
        enough=ENOUGH,
        published=any(found.of_the_paper for found in results),
        pictures=[(p, Markup(to_svg(p.figure, f"{p.name}-"))) for p in drawn],
        collection=collection,
        seeds=sorted({record.seed for record in records}),
        version=__version__,
        broad_inches=BROAD,
        label_text=label_text,
        place_text=place_text,
        table_title=table_title,
        published_at=published_at,
        setting_of=setting_of,
    )


def policy(script: str, *, live: bool = False) -> str:
    """What the page may do: run its own script, and ask where it came from if it is live."""
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    asks = "connect-src 'self'; " if live else ""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; {asks}"
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def compiled(name: str) -> Template:
    """A template, read once: a page that follows its runs fills it again and again.

    All that is put into it is text.
    """
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(template(name))


def template(name: str) -> str:
    """A file of the templates."""
    return files("rollin.report").joinpath(f"templates/{name}").read_text("utf-8")


def _facts(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Numbers at the head of the page, with what they count."""
    seeds = len({record.seed for record in records})
    done = sum(record.finished for record in records)
    facts = [(f"{done:,}", "finished run" if done == 1 else "finished runs")]
    if done < len(records):
        facts.append((f"{len(records) - done:,}", "not finished"))
    facts.append((f"{seeds}", "seed" if seeds == 1 else "seeds"))
    steps: dict[str, int] = {}
    for record in records:
        words = engine(record.engine).step_words
        steps[words] = steps.get(words, 0) + record.step
    facts += [(f"{count:,}", words) for words, count in sorted(steps.items(), reverse=True)]
    minutes = sum(record.costs.seconds or 0 for record in records) / 60
    if minutes < 60:
        return [*facts, (f"{minutes:.1f}", "minutes of run time")]
    return [*facts, (f"{minutes / 60:,.1f}", "hours of run time")]


def _warnings(collection: Collection, results: Sequence[StudyResults]) -> list[str]:
    """Everything in which these results are not the study's, or not of one piece."""
    notes: list[str] = []
    for found in results:
        if len(results) == 1:
            notes += warnings(found)
        elif own := warnings(found):
            notes.append(f"{found.study.heading}: {' '.join(own)}")
    notes += collection.notes
    for sweep in collection.sweeps:
        if sweep.missing:
            notes.append(
                f"{len(sweep.missing)} of the {sweep.planned} runs planned in {sweep.path} are "
                "missing or not finished."
            )
    names = dict.fromkeys(name for versions in collection.versions for name in versions)
    numbers = {n: dict.fromkeys(v[n] for v in collection.versions if n in v) for n in names}
    if differing := [f"{n} {' and '.join(some)}" for n, some in numbers.items() if len(some) > 1]:
        notes.append(f"These runs were made with different versions: {', '.join(differing)}.")
    if collection.sweeps and len(collection.commands) > 1:
        notes.append(f"These runs were made by {len(collection.commands)} different commands.")
    return notes


# ------------------------------------------------------------------ the live page


class SweepProgress(NamedTuple):
    """Progress of a sweep: its text and the share of its work that is done."""

    title: str
    summary: str = ""
    share: float | None = None


class RunProgress(NamedTuple):
    """Progress of a run: texts by title, and the share of its steps that are done."""

    name: str
    cells: Mapping[str, str]
    share: float | None = None


class LiveProgress(NamedTuple):
    """Progress of sweeps and of unfinished runs; quiet: words for the rest; problem: an error."""

    sweeps: Sequence[SweepProgress] = ()
    runs: Sequence[RunProgress] = ()
    titles: Sequence[str] = ()
    quiet: str = ""
    problem: str = ""


def progress_part(progress: LiveProgress) -> str:
    """The part of the page that shows progress."""
    titles = [t for t in progress.titles if any(run.cells.get(t) for run in progress.runs)]
    return compiled("progress.html.j2").render(
        **progress._replace(titles=titles)._asdict(), shown=shown
    )


def live_report(
    collection: Collection,
    studies: Sequence[Study],
    title: str | None = None,
    only: str | None = None,
) -> str:
    """The report of runs so far, as a page with a place for their progress.

    Tables have what finished runs gave, curves go as far as a run has saved.
    """
    results = filled(collection, studies)(only) if collection.records else []
    with drawing():
        drawn = extra_pictures(labelled(results))
        return render(collection, results, drawn, title, Markup(PLACE))


def with_progress(report: str, progress: str) -> str:
    """A whole page."""
    return report.replace(PLACE, progress, 1)


def live_policy() -> str:
    """The policy of a live page; only a header can say that no other page may frame it."""
    script = template("page.js") + template("live.js")
    return f"{policy(script, live=True)}; frame-ancestors 'none'"
