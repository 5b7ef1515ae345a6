"""The command line: one module per subcommand, imported only when it is asked for."""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from rollin import __version__
from rollin.checks import did_you_mean
from rollin.errors import (
    LONGEST,
    RollinError,
    debug_hint,
    exits_refused,
    format_exception,
    one_line,
    show_traceback,
)
from rollin.untrusted import only_named

COMMANDS = {
    "demo": "Compare ROLLIN with the baseline on four rooms in a report",
    "train": "Train on a task",
    "resume": "Resume a run",
    "evaluate": "Evaluate a trained policy, as a table, a picture or a video",
    "export": "Export the policy of a run, with a page that describes it",
    "plot": "Plot learning curves of runs, with the published values",
    "sweep": "Sweep over a grid of options, with a report that compares them",
    "compare": "Test whether a curriculum helps on a task",
    "reproduce": "Reproduce a table of the paper beside its published numbers",
    "theory": "Compute the paper's assumptions, constants and bounds on an MDP",
    "report": "Write an HTML report about directories of runs",
    "watch": "Serve a live report",
    "list": "List runs and their status",
}
ENTRY_POINTS = {
    "list": "list_runs:main",  # a submodule `list` would hide the builtin
    "resume": "train:resume",
}
"""Module and function of a command, where they are not its name and `main`."""

SIGPIPE_CODE = 128 + 13  # exit code of a program that SIGPIPE has ended

USAGE = """usage: rollin COMMAND [options]

Train RL agents along a curriculum of easier tasks.

commands:
{commands}

options:
  -h, --help   Show this help and exit.
  --version    Show the version and exit.

rollin COMMAND --help lists the options of a command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; bad input prints one sentence and returns 2.

    A command ends silently when its output is closed, as in `rollin list | head -3`.
    """
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        with suppress(OSError):  # Python itself flushes once more at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SIGPIPE_CODE
    return code


def _run(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        rows = "\n".join(f"  {name:<11}{text}" for name, text in COMMANDS.items())
        print(USAGE.format(commands=rows))
        return 0
    if arguments[0] == "--version":
        print(f"rollin {__version__}")
        return 0
    name, *rest = arguments
    try:
        with only_named(), exits_refused():
            return _command(name)(rest)
    except SystemExit as stop:  # after a help text
        return int(stop.code or 0)
    except RollinError as error:
        show_traceback(error)
        return _refuse(str(error), debug_hint(error))
    except MemoryError as error:
        why = format_exception(error).partition(": ")[2]
        why = f" ({why})" if why else ""
        return _refuse(f"There is not enough memory for this{why}: choose less.")
    except KeyboardInterrupt:
        print("rollin: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{where}{error.strerror or error}.")


def _refuse(sentence: str, more: str = "") -> int:
    """Print an error in one line, and more that is not cut off; return the exit code."""
    print(f"rollin: {one_line(sentence, LONGEST)}{more}", file=sys.stderr)
    return 2


def _command(name: str) -> Callable[[Sequence[str]], int]:
    """Return the entry point of a subcommand."""
    if name not in COMMANDS:
        raise RollinError(
            f"Unknown command {name!r}: expected one of {', '.join(COMMANDS)}."
            f"{did_you_mean(name, COMMANDS)}"
        )
    module, _, function = ENTRY_POINTS.get(name, f"{name}:main").partition(":")
    return getattr(importlib.import_module(f"rollin.cli.{module}"), function)
