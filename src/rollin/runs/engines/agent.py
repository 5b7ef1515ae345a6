"""The engine of an agent of one's own, `rollin.train(env, agent=...)`; begun in Python alone."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from rollin.agents.own_agent import AgentOptions, AgentState, check_agent, decoded, train_agent
from rollin.checks import MOST_EPISODES, MOST_STEPS, at_least
from rollin.curriculum.contexts import Curriculum
from rollin.deep.evaluate import Evaluation, evaluate_actor
from rollin.deep.rollin_sac import RollinStep
from rollin.envs.box_env import innermost
from rollin.envs.check import examine
from rollin.envs.context_env import ContextHandle
from rollin.envs.registry import load_factory, make_raw
from rollin.errors import RollinError
from rollin.runs.checkpoint import join_state, read_checkpoint
from rollin.runs.curricula import Examined, of_spaces
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines import Engine
from rollin.runs.engines.rollin import ENGINE as ROLLIN
from rollin.runs.engines.rollin_options import METRICS
from rollin.runs.engines.rollin_run import RollinCounters, RollinRun
from rollin.runs.engines.rollin_stall import Remedies
from rollin.runs.files import as_dataclass
from rollin.runs.metrics import read_metrics
from rollin.runs.spec import RunConfig, RunSpec, check_loggers

if TYPE_CHECKING:
    from rollin.runs.exported import Trained


@dataclass(frozen=True)
class AgentConfig(RunConfig):
    """Options of one run; the curriculum is given in Python, or the environment's own."""

    engine: ClassVar[str] = "agent"

    agent: str = ""
    """Who learns: module:factory, or the agent's class if it was given as an object."""
    steps: int = 100_000
    """Environment steps, those of roll-ins included."""
    seed: int = 0
    """Seed of all random streams of the run but the agent's own."""
    algorithm: AgentOptions = field(default_factory=AgentOptions)
    env_options: tuple[str, ...] = ()
    """Options of the environment, as name=value."""
    horizon: int | None = None
    """Steps after which an episode is cut off, if the environment has not ended it before."""
    log_every: int = 5_000
    """Steps between two rows of metrics.csv, each with an evaluation."""
    log: tuple[str, ...] = field(default=(), metadata={"since": "0.2.0"})
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""
    eval_episodes: int = 5
    """Deterministic episodes per evaluation, on the current and on the last context."""
    last: int = 50_000
    """Steps over which κ, returns and measures are averaged in result.json."""

    def __post_init__(self) -> None:
        for name in ("steps", "log_every", "last"):
            at_least(1, name, getattr(self, name), MOST_STEPS)
        at_least(1, "eval_episodes", self.eval_episodes, MOST_EPISODES)
        at_least(0, "seed", self.seed)
        check_loggers(self.log)
        if self.horizon is not None:
            at_least(1, "horizon", self.horizon)


class AgentEngine(Engine[AgentConfig]):
    """Runs of ROLLIN around other people's agents."""

    name = "agent"
    config_class = AgentConfig
    step_words = "environment steps"
    extends = True
    metrics = METRICS
    points = None
    driver = "rollin.runs.engines.agent:AgentRun"
    about = ""

    def claims(self, task: str) -> bool:
        """No task by its name: which agent it is must be said."""
        return False

    def playable(self, run: "Trained", render_mode: str | None = None) -> Any:
        """Only Python has the agent."""
        raise RollinError(
            f"{run.path} was trained with an agent of your own: evaluate it in Python, by "
            "rollin.evaluate(agent, env)."
        )

    def summary(self, spec: RunSpec[AgentConfig], result: dict[str, Any]) -> str:
        """How a run ended, in a line."""
        own: Any = spec
        return ROLLIN.summary(own, result)


class AgentRun(RollinRun):
    """Counts, rows and result are those of `RollinRun`; the loop and what is kept are its own."""

    last_updates = {}  # noqa: RUF012
    files = ()
    state: Any
    config: Any

    def __init__(
        self,
        spec: RunSpec[AgentConfig],
        directory: RunDirectory,
        env: Any = None,
        agent: Any = None,
        curriculum: Curriculum | None = None,
        on_event: Callable[[RollinStep], None] | None = None,
    ) -> None:
        Driver.__init__(self, spec, directory)  # pyright: ignore[reportArgumentType]
        self._on_event = on_event
        config: AgentConfig = spec.config
        source = spec.task if env is None else env
        with ExitStack() as on_error:
            made = []
            for _ in range(2):
                made.append(make_raw(source, config.horizon, config.env_options))
                on_error.callback(made[-1].close)
            self._begin(made, load_factory(config.agent) if agent is None else agent, curriculum)
            on_error.pop_all()

    def _begin(self, made: list[Any], agent: Any, curriculum: Curriculum | None) -> None:
        env, test_env = map(ContextHandle, made)
        self.env: Any = env
        self.test_env: Any = test_env
        if innermost(made[0]) is innermost(made[1]):
            raise RollinError(
                f"{self.spec.task} gives the same environment at every call: evaluations would "
                "disturb training. It must make a new one each time."
            )
        self.curriculum = walked_by(env, curriculum)
        successes = examine(test_env, self.curriculum, deterministic=False, relabel=False)
        self._examined = Examined(None, successes)
        learner = made_agent(agent, made[0], self.config.seed)
        self.state = AgentState.begin(
            env, self.curriculum, self.config.algorithm, learner, self.config.seed,
            successes=successes,
        )  # fmt: skip
        self._declare(env.measures)

    def fingerprint(self) -> str:
        """Of the environment's spaces and of the curriculum."""
        return of_spaces(self.env, self.curriculum)

    def events(self) -> Iterator[RollinStep]:
        """The loop's events."""
        return train_agent(self.state)

    def evaluate(self, context: Any) -> Evaluation:
        """Deterministic episodes of the agent under a context."""

        def act(observation: Any, omega: Any) -> Any:
            return self.state.agent.act(observation, omega, deterministic=True)

        return evaluate_actor(self.test_env, act, context, self.config.eval_episodes)

    @property
    def updates(self) -> int:
        """Steps that the agent has observed."""
        return self.state.observed

    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume."""
        return {
            "rollin": self.state.get_state(),
            "counters": vars(self.counters).copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""
        self.counters = as_dataclass(RollinCounters, state["counters"])
        if state["rollin"]["progress"]["K"] != self.curriculum.K:
            raise ValueError("a curriculum of another length")
        self.state.set_state(state["rollin"])
        self._take_episodes()

    def _save(self) -> None:
        """A checkpoint, if the agent gives its state; else an interrupted run starts over."""
        if self.state.resumable:
            super()._save()
        else:
            self._flush()

    def learned(self) -> Any:
        """The agent as a finished run has left it."""
        if self.state.resumable:
            saved = read_checkpoint(self.directory.checkpoint, self._hash)
            if saved is not None:
                state = join_state(saved.arrays, saved.values)
                self.state.agent.set_state(decoded(state["rollin"]["agent"]))
        return self.state.agent

    def warmed(self) -> bool:
        """Whether there was anything to learn from: an agent begins as it likes."""
        return True

    def _remedies(self) -> Remedies:
        """None: your own agent has no options here."""
        return Remedies()

    def finish(self) -> None:
        """Keep the agent's state, and write the result."""
        self._save()
        self.write_result(warning=self.warning(read_metrics(self.episodes.path)))

    def tidy(self) -> None:
        """The checkpoint stays: it is all there is of the trained agent."""
        self.check_result()

    def close(self) -> None:
        """Close the environments."""
        self.env.close()
        self.test_env.close()


def walked_by(env: ContextHandle, given: Curriculum | None) -> Curriculum:
    """The curriculum of a run: given, or the env's own."""
    if given is not None and not isinstance(given, Curriculum):
        raise RollinError(
            f"curriculum must be a rollin.Curriculum, got {type(given).__name__}: "
            "Curriculum.listed(contexts, R) makes one of a list."
        )
    found = given or env.curriculum
    if found is None:
        raise RollinError(
            f"{env.name} has no curriculum of its own: give one, "
            "rollin.train(env, curriculum, agent=...)."
        )
    return found


def made_agent(agent: Any, env: Any, seed: int) -> Any:
    """An agent, or what a function of (env, seed) makes."""
    ready = hasattr(agent, "act") and not isinstance(agent, type)
    return check_agent(agent if ready or not callable(agent) else agent(env, seed))


ENGINE = AgentEngine()
