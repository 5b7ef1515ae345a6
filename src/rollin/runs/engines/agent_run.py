"""A run with an agent of one's own: the files of a run of ROLLIN, without networks of ours."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from rollin.curriculum.contexts import Curriculum
from rollin.deep.evaluate import Evaluation, evaluate_actor
from rollin.deep.own_agent import AgentState, check_agent, given_back, train_agent
from rollin.deep.practical import RollinStep
from rollin.envs.box_env import innermost
from rollin.envs.check import examine
from rollin.envs.context_handle import ContextHandle
from rollin.envs.registry import load_factory, make_raw
from rollin.errors import RollinError
from rollin.runs.checkpoint import join_state, read_checkpoint
from rollin.runs.curricula import Examined
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.agent_options import AgentConfig
from rollin.runs.engines.rollin_metrics import COLUMNS, LOSSES, Counters
from rollin.runs.engines.rollin_record import EPISODE_COLUMNS
from rollin.runs.engines.rollin_run import RollinRun
from rollin.runs.engines.rollin_stall import Remedies
from rollin.runs.fingerprint import of_spaces, walked
from rollin.runs.formats import as_dataclass
from rollin.runs.rows import MetricsWriter
from rollin.runs.spec import RunSpec

WITHOUT = {*LOSSES, *(f"exp_{name}" for name in LOSSES)}


class AgentRun(RollinRun):
    """Counts, rows and result are those of `RollinRun`; the loop and what is kept are its own."""

    columns = tuple(name for name in COLUMNS if name not in WITHOUT)
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
        self.counters = Counters(measured=self._nothing_measured)
        self.metrics.columns += tuple(f"train_{name}" for name in env.measures)
        columns = (*EPISODE_COLUMNS, *env.measures)
        self.episodes = MetricsWriter(self.directory.path / "episodes.csv", columns)
        self.writers["episodes"] = self.episodes
        self._evaluated = Evaluation([], []), Evaluation([], [])

    def fingerprint(self) -> str:
        """Of the environment's spaces and of the curriculum."""
        return of_spaces(self.env, self.curriculum)

    def events(self) -> Iterator[RollinStep]:
        """The loop's events."""
        return train_agent(self.state)

    def evaluate(self, context: Any) -> Evaluation:
        """Deterministic episodes of the agent under a context."""

        def act(seen: Any, shown: Any) -> Any:
            return self.state.agent.act(seen, shown, deterministic=True)

        return evaluate_actor(self.test_env, act, context, self.config.eval_episodes)

    def losses(self) -> dict[str, Any]:
        """An agent's own are not known."""
        return {}

    def updates(self) -> int:
        """Steps that the agent has taken in."""
        return self.state.observed

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        return {
            "rollin": self.state.get_state(),
            "curriculum": walked(self.curriculum),
            "counters": vars(self.counters).copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""
        self.counters = as_dataclass(Counters, state["counters"])
        if state["rollin"]["progress"]["K"] != self.curriculum.K:
            raise ValueError("a curriculum of another length")
        self.state.set_state(state["rollin"])

    def _save(self) -> None:
        """A checkpoint, if the agent gives its state; else the run begins anew after a stop."""
        if self.state.resumable:
            super()._save()
        else:
            self._flush()

    def learned(self) -> Any:
        """The agent as a finished run has left it."""
        if self.state.resumable:
            saved = read_checkpoint(self.directory.checkpoint, self._hash)
            if saved is not None:
                kept = join_state(saved.arrays, saved.values)
                self.state.agent.set_state(given_back(kept["rollin"]["agent"]))
        return self.state.agent

    def warmed(self) -> bool:
        """Whether there was anything to learn from: an agent begins as it likes."""
        return True

    def _remedies(self) -> Remedies:
        """None: an agent has no options of ours."""
        return Remedies()

    def finish(self) -> None:
        """Keep the agent's state, and write the result."""
        self._save()
        self.directory.write_result(self.result_values())

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
