"""`rollin train TASK`: one run. What options there are depends on the task's engine."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, make_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import tyro

from rollin.checks import flag
from rollin.cli import LONGEST
from rollin.cli.arguments import make_console, parse, spelled_out, stop_on_signal, typed_command
from rollin.cli.blocking import hint_at_silence
from rollin.cli.dashboard import SweepProgress, live
from rollin.deep.options import RollinOptions
from rollin.errors import RollinError
from rollin.imports import is_factory, name_code
from rollin.names import plain_name
from rollin.runs.checkpoint import written_with
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine_for, engine_of, engines
from rollin.runs.engines.base import Engine
from rollin.runs.execute import run
from rollin.runs.options import option_names
from rollin.runs.spec import RunSpec
from rollin.runs.versions import changed_since
from rollin.sweeps.jobs import Job, JobEvent
from rollin.texts import one_line

OUT = "Run directory; runs/TASK-HASH if not given."


@dataclass(frozen=True)
class Asked:
    """What the command line gave: a task, where to run it, and how."""

    task: str
    out: Path | None
    config: Any


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse_options(arguments)
    spec: RunSpec[Any] = RunSpec(options.task, options.config)
    name = Path(options.task).name.removesuffix(".npz").replace(":", ".")
    out = options.out or Path("runs") / f"{name}-{spec.hash}"
    return run_with_progress(spec, out, typed_command("train", arguments))


def parse_options(arguments: Sequence[str]) -> Asked:
    """The options of the engine that the task belongs to, with the task's preset."""
    task = task_among(arguments)
    task = None if task is None else plain_name(task)
    name_code(task or "")
    engine = next(iter(engines())) if task is None else engine_for(task)
    preset = engine.config_class() if task is None else engine.preset(task)
    kind = options_class(engine)
    default = kind(tyro.MISSING, None, preset)
    kind_of = engine.config_class
    if task is not None:
        refuse_options_of_others(arguments, engine, task)
    words = spelled_out(arguments, option_names(kind_of), kind_of.short_forms)
    try:
        found = parse(kind, words, "train", default, task or "")
    except RollinError as error:
        written = isinstance(error.__cause__, SystemExit)  # an option that there is not
        if task is not None and not written and "--env-options" not in words:
            engine.try_task(task)  # what is wrong with the task itself comes first
        raise
    if "--beta" in {word.partition("=")[0] for word in arguments}:
        refuse_idle_beta(found.config)
    return Asked(plain_name(found.task), found.out, found.config)


def task_among(arguments: Sequence[str]) -> str | None:
    """The word of a command that names a task; None if none does."""
    # values of these options may look like a task
    words = [w for before, w in pairwise(["", *arguments]) if before not in ("--out", "--name")]
    plain = [word for word in words if not word.startswith("-")]
    known = [name for engine in engines() for name in engine.tasks]
    for word in plain:
        if word in known or is_factory(word) or word.endswith((".npz", ".toml")):
            return word
    for word in plain:
        if any(engine.claims(word) for engine in engines()):
            return word
    if plain and plain[0] == words[0]:
        return plain[0]  # unknown, which is told with the nearest name
    return None


def refuse_options_of_others(arguments: Sequence[str], engine: Engine[Any], task: str) -> None:
    """Say of an option that another kind of task has that this one has none."""
    own = flags_of(engine)
    for word in arguments:
        name = word.partition("=")[0].replace("--no-", "--").replace("_", "-")
        if not name.startswith("--") or name in own:
            continue
        others = [kind.kind for kind in engines() if kind.kind and name in flags_of(kind)]
        if others:
            raise RollinError(
                f"{task} has no {name}: its runs are {engine.kind}, and that option belongs to "
                f"{' or '.join(others)}. rollin train {task} --help lists what there is."
            )


def flags_of(engine: Engine[Any]) -> set[str]:
    """The options of an engine's tasks, as they are typed."""
    kind = engine.config_class
    return {flag(name) for name in (*option_names(kind), *kind.short_forms, "out", "help")}


def refuse_idle_beta(config: Any) -> None:
    """Refuse a β that was typed for a method which never rolls in."""
    algorithm = getattr(config, "algorithm", None)
    if isinstance(algorithm, RollinOptions) and algorithm.beta > 0 and algorithm.rolls_in == 0:
        raise RollinError(
            f"--method {algorithm.method} never rolls in, so that --beta {algorithm.beta:g} would "
            "do nothing: leave out one of the two."
        )


def options_class(engine: Engine[Any]) -> Any:
    """The dataclass that the command line of an engine's tasks is parsed into."""
    task = tyro.conf.arg(metavar="TASK", help=engine.task_help)
    made = make_dataclass(
        "Options",
        [
            ("task", Annotated[str, tyro.conf.Positional, task]),
            ("out", Annotated[Path | None, tyro.conf.arg(metavar="DIR", help=OUT)]),
            ("config", engine.config_class),
        ],
        frozen=True,
    )
    made.__doc__ = engine.help
    return made


def run_with_progress(spec: RunSpec[Any], out: Path, command: str) -> int:
    """Run or go on, with live progress; say how it ended."""
    console = make_console()
    job = Job(str(out), spec, out)
    was_finished = RunDirectory(out).finished
    versions = OtherVersions(RunDirectory(out))
    progress = SweepProgress(1, 0, console)
    progress.take(JobEvent("started", job, {}))

    def on_status(status: dict[str, Any]) -> None:
        if not status.get("compiling"):
            versions.tell()
        progress.take(JobEvent("progress", job, status))

    with stop_on_signal() as should_stop, live(progress), hint_at_silence():
        finished = run(spec, out, command, on_status=on_status, should_stop=should_stop)
    versions.tell()
    if not finished:
        console.print(f"Stopped. Resume with: rollin resume {shlex.quote(str(out))}")
        return should_stop.code
    if was_finished:
        console.print(f"{out} is already finished.", soft_wrap=True)
    result = RunDirectory.open(out).result()
    if result.get("warning"):
        print(f"rollin: {one_line(str(result['warning']), LONGEST)}", file=sys.stderr)
    try:
        told = engine_of(spec).summary(spec, result)
    except (KeyError, TypeError, ValueError) as error:
        raise RollinError(
            f"{out / 'result.json'} does not hold what this run leaves ({error}): it is damaged "
            "or from another version."
        ) from error
    console.print(f"{told}: {out / 'result.json'}", soft_wrap=True)
    return 0


class OtherVersions:
    """Says, once, that a run goes on with other versions than those of its checkpoint.

    They are looked up before the run goes on, and told once it does: of a checkpoint that cannot
    be gone on with, the run's own sentence tells.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._path, self._changed = run.path, ""
        if not run.finished:
            with suppress(RollinError):
                self._changed = changed_since(written_with(run.checkpoint))

    def tell(self) -> None:
        """Say it, if there is anything to say and it was not said yet."""
        if self._changed:
            changed, self._changed = one_line(self._changed, 300), ""
            print(
                f"rollin: {self._path} was saved by other versions ({changed}): later numbers may "
                "differ from those of a run that was never interrupted.",
                file=sys.stderr,
            )
