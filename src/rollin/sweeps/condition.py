"""A condition: a task with its options.

It is named once, by its labels, where it is written. The labels travel with its runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rollin.errors import RollinError
from rollin.runs.engines import condition_key, engine_for
from rollin.runs.engines.base import Engine
from rollin.runs.options import configured, option_names
from rollin.runs.records import Reading, condition_text
from rollin.runs.spec import Membership, RunSpec
from rollin.sweeps.published import Published


@dataclass(frozen=True, eq=False)
class Condition:
    """Runs that differ in their seed alone.

    labels: its name; options: what differs from the task's preset; published: what the paper
    prints of it, by reading; until: stop at this step for now, which is in no hash; known_key: its
    key, if that is known without a look at its task; first_seed: of its runs; drawn: whether
    anything is drawn at random, without which one seed tells all.
    """

    labels: Mapping[str, str]
    task: str
    options: Mapping[str, Any]
    published: Mapping[Reading, Published] = field(default_factory=dict)
    until: int | None = None
    known_key: str = ""
    first_seed: int = 0
    drawn: bool = True

    @property
    def name(self) -> str:
        """Its labels in one word."""
        return condition_text(self.labels)

    @cached_property
    def engine(self) -> Engine[Any]:
        """The engine of its task."""
        return engine_for(self.task)

    @cached_property
    def config(self) -> Any:
        """All its options, with seed 0."""
        try:
            return configured(self.engine.preset(self.task), self.options)
        except RollinError as error:
            raise RollinError(f"{self.name or self.task}: {error}") from error

    @property
    def steps(self) -> int:
        """Steps of a run at full length."""
        given = self.options.get("steps")
        return int(self.config.steps if given is None else given)

    def seeds(self, count: int) -> range:
        """Its seeds in a study of so many."""
        return range(self.first_seed, self.first_seed + (count if self.drawn else 1))

    def spec(self, seed: int, scale: float = 1.0, **changes: Any) -> RunSpec[Any]:
        """The run of one seed, shortened by `scale`; changes: options that its engine may have."""
        config = replace(self.engine.scaled(self.config, scale), seed=seed)
        known = option_names(type(config))
        return RunSpec(
            self.task, configured(config, {n: v for n, v in changes.items() if n in known})
        )

    def key(self, scale: float = 1.0) -> str:
        """What its runs have in common: a hash of the options without seed and length."""
        if self.known_key:
            return self.known_key
        if scale not in self._keys:
            self._keys[scale] = condition_key(self.spec(0, scale))
        return self._keys[scale]

    @cached_property
    def _keys(self) -> dict[float, str]:
        return {}

    def membership(self, family: str, scale: float = 1.0) -> Membership:
        """What its runs' config.json tells of it."""
        return Membership(family, self.labels, scale, self.key(scale))


def differing(conditions: Sequence[Condition]) -> list[str]:
    """Names of the labels in which conditions differ."""
    names = dict.fromkeys(name for condition in conditions for name in condition.labels)
    return [n for n in names if len({condition.labels.get(n) for condition in conditions}) > 1]
