"""The engine of plain SAC on a Gymnasium environment: options, metrics and runs.

The field docstrings are the help texts of the command line.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rollin.errors import RollinError
from rollin.runs.checkpoint import check_streams
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines import Demands, Engine
from rollin.runs.engines.deep import check_deep, deep_demands, replay_rows, without_logging
from rollin.runs.files import as_dataclass, write_atomically
from rollin.runs.metrics import Metric
from rollin.runs.spec import RunConfig, RunSpec
from rollin.sac.config import LearnerName, SACConfig
from rollin.sac.learner import UpdateInfo
from rollin.streams import Streams

if TYPE_CHECKING:
    from rollin.deep.plain_sac import SACStep

GYMNASIUM_ID = re.compile(r"([\w.-]+:)?([\w-]+/)*[\w.-]+-v\d+")  # [module:][namespace/]name-vN
REPLAY = "replay.f32"


@dataclass(frozen=True)
class SACRunConfig(RunConfig):
    """Options of one run of plain SAC on a Gymnasium environment."""

    engine: ClassVar[str] = "sac"

    learner: LearnerName = "cpu"
    """cpu: compiled for this processor; jax: for accelerators (needs the extra jax)."""
    steps: int = 1_000_000
    """Environment steps."""
    seed: int = 0
    """Seed of all random numbers of the run."""
    warmup: int = 10_000
    """Uniformly random steps before the first update."""
    capacity: int | None = None
    """Replay capacity in transitions. Default: the whole run."""
    sampling: Literal["uniform", "geometric"] = "uniform"
    """How a batch is drawn: uniformly, or recent transitions more often (short form:
    --geometric)."""
    p: float = 1e-5
    """Parameter of geometric sampling: P(age) ∝ (1-p)^age."""
    log_every: int = 5_000
    """Steps between two rows of metrics.csv, each with an evaluation."""
    log: tuple[str, ...] = field(default=(), metadata={"since": "0.2.0"})
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""
    eval_episodes: int = 10
    """Deterministic episodes per evaluation."""
    keep_replay: bool = False
    """Keep the file of all transitions after the run."""
    sac: SACConfig = field(default_factory=SACConfig)

    def __post_init__(self) -> None:
        check_deep(self, self.warmup)
        if self.steps <= self.warmup:
            raise RollinError(
                f"--steps must be more than --learning-starts ({self.warmup}), got {self.steps}: "
                "learning begins after the random steps."
            )
        first = self.sac.first_update(self.warmup)
        if self.steps < first:
            raise RollinError(
                f"--steps must be at least {first}, got {self.steps}: no earlier step after the "
                f"random ones is a multiple of --update-every ({self.sac.update_every})."
            )
        if self.sampling not in ("uniform", "geometric"):
            raise RollinError(f"--sampling must be uniform or geometric, got {self.sampling!r}.")
        if not 0 < self.p < 1:
            raise RollinError(f"--geometric-p must lie in (0, 1), got {self.p}.")


METRICS = (
    Metric(
        "return",
        lambda run: run.evaluated.mean,
        meaning="of deterministic episodes, played beside training",
        result=True,
    ),
    Metric("return_std", lambda run: float(np.std(run.evaluated.returns))),
    Metric("train_return", lambda run: run.counters.returns / max(run.counters.since, 1),
           result=True, headline=False),
    Metric("train_length", lambda run: run.counters.lengths / max(run.counters.since, 1)),
    Metric("episodes", lambda run: run.counters.episodes),
    Metric("updates", lambda run: run.learner.count),
    *(
        Metric(part.name, lambda run, name=part.name: getattr(run.last_update, name))
        for part in fields(UpdateInfo)
    ),
)  # fmt: skip


@dataclass
class SACCounters:
    """Where the run stands, and sums over the episodes since the last row of metrics."""

    step: int = 0
    episodes: int = 0
    returns: float = 0.0
    lengths: int = 0
    since: int = 0
    last_return: float = 0.0
    last_length: int = 0


class SACRun(Driver[SACRunConfig]):
    """One run: environment, learner, replay, streams and counters."""

    files = (REPLAY,)

    def __init__(self, spec: RunSpec[SACRunConfig], directory: RunDirectory) -> None:
        super().__init__(spec, directory)
        from rollin.deep.evaluate import Evaluation
        from rollin.envs.box_env import make_env
        from rollin.sac import make_learner
        from rollin.sac.replay import Replay, RowLayout

        config = self.config
        self.counters = SACCounters()
        self.streams = Streams(config.seed)
        self.env = make_env(spec.task)
        self.test_env = make_env(spec.task)
        sizes = self.env.observation_size, self.env.action_size
        self.learner = make_learner(config.learner, *sizes, config.sac, self.streams)
        self.replay = Replay(RowLayout(*sizes), replay_rows(config), directory.path / REPLAY)
        self.last_update = UpdateInfo(0.0, 0.0, 0.0, 0.0, config.sac.initial_temperature)
        self.evaluated = Evaluation([], [])
        self.declare(METRICS)

    @property
    def step(self) -> int:
        """Environment steps so far."""
        return self.counters.step

    def fingerprint(self) -> str:
        """Of the environment's spaces."""
        return f"{self.env.observation_size} observed, {self.env.action_size} acted"

    @property
    def costs(self) -> dict[str, int]:
        """Environment steps and updates."""
        return {"env_steps": self.step, "rollin_steps": 0, "updates": self.learner.count}

    def events(self) -> Iterator["SACStep"]:
        """The algorithm's events."""
        from rollin.deep.plain_sac import train_sac

        config = self.config
        return train_sac(
            self.env,
            self.learner,
            self.replay,
            self.streams,
            warmup=config.warmup,
            p=config.p if config.sampling == "geometric" else None,
            step=self.counters.step,
        )

    def take(self, event: "SACStep") -> bool:
        """Count a step; checkpoints fall on episode ends."""
        counters = self.counters
        counters.step = event.step
        counters.last_return += event.reward
        counters.last_length += 1
        if event.update is not None:
            self.last_update = event.update
        if event.episode_end:
            counters.episodes += 1
            counters.since += 1
            counters.returns += counters.last_return
            counters.lengths += counters.last_length
            counters.last_return, counters.last_length = 0.0, 0
        return event.episode_end

    def measure(self) -> None:
        """Evaluate the policy."""
        from rollin.deep.evaluate import evaluate, mode_of

        act, episodes = mode_of(self.learner), self.config.eval_episodes
        self.evaluated = evaluate(self.test_env, act, episodes, self.pause)

    def forget(self) -> None:
        """Begin the sums between two rows of metrics again."""
        self.counters.returns = 0.0
        self.counters.lengths = 0
        self.counters.since = 0

    def status(self) -> dict[str, Any]:
        """Where the run stands."""
        evaluated = self._last.get("return")
        return {
            "episodes": self.counters.episodes,
            "eval_return": evaluated or 0.0,
            "shown": {
                "evaluated return": "–" if evaluated is None else f"{float(evaluated):.1f}",
                "entropy": f"{self.last_update.entropy:.2f}",
                "temperature": f"{self.last_update.temperature:.3f}",
            },
        }

    def get_state(self) -> dict[str, Any]:
        """Everything needed to resume."""
        from rollin.runs.engines.deep import good_state

        return {
            "learner": good_state(self.learner.get_state(), self.step),
            "streams": self.streams.get_state(),
            "replay": self.replay.get_state(),
            "counters": asdict(self.counters),
            "seen": asdict(self.last_update),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""
        self.counters = as_dataclass(SACCounters, state["counters"])
        self.last_update = as_dataclass(UpdateInfo, state["seen"])
        check_streams(state["streams"])
        if state["replay"]["total"] != self.counters.step:
            raise ValueError(f"a replay of {state['replay']['total']} steps")
        for name in ("learner", "streams", "replay"):
            getattr(self, name).set_state(state[name])

    def finish(self) -> None:
        """Write the networks and the result; the replay file is then needed no longer."""
        from safetensors.numpy import save

        from rollin.runs.engines.deep import good_state, policy_tensors

        if self.config.keep_replay:
            self.replay.flush()
        theta = good_state(self.learner.get_state(), self.step)["theta"]
        layout, sac = self.learner.layout, self.config.sac
        policy = policy_tensors(layout, sac, theta, self.env.actions)
        write_atomically(self.directory.path / "policy.safetensors", save(policy))
        super().finish()

    def tidy(self) -> None:
        """Delete checkpoint and replay file, unless that is to be kept."""
        super().tidy()
        if not self.config.keep_replay:
            self.replay.discard()

    def close(self) -> None:
        """Release the environments and the learner's threads."""
        for part in (self.env, self.test_env, self.learner):
            part.close()


class SACEngine(Engine[SACRunConfig]):
    """Runs of plain SAC on a Gymnasium environment."""

    name = "sac"
    config_class = SACRunConfig
    step_words = "environment steps"
    walks = False
    metrics = METRICS
    driver = f"{__name__}:SACRun"
    points = None
    help = """Train plain SAC, without a curriculum, on a Gymnasium environment.

    If interrupted, the same command resumes the run.
    """
    task_help = "The id of a Gymnasium environment with real observations and bounded real actions."
    kind = "plain SAC"
    example = "Hopper-v5"
    key_options = ("steps", "seed", "learner", "hidden", "batch")
    about = "the id of a Gymnasium environment such as Hopper-v5"

    def claims(self, task: str) -> bool:
        """What looks like the id of a Gymnasium environment."""
        return GYMNASIUM_ID.fullmatch(task) is not None

    def try_task(self, task: str) -> None:
        """Refuse an environment whose spaces SAC cannot use."""
        from rollin.envs.box_env import make_env

        make_env(task).close()

    def canonical(self, task: str, config: SACRunConfig) -> SACRunConfig:
        """Without what does not make another condition."""
        steps = config.sac.first_update(config.warmup)  # the fewest that there can be
        plain = replace(config, seed=0, steps=steps, log_every=1, log=())
        return without_logging(plain)

    def demands(self, spec: RunSpec[SACRunConfig], gpus: float = 0.0) -> Demands:
        """Cores, a share of a GPU, and memory, of which the replay takes most."""
        return deep_demands(spec.config, 0, gpus)

    def summary(self, spec: RunSpec[SACRunConfig], result: dict[str, Any]) -> str:
        """How a run ended, in a line."""
        return (
            f"evaluated return {result['return']:.1f} (mean of {spec.config.eval_episodes} "
            f"deterministic episodes) after {result['env_steps']:,} environment steps in "
            f"{result['seconds']:.1f} s"
        )


ENGINE = SACEngine()
