"""The page that follows its runs: the report so far, and above it what is going on.

Both are made apart: the progress of runs changes every second and is made in no time, the report
changes when a run has saved or ended and takes seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from rollin.analysis.collect import Collection
from rollin.report.page import compiled, drawing, filled, labelled, policy, render, template
from rollin.report.pictures import pictures
from rollin.report.words import shown
from rollin.sweeps.study import Study

PLACE = "<!-- progress -->"
"""Where the progress goes; text of files cannot hold it, because its brackets are escaped."""


@dataclass(frozen=True)
class SweepStanding:
    """How a sweep stands, in words and as the share of its work that is done."""

    title: str
    summary: str = ""
    share: float | None = None


@dataclass(frozen=True)
class RunStanding:
    """How a run stands: texts by title, and the share of its steps that are done."""

    name: str
    cells: Mapping[str, str]
    share: float | None = None


@dataclass(frozen=True)
class Standing:
    """What is going on: sweeps, runs that are not done, words for the rest, and what is wrong."""

    sweeps: Sequence[SweepStanding] = ()
    runs: Sequence[RunStanding] = ()
    titles: Sequence[str] = field(default_factory=list)
    quiet: str = ""
    problem: str = ""


def progress_part(standing: Standing) -> str:
    """The part of the page that shows what is going on."""
    titles = [t for t in standing.titles if any(run.cells.get(t) for run in standing.runs)]
    runs = [
        {
            "name": shown(run.name),
            "share": run.share,
            "cells": [(title, shown(run.cells.get(title, ""))) for title in titles],
        }
        for run in standing.runs
    ]
    sweeps = [
        {"title": shown(s.title), "summary": s.summary, "share": s.share} for s in standing.sweeps
    ]
    return compiled("progress.html.j2").render(
        sweeps=sweeps,
        runs=runs,
        titles=[shown(title) for title in titles],
        quiet=standing.quiet,
        problem=shown(standing.problem),
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
        drawn = pictures(labelled(results))
        return render(collection, results, drawn, title, Markup(PLACE))


def with_progress(report: str, progress: str) -> str:
    """A whole page."""
    return report.replace(PLACE, progress, 1)


def live_policy() -> str:
    """The policy of a live page; only a header can say that no other page may frame it."""
    script = template("page.js") + template("live.js")
    return f"{policy(script, live=True)}; frame-ancestors 'none'"
