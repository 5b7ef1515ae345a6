"""`rollin compare`: a curriculum beside its control, and whether it helps."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from rollin.checks import at_least, positive
from rollin.cli.console import typed_command
from rollin.cli.options import Arg, make, option_groups, read
from rollin.cli.study_runs import (
    PlaceOptions,
    check_place,
    length_notes,
    run_and_report,
    show_tables,
)
from rollin.cli.sweep import file_name, listed_options, run_options, task_first
from rollin.errors import RollinError
from rollin.runs.engines import engine_for
from rollin.runs.records import MetricAt
from rollin.runs.spec import option_names, spelled
from rollin.sweeps.condition import Condition, block
from rollin.sweeps.study import KAPPA, Study
from rollin.tasks import plain_name
from rollin.untrusted import name_code

if TYPE_CHECKING:
    from rich.console import Console

    from rollin.analysis.results import StudyResults

WALK_OPTIONS = ("rule", "threshold", "threshold_slope", "stride", "delta", "spacing", "counted",
                "better")  # fmt: skip
"""Options that only a curriculum in order has."""


class Control(NamedTuple):
    """Options of a control, and those of the curriculum that do not apply to it."""

    options: Mapping[str, Any]
    without: Sequence[str] = ()


CONTROLS = {
    "scratch": Control({"method": "scratch"}, ("teacher",)),
    "baseline": Control({"method": "baseline"}),
    "uniform": Control({"teacher": "uniform"}, WALK_OPTIONS),
}
"""By name; all other options are those of the curriculum."""


@dataclass(frozen=True)
class CompareOptions:
    """Train with a curriculum and without it, and print whether the curriculum helps.

    Both are judged by the deterministic policy on the final context, with a test over seeds. If
    interrupted, the same command resumes. Options of rollin train that are not listed here
    describe the curriculum and the learner: rollin compare point-umaze --adaptive --steps 100000.
    """

    task: Annotated[str, Arg("TASK", positional=True)]
    """A contextual environment, as in rollin train."""
    against: Literal["scratch", "baseline", "uniform"] = "scratch"
    """The control, with the same learner, steps and seeds. scratch: the final context only;
    baseline: the same curriculum without roll-in; uniform: its contexts in random order."""
    seeds: int = 5
    """Number of seeds of each side."""
    first_seed: int = 0
    """The first of these seeds."""
    scale: float = 1.0
    """Shorten training by this factor."""
    out: Annotated[Path | None, Arg("DIR")] = None
    """Directory of the runs. Default: runs/TASK-compare-HASH."""
    place: PlaceOptions = field(default_factory=PlaceOptions)


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    of_runs: dict[str, list[str] | bool] = {}
    groups = option_groups(CompareOptions)
    about = CompareOptions.__doc__ or ""
    options = make(CompareOptions, read(groups, task_first(arguments), "compare", about, of_runs))
    check_place(options.place)
    positive("--scale", options.scale)
    at_least(1, "--seeds", options.seeds)
    at_least(0, "--first-seed", options.first_seed)
    study = make_comparison(options, run_options(of_runs))
    short = "" if options.scale == 1 else f"-scale-{options.scale:g}"
    first = study.conditions[0].spec(options.first_seed)
    return run_and_report(
        study,
        options.out or Path("runs") / f"{study.family}-{first.hash}{short}",
        options.place,
        typed_command("compare", arguments),
        seeds=options.seeds,
        scale=options.scale,
        known=[study],
        notes=length_notes(study, options.seeds, options.scale),
        show=show_verdict,
    )


def show_verdict(results: "StudyResults", console: "Console") -> None:
    """Print the tables of a comparison, and what they show."""
    from rollin.report.sections import verdict  # loads all that draws

    show_tables(results, console)
    console.print(verdict(results), soft_wrap=True)


def make_comparison(options: CompareOptions, given: Mapping[str, Any]) -> Study:
    """Return the study of a curriculum and its control; raise if they cannot be compared."""
    task = plain_name(options.task)
    name_code(task)
    _check_task(task)
    listed = listed_options(task, given)
    ours = _condition(task, "curriculum", listed, options.first_seed)
    ours.engine.check_given(ours.config, given)
    if ours.config.algorithm.method == "scratch":
        raise RollinError(
            "--method scratch is the control of rollin compare, which adds it by itself: leave "
            "--method out."
        )
    added, without = CONTROLS[options.against]
    shared = spelled(type(ours.config), listed)
    kept = {name: value for name, value in shared.items() if name not in without}
    control = _condition(task, options.against, {**kept, **added}, options.first_seed)
    if control.key() == ours.key():
        raise RollinError(
            f"With these options the curriculum is its own control, {options.against}: change "
            "--beta, --method or --teacher, or choose another --against."
        )
    name = file_name(task)
    return Study(
        f"{name}-against-{options.against}",
        (ours, control),
        (_judged_by((ours, control)), KAPPA),
        options.seeds,
        columns=("method",),
        baseline=f"method={options.against}",
        family=f"{name}-compare",
        kind="comparison",
        title=f"Curriculum on {task}, against {options.against}",
    )


def _check_task(task: str) -> None:
    """Refuse a task that has no curriculum, or none that can be left out."""
    engine = engine_for(task)
    if not engine.walks:
        raise RollinError(
            f"{task} ({engine.kind}) has no curriculum to compare: give a contextual environment, "
            "such as point-umaze or module:factory."
        )
    if "method" not in option_names(engine.config_class):
        raise RollinError(
            f"rollin compare takes contextual environments, and {task} is a task of {engine.kind}: "
            f"compare β > 0 with β = 0 by rollin sweep {task} --grid beta=0,0.5 --baseline beta=0."
        )


def _condition(task: str, method: str, options: Mapping[str, Any], first_seed: int) -> Condition:
    (made,) = block(task, {}, options, {"method": method})
    return replace(made, first_seed=first_seed)


def _judged_by(conditions: Sequence[Condition]) -> MetricAt:
    """Success or the return at the end; raise if a condition cannot be run.

    Without a definition of success a positive reward counts as one: where others are 0.
    """
    from rollin.envs.check import is_sparse  # these load environments
    from rollin.runs.curricula import check_for_run, curriculum_of, env_of

    by_success = True
    for condition in conditions:
        with closing(env_of(condition.spec(0))) as env:
            curriculum = curriculum_of(env, condition.config)
            defined = check_for_run(env, condition.config, curriculum).successes
            by_success = defined or is_sparse(env, curriculum.contexts[-1])
    return MetricAt("success_final" if by_success else "return_final")
