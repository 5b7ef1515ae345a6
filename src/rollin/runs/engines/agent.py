"""The engine of an agent of one's own, `rollin.train(env, agent=...)`; begun in Python alone."""

from collections.abc import Sequence
from typing import Any

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.agent_options import AgentConfig
from rollin.runs.engines.base import Engine
from rollin.runs.engines.rollin import ENGINE as ROLLIN
from rollin.runs.engines.rollin import MEANINGS
from rollin.runs.exported import Trained
from rollin.runs.records import Record
from rollin.runs.spec import RunSpec


class AgentEngine(Engine[AgentConfig]):
    """Runs of ROLLIN around other people's agents."""

    name = "agent"
    config_class = AgentConfig
    step_words = "environment steps"
    extends = True
    meanings = MEANINGS
    about = ""

    def claims(self, task: str) -> bool:
        """No task by its name: which agent it is must be said."""
        return False

    def run(
        self, spec: RunSpec[AgentConfig], at: RunDirectory, **given: Any
    ) -> Driver[AgentConfig]:
        """The run of a spec in a directory; given: `env`, `agent` and `curriculum`."""
        from rollin.runs.engines.agent_run import AgentRun

        made: Any = AgentRun(spec, at, **given)  # of RollinRun, whose options are others
        return made

    def record(self, run: RunDirectory, spec: RunSpec[AgentConfig], at: Sequence[int]) -> Record:
        """The same quantities as those of our own agents."""
        from rollin.runs.engines.rollin_record import rollin_record

        own: Any = spec
        return rollin_record(run, own, at)

    def playable(self, run: Trained, render_mode: str | None = None) -> Any:
        """Only Python has the agent."""
        raise RollinError(
            f"{run.path} was trained with an agent of your own: evaluate it in Python, by "
            "rollin.evaluate(agent, env)."
        )

    def summary(self, spec: RunSpec[AgentConfig], result: dict[str, Any]) -> str:
        """How a run ended, in a line."""
        own: Any = spec
        return ROLLIN.summary(own, result)


ENGINE = AgentEngine()
