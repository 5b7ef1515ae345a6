"""`rollin sweep`: a study of one's own, over a grid of options or from a file."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from rollin.checks import at_least, flag, positive
from rollin.cli.arguments import parse, spelled_out, typed_command
from rollin.cli.sweep_options import PlaceOptions, check_place
from rollin.cli.train import task_among
from rollin.errors import RollinError
from rollin.imports import is_factory, load_named, name_code
from rollin.paper.tables import tables
from rollin.runs.engines import engine_for
from rollin.runs.options import option_names, read_value
from rollin.sweeps.build import block, grid_from, reading, usual_readings
from rollin.sweeps.select import select
from rollin.sweeps.study import Study, checked_study
from rollin.sweeps.study_file import study_from


@dataclass(frozen=True)
class SweepOptions:
    """Many runs of a task: every point of a grid of options, with several seeds, and a report.

    If interrupted, the same command resumes it. Options of rollin train that are
    not listed here apply to all runs: rollin sweep point-umaze --grid beta=0,0.1 --steps 20000.
    """

    what: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="TASK")]]
    """A task, as in rollin train; a study in a FILE.toml; or module:STUDY, a rollin.Study."""
    grid: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Values of an option, such as beta=0,0.1 or delta=1/12,1/24; once for each option."""
    seeds: int | None = None
    """Seeds 0 … N-1 of every condition; 10, or the study's own number, if not given."""
    against: str | None = None
    """The baseline that all others are compared with, such as beta=0."""
    readings: tuple[str, ...] = ()
    """What is read of the runs, at their end or at a step: kappa, return_final@100000.
    Default: κ and success on the final context; the return where there is no curriculum."""
    scale: float = 1.0
    """Shorten training by this factor."""
    name: str | None = None
    """Name of the study; TASK-sweep if not given."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Directory of the sweep; runs/NAME if not given."""
    trust: bool = False
    """Run the code that a FILE.toml names as a task, module:factory."""
    place: PlaceOptions = field(default_factory=PlaceOptions)


SEEDS = 10  # of a sweep that names no number
OWN = ("what", "grid", "seeds", "against", "readings", "scale", "name", "out", "trust", "jobs",
       "backend", "address", "storage", "learner", "gpus", "retries", "help")  # fmt: skip
"""Options of this command, which are not those of the runs."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    ours, theirs = split(task_first(arguments))
    options = parse(SweepOptions, spelled_out(ours, ()), "sweep")
    check_place(options.place)
    positive("--scale", options.scale)
    if options.seeds is not None:
        at_least(1, "--seeds", options.seeds)
    made = make_study(options, theirs)
    from rollin.cli.study_runs import length_notes, run_and_report  # loads all that draws

    seeds = options.seeds or made.seeds
    short = "" if options.scale == 1 else f"-scale-{options.scale:g}"
    return run_and_report(
        made,
        options.out or Path("runs") / f"{made.shared}{short}",
        options.place,
        typed_command("sweep", arguments),
        seeds=seeds,
        scale=options.scale,
        known=[*tables().values(), made],
        notes=length_notes(made, seeds, options.scale),
    )


def task_first(arguments: Sequence[str]) -> list[str]:
    """The words with the task before all options, of which it is no value, wherever it stands."""
    found = list(arguments)
    task = task_among(found)
    if task is not None:
        found.remove(task)
        found.insert(0, task)
    return found


def split(arguments: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """What this command takes, and the options of the runs by name."""
    ours: list[str] = []
    theirs: dict[str, Any] = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name.replace("-", "_") in OWN:
            ours.append(word)
            continue
        values = [value] if equals else []
        while not equals and words and not words[0].startswith("--"):
            values.append(words.pop(0))
        key, off = name.replace("-", "_"), name.startswith("no-")
        if not values:
            theirs[key.removeprefix("no_") if off else key] = not off
        else:
            read = [read_value(text) for text in values]
            theirs[key] = read[0] if len(read) == 1 else read
    return ours, theirs


def make_study(options: SweepOptions, given: dict[str, Any]) -> Study:
    """The study that the command line describes."""
    what = options.what
    name_code(what)
    if what.endswith(".toml"):
        found = study_from(Path(what), trust=options.trust)
    else:
        found = _imported(what)
    if found is not None:
        if options.grid or given:
            names = [f"--grid {text}" for text in options.grid] + [flag(name) for name in given]
            raise RollinError(
                f"{what} is a study, which has options of its own: leave out {', '.join(names)}."
            )
    else:
        if not options.grid:
            raise RollinError(
                "A sweep needs a grid of options: --grid beta=0,0.1, or a study in a FILE.toml."
            )
        preset = engine_for(what).preset(what)
        listed = {n: _listed(n, v, type(preset)) for n, v in given.items()}
        conditions = block(what, grid_from(options.grid), listed)
        plain = what.replace(":", ".").removesuffix(".npz").rpartition("/")[2] + "-sweep"
        seeds = options.seeds or SEEDS
        found = checked_study(options.name or plain, conditions, usual_readings(what), seeds=seeds)
    if options.readings:
        found = replace(found, readings=tuple(map(reading, options.readings)))
    if options.against is not None:
        select(found.conditions, options.against, "--against")
        found = replace(found, baseline=options.against)
    return replace(found, name=options.name) if options.name else found


def _listed(name: str, value: Any, kind: type[Any]) -> Any:
    """A single value of an option that takes several, such as --hidden 32."""
    if name not in option_names(kind) or isinstance(value, list):
        return value
    default = kind()
    parts = [default, *(getattr(default, n) for n in vars(default))]
    own = next((getattr(part, name) for part in parts if hasattr(part, name)), None)
    return [value] if isinstance(own, tuple) else value


def _imported(what: str) -> Study | None:
    """The study that module:NAME names; None if it is something else."""
    if not is_factory(what):
        return None
    found = load_named(
        what,
        "Give module:factory or module:STUDY, where the module can be imported from here.",
    )
    if not isinstance(found, Study):
        return None
    for condition in found.conditions:  # which the module's own code names
        name_code(condition.task)
    return found
