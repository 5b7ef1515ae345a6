"""What a run is: a task and a frozen set of options, with a stable hash."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Generic, TypeVar


class RunConfig:
    """What the options of every engine have; each engine's are a frozen dataclass of this kind."""

    engine: ClassVar[str]
    """Name of the engine, which is in every hash."""
    steps: int
    seed: int
    log_every: int
    log: tuple[str, ...] = ()
    short_forms: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Names that stand for several options at once; what is given beside them takes precedence."""

    @classmethod
    def as_it_was(cls, task: str, values: dict[str, Any]) -> dict[str, Any]:
        """Options of a config.json, those included that its version did not have yet."""
        return values


Config = TypeVar("Config", bound=RunConfig)


@dataclass(frozen=True)
class RunSpec(Generic[Config]):
    """A task and its options: the same spec is the same run."""

    task: str
    config: Config

    @property
    def hash(self) -> str:
        """A stable name of the spec: SHA-256 of its canonical JSON, shortened."""
        return digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in config.json."""
        return {"engine": self.config.engine, "task": self.task, "config": plain(self.config)}


def plain(options: Any) -> dict[str, Any]:
    """Options as plain values.

    One that a later version added has `metadata={"since": VERSION}` and is left out at its default,
    so that the hashes of earlier runs stay as they were.
    """
    found: dict[str, Any] = {}
    for option in fields(options):
        value = getattr(options, option.name)
        if "since" in option.metadata and value == option.default:
            continue
        found[option.name] = plain(value) if is_dataclass(value) else value
    return found


@dataclass(frozen=True)
class Membership:
    """The condition of a study that a run is done for; no part of its hash.

    family: of studies that share runs; labels: the condition's name; scale: the share of its
    length; key: the condition's, see `rollin.sweeps.study`.
    """

    family: str
    labels: Mapping[str, str]
    scale: float = 1.0
    key: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in config.json."""
        return {
            "family": self.family,
            "labels": dict(self.labels),
            "scale": self.scale,
            "key": self.key,
        }


def digest(value: Any) -> str:
    """A short name of plain values, the same wherever they are the same."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
