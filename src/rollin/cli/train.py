"""`rollin train TASK`: one run. What options there are depends on the task's engine."""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import tyro

from rollin.cli.arguments import make_console, parse, stop_on_signal, typed_command
from rollin.cli.dashboard import SweepProgress, live
from rollin.envs.registry import TASKS
from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.execute import run
from rollin.runs.mdps import gives_mdp
from rollin.runs.spec import RollinConfig, RunSpec, SACRunConfig, TabularConfig, rollin_config
from rollin.sweeps.jobs import Job, JobEvent

FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:factory
GYMNASIUM_ID = re.compile(r"([\w.-]+:)?([\w-]+/)*[\w.-]+-v\d+")  # [module:][namespace/]name-vN

FRACTIONS = ("--delta", "--start")  # options that may be given as 1/24

Out = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]


@dataclass(frozen=True)
class TrainOptions:
    """One run of a task. Interrupted, it goes on where it stopped when started again.

    Below are the options of tabular tasks; those of ROLLIN on contextual environments are listed
    by rollin train point-umaze --help, those of plain SAC by rollin train Hopper-v5 --help.
    """

    task: tyro.conf.Positional[str]
    """four-rooms, a FILE.npz with an MDP of yours; point-umaze, antmaze-umaze, walker, hopper,
    humanoid, ant; the id of a Gymnasium environment; or module:factory that returns an MDP or a
    contextual environment of yours."""
    out: Out = None
    """Run directory; runs/TASK-HASH if not given."""
    config: TabularConfig = field(default_factory=TabularConfig)


@dataclass(frozen=True)
class TrainSACOptions:
    """One run of plain SAC, without a curriculum, on a Gymnasium environment.

    Interrupted, it goes on where it stopped when started again.
    """

    task: tyro.conf.Positional[str]
    """Id of a Gymnasium environment with real observations and bounded real actions."""
    out: Out = None
    """Run directory; runs/TASK-HASH if not given."""
    config: SACRunConfig = field(default_factory=SACRunConfig)


@dataclass(frozen=True)
class TrainRollinOptions:
    """One run of ROLLIN, of its baseline or of an ablation, on a contextual environment.

    Interrupted, it goes on where it stopped when started again. The defaults are the task's.
    """

    task: tyro.conf.Positional[str]
    """point-umaze, antmaze-umaze, walker, hopper, humanoid, ant, or module:factory that returns a
    contextual environment of yours."""
    out: Out = None
    """Run directory; runs/TASK-HASH if not given."""
    config: RollinConfig = field(default_factory=RollinConfig)


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse_options(arguments)
    spec: RunSpec[Any] = RunSpec(options.task, options.config)
    name = Path(options.task).name.removesuffix(".npz").replace(":", ".")
    out = options.out or Path("runs") / f"{name}-{spec.hash}"
    return run_with_progress(spec, out, typed_command("train", arguments))


def parse_options(arguments: Sequence[str]) -> Any:
    """The options of the engine that the task belongs to, with the task's defaults."""
    # --out is the only option whose value may look like a task
    words = [w for before, w in pairwise(["", *arguments]) if before != "--out"]
    if any(GYMNASIUM_ID.fullmatch(word) for word in words):
        return parse(TrainSACOptions, spelled_out(arguments), "train")
    named = next((word for word in words if word in TASKS or FACTORY.fullmatch(word)), None)
    if named is None or (named not in TASKS and gives_mdp(named)):
        return parse(TrainOptions, arguments, "train")
    defaults = TASKS[named].defaults if named in TASKS else {}
    default = TrainRollinOptions(tyro.MISSING, None, rollin_config(**defaults))
    return parse(TrainRollinOptions, spelled_out(arguments), "train", default)


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """Fractions as numbers, --geometric as --sampling geometric."""
    words: list[str] = []
    for word in arguments:
        flag, equals, value = word.partition("=")
        words += [flag, value] if equals and flag in FRACTIONS else [word]
    found: list[str] = []
    for before, word in pairwise(["", *words]):
        if word == "--geometric":
            found += ["--sampling", "geometric"]
        elif before in FRACTIONS and "/" in word:
            found.append(repr(_number(before, word)))
        else:
            found.append(word)
    return found


def _number(flag: str, text: str) -> float:
    """The value of a fraction such as 1/24."""
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise RollinError(
            f"{flag} must be a number or a fraction such as 1/24, got {text}."
        ) from error


def run_with_progress(spec: RunSpec[Any], out: Path, command: str) -> int:
    """Run or go on, with live progress; say how it ended."""
    console = make_console()
    job = Job(str(out), spec, out)
    was_finished = RunDirectory(out).finished
    progress = SweepProgress(1, 0, console)
    progress.take(JobEvent("started", job, {}))
    with stop_on_signal() as should_stop, live(progress):
        finished = run(
            spec,
            out,
            command,
            on_status=lambda status: progress.take(JobEvent("progress", job, status)),
            should_stop=should_stop,
        )
    if not finished:
        console.print(f"Stopped. Go on with: rollin resume {shlex.quote(str(out))}")
        return 0
    if was_finished:
        console.print(f"{out} is already finished.", soft_wrap=True)
    result = RunDirectory.open(out).result()
    if result.get("warning"):
        print(f"rollin: {result['warning']}", file=sys.stderr)
    console.print(f"{summary(spec, result)}: {out / 'result.json'}", soft_wrap=True)
    return 0


def summary(spec: RunSpec[Any], result: dict[str, Any]) -> str:
    """How a run ended, in a line."""
    if spec.config.engine == "sac":
        return (
            f"return {result['eval_return']:.1f} (mean of {spec.config.eval_episodes} "
            f"deterministic episodes) after {result['env_steps']:,} environment steps in "
            f"{result['seconds']:.1f} s"
        )
    if spec.config.engine == "rollin":
        mastered = ", all mastered" if result["completed"] else ""
        reached = f"κ = {result['kappa']:.3f} (k = {result['k']} of {result['K']}{mastered})"
        if spec.config.algorithm.method == "scratch":
            reached = f"from scratch ({'mastered' if result['completed'] else 'not mastered'})"
        return (
            f"{reached}, return "
            f"{result['eval_return']:.1f} on this context, {result['eval_return_final']:.1f} on "
            f"the last, after {result['env_steps']:,} environment steps and "
            f"{result['rollin_episodes']} roll-ins in {result['seconds']:.1f} s"
        )
    return (
        f"κ = {result['kappa']:.3f} (k = {result['k']} of {result['K']}), "
        f"final return {result['final_return']:.4g} after {result['gradient_steps']:,} gradient "
        f"steps in {result['seconds']:.1f} s"
    )
