"""`rollin train TASK` and `rollin resume RUN`: one run, whose options depend on the task."""

import shlex
import sys
import textwrap
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from rollin.cli.console import (
    SweepProgress,
    hint_at_silence,
    live,
    make_console,
    stop_on_signal,
    typed_command,
)
from rollin.cli.options import (
    Arg,
    Group,
    beside,
    help_width,
    make,
    option_groups,
    paragraphs,
    parse,
    read,
)
from rollin.errors import LONGEST, RollinError, one_line
from rollin.runs.checkpoint import written_with
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import Engine, engine_for, engine_of, engines, run, spec_of
from rollin.runs.files import check_trust
from rollin.runs.spec import Job, JobEvent, RunSpec, configured
from rollin.runs.systems import changed_since
from rollin.tasks import TASKS, plain_name
from rollin.untrusted import is_factory, name_code

ABOUT = """Train on a task. If interrupted, the same command resumes the run.

The options depend on the task: rollin train TASK --help lists all of them.
"""


@dataclass(frozen=True)
class TrainCommand:
    """What rollin train takes besides the options of the run."""

    task: Annotated[str, Arg("TASK", positional=True)]
    """The task."""
    out: Annotated[Path | None, Arg("DIR")] = None
    """Run directory. Default: runs/TASK-HASH."""


@dataclass(frozen=True)
class ResumeOptions:
    """Resume an interrupted run from its last checkpoint."""

    run: Annotated[Path, Arg("RUN", positional=True)]
    """The run directory."""
    trust: bool = False
    """Run the code that the run names, module:factory, even if another user made the run."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of `rollin train`."""
    spec, out = parse_run(arguments)
    name = Path(spec.task).name.removesuffix(".npz").replace(":", ".")
    out = out or Path("runs") / f"{name}-{spec.hash}"
    return run_with_progress(spec, out, typed_command("train", arguments))


def resume(arguments: Sequence[str]) -> int:
    """Entry point of `rollin resume`."""
    from rollin.runs.exported import is_exported
    from rollin.sweeps.sweep import SWEEP_FILE

    options = parse(ResumeOptions, arguments, "resume")
    if is_exported(options.run):
        raise RollinError(
            f"{options.run} holds a policy without its run, which rollin evaluate plays: resume "
            "the run directory that it was exported from."
        )
    if (options.run / SWEEP_FILE).exists():
        raise RollinError(f"{options.run} is a sweep: repeat its command to resume.")
    directory = RunDirectory.open(options.run)
    spec = spec_of(directory)
    check_trust(options.run, directory.config, trust=options.trust)
    return run_with_progress(spec, options.run, typed_command("resume", arguments))


# ------------------------------------------------------------------ the task and its options


def parse_run(arguments: Sequence[str]) -> tuple[RunSpec[Any], Path | None]:
    """Return the run that a command line describes, and its directory if one is given."""
    typed = task_among(arguments)
    if typed is None:
        if {"-h", "--help"} & set(arguments):
            print(families_text())
            raise SystemExit(0)
        raise RollinError(
            "rollin train needs a task, for example `rollin train point-umaze`. "
            "rollin train --help lists the tasks."
        )
    task = plain_name(typed)
    name_code(task)
    engine = engine_for(task)
    preset = engine.preset(task)
    words = list(arguments)
    words.remove(typed)
    refuse_options_of_others(words, engine, task)
    groups = [*own_options(engine), *option_groups(engine.config_class, preset)]
    values = read(groups, [typed, *words], f"train {shlex.quote(task)}", engine.help)
    given = {name: value for name, value in values.items() if name not in ("task", "out")}
    try:
        config = configured(preset, given)
        engine.check_given(config, given)
    except RollinError:
        if "env_options" not in given:
            engine.try_task(task)  # what is wrong with the task itself comes first
        raise
    return RunSpec(task, config), make(TrainCommand, values).out


def task_among(arguments: Sequence[str]) -> str | None:
    """Return the word of a command that names a task; None if none does."""
    # values of these options may look like a task
    words = [w for before, w in pairwise(["", *arguments]) if before not in ("--out", "--name")]
    plain = [word for word in words if not word.startswith("-")]
    for word in plain:
        if word in TASKS or is_factory(word) or word.endswith((".npz", ".toml")):
            return word
        if any(word in engine.tasks for engine in engines()):
            return word
    for word in plain:
        if any(engine.claims(word) for engine in engines()):
            return word
    # unknown: the error names the nearest one
    if plain and plain[0] == words[0]:
        return plain[0]
    free = [w for before, w in pairwise(arguments) if w in plain and not before.startswith("-")]
    return free[-1] if free else None


def refuse_options_of_others(words: Sequence[str], engine: Engine[Any], task: str) -> None:
    """Raise if an option belongs to another kind of task."""
    own = flags_of(engine)
    for word in words:
        name = word.partition("=")[0].replace("--no-", "--").replace("_", "-")
        if not name.startswith("--") or name in own:
            continue
        others = [kind for kind in engines() if kind.example and name in flags_of(kind)]
        others = [kind for kind in others if kind.key_options] or others
        if others:
            fixes = "; ".join(f"for {kind.kind} use {kind.example}" for kind in others)
            raise RollinError(
                f"{name} does not apply to {task} ({engine.kind}). {fixes[0].upper()}{fixes[1:]}."
            )


def own_options(engine: Engine[Any]) -> list[Group]:
    """Return the options besides those of the run, with the engine's text about the task."""
    ((title, (task, *others)),) = option_groups(TrainCommand)
    return [(title, [replace(task, arg=replace(task.arg, text=engine.task_help)), *others])]


def flags_of(engine: Engine[Any]) -> Collection[str]:
    """Return every flag of an engine's tasks."""
    groups = [*own_options(engine), *option_groups(engine.config_class)]
    return {flag for _, group in groups for option in group for flag in option.flags} | {"--help"}


def families_text() -> str:
    """Return the help without a task: each kind of task with its key options, if it has any."""
    width = help_width()
    lines = ["usage: rollin train TASK [options]", "", *paragraphs(ABOUT, width)]
    for engine in engines():
        if not engine.example:
            continue
        lines += paragraphs(f"{engine.kind[0].upper()}{engine.kind[1:]}:", width)[:-1]
        lines += beside("TASK", engine.task_help, width)
        groups = option_groups(engine.config_class)
        options = {option.name: option for _, group in groups for option in group}
        for name in engine.key_options:
            lines += beside(options[name].usage, options[name].text, width)
        more = f"All options: rollin train {engine.example.split()[0]} --help"
        lines += [*textwrap.wrap(more, width, initial_indent="  "), ""]
    return "\n".join(lines).rstrip()


# ------------------------------------------------------------------ the run


def run_with_progress(spec: RunSpec[Any], out: Path, command: str) -> int:
    """Start or resume a run with live progress, and print how it ended."""
    console = make_console()
    job = Job(str(out), spec, out)
    was_finished = RunDirectory(out).finished
    warnings = [_versions_warning(RunDirectory(out))]
    progress = SweepProgress(1, 0, console)
    progress.take(JobEvent("started", job, {}))

    def warn_once() -> None:
        if warnings and (warning := warnings.pop()):
            print(warning, file=sys.stderr)

    def on_status(status: dict[str, Any]) -> None:
        if not status.get("compiling"):  # then a checkpoint has been read
            warn_once()
        progress.take(JobEvent("progress", job, status))

    with stop_on_signal() as should_stop, live(progress), hint_at_silence():
        finished = run(spec, out, command, on_status=on_status, should_stop=should_stop)
    warn_once()
    if not finished:
        console.print(f"Stopped. Resume with: rollin resume {shlex.quote(str(out))}")
        return should_stop.code
    if was_finished:
        console.print(f"{out} is already finished.", soft_wrap=True)
    result = RunDirectory.open(out).result()
    if result.get("warning"):
        print(f"rollin: {one_line(str(result['warning']), LONGEST)}", file=sys.stderr)
    try:
        summary = engine_of(spec).summary(spec, result)
    except (KeyError, TypeError, ValueError) as error:
        raise RollinError(
            f"{out / 'result.json'} does not hold the results of this run ({error}): it is damaged "
            "or from another version."
        ) from error
    console.print(f"{summary}: {out / 'result.json'}", soft_wrap=True)
    return 0


def _versions_warning(run: RunDirectory) -> str:
    """Return a warning if a run resumes with other versions than those of its checkpoint.

    A checkpoint that cannot be read or resumed has an error of its own.
    """
    changed = ""
    if not run.finished:
        with suppress(RollinError):
            changed = changed_since(written_with(run.checkpoint))
    return changed and (
        f"rollin: {run.path} was saved by other versions ({one_line(changed, 300)}): later numbers "
        "may differ from those of a run that was never interrupted."
    )
