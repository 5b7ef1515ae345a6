"""A condition of the paper: what is run, how it is called, and what was published of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rollin.errors import RollinError
from rollin.runs.spec import RollinConfig, RunSpec, TabularConfig
from rollin.sweeps.published import Published

ROWS = 10  # of metrics.csv that even a short run has
METHOD = ("method", "beta")  # labels of what is compared; all others make a setting
FREE = ("seed", "steps", "learner", "threads", "log_every", "eval_episodes", "keep_replay")
"""Options that do not make another condition."""
DELTAS = {"antmaze-umaze": 1 / 24, "walker": 0.1, "hopper": 0.1, "humanoid": 0.1, "ant": 0.1}
"""The step Δ that each task has of its own, which a run need not name."""


class Reading(NamedTuple):
    """A figure, by its name in result.json, and the step at which the paper reads it."""

    figure: str
    step: int


@dataclass(frozen=True, eq=False)
class Condition:
    """One condition: a task with its options, at the paper's length.

    labels: what tells it from other conditions, by name; a filter looks at them.
    """

    task: str
    labels: Mapping[str, str]
    config: TabularConfig | RollinConfig
    published: Mapping[Reading, Published] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its labels in one word, which is the name of its directory, too."""
        return ",".join(f"{name}={value}" for name, value in self.labels.items()).replace("/", "-")

    @property
    def setting(self) -> dict[str, str]:
        """The labels that it shares with what it is compared with."""
        return {name: value for name, value in self.labels.items() if name not in METHOD}

    @property
    def rolls_in(self) -> bool:
        """Whether it is ROLLIN, not what that is compared with."""
        return self.labels["method"] == "rollin"

    @property
    def walks(self) -> bool:
        """Whether it walks the curriculum; from scratch it stands at κ = 1 by definition."""
        return self.labels["method"] != "scratch"

    @property
    def is_baseline(self) -> bool:
        """Whether it is the curriculum without roll-in."""
        return self.labels["method"] == "baseline"

    def spec(self, seed: int, scale: float = 1.0) -> RunSpec[Any]:
        """The run of one seed, shortened by `scale`."""
        return RunSpec(self.task, replace(scaled(self.config, scale), seed=seed))

    def scale_of(self, spec: RunSpec[Any]) -> float | None:
        """The scale at which a run is one of this cell; None if it is not.

        A run whose lengths are the paper's but for its last step has scale 1: it is a part of the
        paper's run.
        """
        if spec.task != self.task or spec.config.engine != self.config.engine:
            return None
        ours = self._plain(spec.config)
        if isinstance(spec.config, RollinConfig) and ours == self._plain(self.config):
            return 1.0
        scale = spec.config.steps / self.config.steps
        try:
            shortened = scaled(self.config, scale)
        except RollinError:  # too short to be one
            return None
        return scale if ours == self._plain(shortened) else None

    def _plain(self, config: Any) -> Any:
        """A configuration without what does not make another condition."""
        own = {name: getattr(self.config, name) for name in FREE if hasattr(self.config, name)}
        plain = replace(config, **own)
        if not isinstance(plain, RollinConfig):
            return plain
        options = plain.algorithm
        if options.method in ("rollin", "baseline") and not options.rolls_in:
            options = replace(options, method="baseline")
        if options.method in ("baseline", "scratch"):
            options = replace(options, beta=0.0)
        sac = replace(plain.sac, threads=1)
        delta = DELTAS[self.task] if plain.delta is None else plain.delta
        return replace(plain, algorithm=options, sac=sac, delta=round(delta, 12))


def differing(cells: Sequence[Condition]) -> list[str]:
    """Names of the labels in which cells differ."""
    names = dict.fromkeys(name for cell in cells for name in cell.labels)
    return [name for name in names if len({cell.labels.get(name) for cell in cells}) > 1]


def scaled(config: Any, scale: float) -> Any:
    """A configuration whose training is shortened proportionally.

    Steps, random first steps and the steps that a mean is taken over shrink; networks, batches,
    thresholds and the age parameter of geometric sampling stay as they are.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise RollinError(f"--scale must be a number greater than 0, got {scale:g}.")
    if scale == 1:
        return config
    steps = max(1, round(scale * config.steps))
    lengths: dict[str, Any] = {"steps": steps}
    if isinstance(config, RollinConfig):
        batch = config.sac.batch
        if steps <= batch:
            raise RollinError(
                f"{steps:,} steps are too few to train on: learning begins after a batch of "
                f"{batch} of them. Give a --scale of at least {1.1 * batch / config.steps:.2g}."
            )
        warmup = max(batch, round(scale * config.algorithm.warmup))
        lengths["algorithm"] = replace(config.algorithm, warmup=warmup)
        lengths["log_every"] = min(config.log_every, steps // ROWS)
        lengths["last"] = max(1, round(scale * config.last))
    return replace(config, **lengths)
