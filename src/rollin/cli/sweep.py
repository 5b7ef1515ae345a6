"""`rollin sweep`: a study of one's own, over a grid of options or from a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from rollin.checks import at_least, flag, positive
from rollin.cli.console import typed_command
from rollin.cli.options import Arg, make, option_groups, read
from rollin.cli.study_runs import PlaceOptions, check_place, length_notes, run_and_report
from rollin.cli.train import task_among
from rollin.errors import OPTION_NAMES, RollinError
from rollin.paper.tables import tables
from rollin.runs.engines import engine_for
from rollin.runs.spec import option_names, read_value
from rollin.sweeps.condition import block, grid_from, reading, select, usual_readings
from rollin.sweeps.study import Study, checked_study, study_from
from rollin.untrusted import is_factory, load_named, name_code


@dataclass(frozen=True)
class SweepOptions:
    """Run every point of a grid of options with several seeds, and write a report.

    If interrupted, the same command resumes the sweep. Options of rollin train that are
    not listed here apply to all runs: rollin sweep point-umaze --grid beta=0,0.1 --steps 20000.
    """

    what: Annotated[str, Arg("TASK", positional=True)]
    """A task, as in rollin train; a study in a FILE.toml; or module:STUDY, a rollin.Study."""
    grid: Annotated[tuple[str, ...], Arg(repeat=True)] = ()
    """Values of an option, such as beta=0,0.1 or delta=1/12,1/24; once for each option."""
    seeds: int | None = None
    """Seeds 0 … N-1 of every condition. Default: 10, or the study's own number."""
    baseline: Annotated[str | None, Arg(aliases=("against",))] = None
    """The condition that all others are compared with, such as beta=0."""
    metrics: Annotated[tuple[str, ...], Arg(aliases=("readings",))] = ()
    """Metrics to compare, at the end of the runs or at a step: kappa, return_final@100000.
    Default: κ and success on the final context; the return where there is no curriculum."""
    scale: float = 1.0
    """Shorten training by this factor."""
    name: str | None = None
    """Name of the study. Default: TASK-sweep."""
    out: Annotated[Path | None, Arg("DIR")] = None
    """Directory of the sweep. Default: runs/NAME."""
    trust: bool = False
    """Run the code that a FILE.toml names as its task, module:factory."""
    place: PlaceOptions = field(default_factory=PlaceOptions)


SEEDS = 10  # of a sweep that names no number


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    of_runs: dict[str, list[str] | bool] = {}
    groups = option_groups(SweepOptions)
    about = SweepOptions.__doc__ or ""
    options = make(SweepOptions, read(groups, task_first(arguments), "sweep", about, of_runs))
    check_place(options.place)
    positive("--scale", options.scale)
    if options.seeds is not None:
        at_least(1, "--seeds", options.seeds)
    made = make_study(options, run_options(of_runs))
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
    """Return the words with the task first, so that it is not read as a value of an option."""
    words = list(arguments)
    task = task_among(words)
    if task is not None:
        words.remove(task)
        words.insert(0, task)
    return words


def run_options(words: Mapping[str, list[str] | bool]) -> dict[str, Any]:
    """Return the options of the runs by name, from the words that follow each."""
    options: dict[str, Any] = {}
    for name, given in words.items():
        values = [read_value(text) for text in given] if isinstance(given, list) else [given]
        options[OPTION_NAMES.get(name, name)] = values[0] if len(values) == 1 else values
    return options


def with_own_names(text: str) -> str:
    """Return batch=32 for batch-size=32: options in a grid have the names that hashes have."""
    name, equals, values = text.partition("=")
    name = name.replace("-", "_")
    return f"{OPTION_NAMES.get(name, name)}{equals}{values}"


def make_study(options: SweepOptions, given: dict[str, Any]) -> Study:
    """Return the study that the command line describes."""
    what = options.what
    name_code(what)
    if what.endswith(".toml"):
        study = study_from(Path(what), trust=options.trust)
    else:
        study = _imported(what)
    if study is not None:
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
        grid = grid_from(tuple(map(with_own_names, options.grid)))
        conditions = block(what, grid, listed_options(what, given))
        name = options.name or f"{file_name(what)}-sweep"
        seeds = options.seeds or SEEDS
        study = checked_study(name, conditions, usual_readings(what), seeds=seeds)
    if options.metrics:
        study = replace(study, readings=tuple(map(reading, options.metrics)))
    if options.baseline is not None:
        select(study.conditions, options.baseline, "--baseline")
        study = replace(study, baseline=options.baseline)
    return replace(study, name=options.name) if options.name else study


def file_name(task: str) -> str:
    """Return the name of a task as the beginning of a directory's."""
    return task.replace(":", ".").removesuffix(".npz").rpartition("/")[2]


def listed_options(task: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with a list where they take several values."""
    kind = type(engine_for(task).preset(task))
    return {name: _listed(name, value, kind) for name, value in given.items()}


def _listed(name: str, value: Any, kind: type[Any]) -> Any:
    """Return a single value as a list if the option takes several, such as --hidden-sizes 32."""
    if name not in option_names(kind) or isinstance(value, list):
        return value
    default = kind()
    parts = [default, *(getattr(default, n) for n in vars(default))]
    own = next((getattr(part, name) for part in parts if hasattr(part, name)), None)
    return [value] if isinstance(own, tuple) else value


def _imported(what: str) -> Study | None:
    """Return the study that module:NAME names; None if it is something else."""
    if not is_factory(what):
        return None
    named = load_named(
        what,
        "Give module:factory or module:STUDY, where the module can be imported from here.",
    )
    if not isinstance(named, Study):
        return None
    for condition in named.conditions:  # which the module's own code names
        name_code(condition.task)
    return named
