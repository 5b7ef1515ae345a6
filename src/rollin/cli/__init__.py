"""The command line: one module per subcommand, imported only when it is asked for."""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from rollin import __version__
from rollin.checks import did_you_mean
from rollin.errors import RollinError, debug_hint, exits_refused, show_traceback, told
from rollin.imports import only_named
from rollin.texts import LONGEST, one_line

COMMANDS = {
    "demo": "four rooms, baseline against ROLLIN, with a report to open",
    "train": "one run of a task",
    "resume": "go on with an interrupted run",
    "evaluate": "deterministic episodes of a trained policy, as a table or a video",
    "export": "the policy of a run, to keep or to share, with a page that describes it",
    "plot": "learning curves of runs, with the published values marked",
    "sweep": "many runs over a grid of options, with a report that compares them",
    "reproduce": "a table of the paper, with our numbers beside the published ones",
    "theory": "assumptions, constants and bounds of the paper on an MDP",
    "report": "an HTML page from one or more directories of runs",
    "watch": "the same as a live page, which follows runs while they go on",
    "list": "the runs below a directory and their states",
}

NOBODY_READS = 128 + 13  # the code of a program that SIGPIPE has ended

USAGE = """usage: rollin COMMAND [options]

ROLLIN: curriculum learning by rolling in with the previous task's policy.

commands:
{commands}

rollin COMMAND --help lists the options of a command; rollin --version prints the version."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; bad input prints one sentence and returns 2.

    An output that nobody reads any more, such as that of `rollin list | head -3`, ends a command
    without a word, as it ends other programs.
    """
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        with suppress(OSError):  # Python itself flushes once more at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
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
        why = told(error).partition(": ")[2]
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
    """Say in one line what is wrong, and more that is not cut off."""
    print(f"rollin: {one_line(sentence, LONGEST)}{more}", file=sys.stderr)
    return 2


def _command(name: str) -> Callable[[Sequence[str]], int]:
    """The entry point of a subcommand."""
    if name not in COMMANDS:
        raise RollinError(
            f"Unknown command {name!r}: expected one of {', '.join(COMMANDS)}."
            f"{did_you_mean(name, COMMANDS)}"
        )
    module = "list_runs" if name == "list" else name  # a submodule `list` would hide the builtin
    return importlib.import_module(f"rollin.cli.{module}").main
