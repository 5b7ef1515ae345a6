"""One attempt at a job, wherever that is: what it came to, in a word and a sentence."""

from pathlib import Path
from typing import Any

from rollin.errors import MissingExtraError, RollinError, debug_hint, described, show_traceback
from rollin.runs.directory import RunBusyError, RunDirectory
from rollin.runs.driver import OnStatus, ShouldStop
from rollin.runs.execute import run
from rollin.runs.spec import Membership, RunSpec


def attempt(
    spec: RunSpec[Any],
    out: Path,
    command: str,
    on_status: OnStatus,
    should_stop: ShouldStop,
    of: Membership | None = None,
    until: int | None = None,
) -> tuple[str, dict[str, Any]]:
    """Run a spec or resume it: finished, stopped, failed, or busy if another process has it.

    until: a step at which the run stops and counts as finished; None: its last.
    The status of a failure that would come again on this machine says that it is `final`.
    """
    try:
        done = run(spec, out, command, on_status, should_stop, of, until)
        done = done or (until is not None and RunDirectory(out).has_reached(until))
    except RunBusyError as error:
        return "busy", {"error": str(error)}
    except MissingExtraError as error:
        return "failed", {"error": str(error), "final": True}
    except RollinError as error:
        show_traceback(error)
        return "failed", {"error": f"{error}{debug_hint(error)}"}
    except BrokenPipeError:  # whoever hears of the run is gone
        raise
    except Exception as error:  # one bad run must not end the sweep
        show_traceback(error)
        return "failed", {"error": described(error)}
    return ("finished" if done else "stopped"), {}
