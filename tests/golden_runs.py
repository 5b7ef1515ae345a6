"""Makes the run directories that a version leaves in tests/golden, for those that come after it.

`python -m tests.golden_runs`: a finished and an unfinished run of every engine, small, with options
whose state is new. It is done once for a release, and changes nothing that is there: later versions
must open the directories as they are (tests/runs/test_golden.py).
"""

import shutil
from pathlib import Path
from typing import Any

import rollin
from rollin.cli.train import parse_run
from rollin.runs import driver
from rollin.runs.engines import run
from rollin.runs.engines.agent import AgentConfig
from rollin.runs.files import read_json
from rollin.runs.spec import RunSpec, configured
from rollin.tabular.mdp import ContextualMDP

GOLDEN = Path(__file__).parent / "golden"
DEEP = "--steps 1000 --warmup 64 --hidden 8 --batch 16 --log-every 100 --eval-episodes 1"
COMMANDS = {  # and the step from which on an unfinished run is
    "tabular": ("tests.golden_runs:lock --rule gap --batch 20 --steps 100 --log-every 20", 60),
    "until-solved": ("combination-lock --gradient sampled --rule gap --n 6 --batch 20 --steps 40 "
                     "--log-every 10", 17),
    "sac": (f"Pendulum-v1 {DEEP}", 600),
    "rollin": (f"point-umaze --adaptive --beta 0.1 {DEEP}", 600),
}  # fmt: skip


def lock() -> ContextualMDP:
    """A small MDP: what a tabular run saves is as large as its tables."""
    return rollin.combination_lock(6)


def specs() -> dict[str, tuple[RunSpec[Any], int]]:
    """The runs of a version, and where the unfinished ones stop, by the names of engines."""
    found: dict[str, tuple[RunSpec[Any], int]] = {}
    for engine, (command, stop) in COMMANDS.items():
        spec, _ = parse_run(command.split())
        found[engine] = spec, stop
    options = {"beta": 0.3, "steps": 600, "log_every": 200, "eval_episodes": 1, "last": 200}
    corridor = configured(AgentConfig(agent="tests.corridor:make_q"), options)
    return found | {"agent": (RunSpec("tests.corridor:Corridor", corridor), 300)}


def make(version: Path) -> None:
    """All of them, in a directory that is not there yet."""
    version.mkdir()
    driver.STATUS_SECONDS = -1.0  # ask after every step whether to stop …
    driver.STOP_SECONDS = float("inf")  # … and go on until the end of the episode
    for engine, (spec, stop) in specs().items():
        for state, last in (("finished", None), ("unfinished", stop)):
            out = version / engine / state
            status = out / "status.json"
            run(
                spec,
                out,
                f"rollin train {spec.task}",
                should_stop=lambda last=last, status=status: (
                    last is not None and read_json(status)["step"] >= last
                ),
            )
            assert (out / "result.json").exists() == (last is None), out
            shutil.rmtree(out / "tensorboard", ignore_errors=True)
            (out / ".lock").unlink(missing_ok=True)


if __name__ == "__main__":
    make(GOLDEN / rollin.__version__)
