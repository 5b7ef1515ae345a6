"""`rollin reproduce TABLE`: all cells of a table, on all cores or a cluster, resumable.

What only some of its forms need is loaded there: the list of all tables is printed at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rollin.checks import at_least
from rollin.cli.arguments import make_console, parse, typed_command
from rollin.cli.sweep_options import WIDE, ReproduceOptions, check, check_taken, scale_asked
from rollin.errors import RollinError
from rollin.paper.tables import find_table, tables
from rollin.sweeps.select import select
from rollin.sweeps.study import Study


@dataclass(frozen=True)
class Computed:
    """A result of ours that is no table of the paper.

    run: takes the options and the command as typed; takes: options that mean something to it.
    """

    about: str
    title: str
    run: Callable[[ReproduceOptions, str], int]
    takes: tuple[str, ...] = ("out",)


def _paper_numbers(options: ReproduceOptions, _: str) -> int:
    from rollin.cli._sheets import show_findings
    from rollin.paper.numbers import numbers  # loads the robots, which the other tables do not need

    show_findings(numbers(), options.out or Path("runs") / "paper-numbers", make_console(WIDE))
    return 0


def _complexity(options: ReproduceOptions, command: str) -> int:
    from rollin.cli.complexity import reproduce_complexity

    return reproduce_complexity(options, command)


def _swept(options: ReproduceOptions, command: str) -> int:
    assert options.table is not None
    found = _own_studies(options.table)
    return _sweep(found[options.table], options, command, list(found.values()))


def _own_studies(name: str) -> dict[str, Study]:
    """The family of a study that is no table of the paper; empty if the name is no such study."""
    if name.startswith("curricula"):
        from rollin.paper import curricula  # configures all its conditions

        return curricula.studies()
    if name.startswith("antmaze") and name in COMPUTED:
        from rollin.paper import decisive

        return decisive.studies()
    return {}


SWEPT = ("cells", "seeds", "scale", "steps", "out", "jobs", "backend", "address", "storage",
         "retries", "learner", "gpus", "until")  # fmt: skip
"""Options of what is swept like a table."""
COMPUTED: dict[str, Computed] = {
    "paper-numbers": Computed(
        "Tables 1–13", "What the printed numbers say of their seeds", _paper_numbers
    ),
    "complexity": Computed(
        "Theorems 4.1, 4.3", "Complexity gains, measured: cost against the size of an MDP",
        _complexity,
        ("cells", "seeds", "scale", "out", "jobs", "backend", "address", "storage", "retries"),
    ),
    "curricula": Computed(
        "ours", "Ten teachers, R and Δ by hand, and neither, on four small tasks",
        _swept, SWEPT,
    ),
    "curricula-rollin": Computed(
        "ours", "The teachers that know nothing of roll-in, with it, on two mazes",
        _swept, SWEPT,
    ),
    "antmaze-decisive": Computed(
        "Table 8", "Ant maze, Δ = 1/12, uniform sampling: the one row that four seeds decide",
        _swept, SWEPT,
    ),
    "antmaze-tuning": Computed("ours", "Ant maze, adaptive curriculum: γ", _swept, SWEPT),
    "antmaze-adaptive": Computed(
        "ours", "Ant maze, adaptive curriculum, held-out seeds", _swept, SWEPT
    ),
    "antmaze-scratch": Computed("ours", "Ant maze, the final goal only", _swept, SWEPT),
}  # fmt: skip
"""What is computed beside the paper's tables, by name."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ReproduceOptions, arguments, "reproduce")
    for name in ("seeds", "steps"):
        if (value := getattr(options, name)) is not None:
            at_least(1, f"--{name}", value)
    check(options)
    if options.list:
        from rollin.cli.table_list import show_conditions, show_list

        if options.table is not None:
            return show_conditions(_study(options.table), options)
        return show_list(options, [(name, c.about, c.title) for name, c in COMPUTED.items()])
    if options.table is None:
        raise RollinError("Which table? rollin reproduce --list shows their names.")
    command = typed_command("reproduce", arguments)
    if options.table in COMPUTED:
        computed = COMPUTED[options.table]
        check_taken(options, computed.takes)
        return computed.run(options, command)
    study = find_table(options.table, others=COMPUTED)
    if study.kind == "picture":
        from rollin.cli.study_runs import draw  # loads all that draws

        check_taken(options, ("out",))
        return draw(study, options.out)
    return _sweep(study, options, command, list(tables().values()))


def _study(name: str) -> Study:
    """The study of a name, of the paper or beside it."""
    found = _own_studies(name).get(name) or find_table(name, others=COMPUTED)
    if not found.conditions:
        raise RollinError(f"{name} has no runs: leave out --list to draw it.")
    return found


def _sweep(study: Study, options: ReproduceOptions, command: str, known: Sequence[Study]) -> int:
    """Run what is missing of a study, and write its report."""
    from rollin.cli.study_runs import length_notes, run_and_report  # loads all that computes

    if options.cells is not None:
        study = study.only(select(study.conditions, options.cells))
    scale, seeds = scale_asked(study, options), options.seeds or study.seeds
    short = "" if scale == 1 else f"-scale-{scale:g}"
    return run_and_report(
        study,
        options.out or Path("runs") / f"{study.shared}{short}",
        options.place,
        command,
        seeds=seeds,
        scale=scale,
        known=known,
        notes=length_notes(study, seeds, scale),
    )
