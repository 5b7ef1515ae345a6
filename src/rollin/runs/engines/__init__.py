"""The register of engines: what turns a task and its options into a run.

Nothing else knows an engine by name. An engine is loaded when it is asked for.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.imports import factory_here
from rollin.runs.directory import POLICY, RunDirectory
from rollin.runs.engines.base import Engine
from rollin.runs.metrics import Metric
from rollin.runs.records import Record
from rollin.runs.spec import Membership, RunSpec, config_from, digest, flat
from rollin.tasks import TASKS, plain_name

if TYPE_CHECKING:
    from rollin.runs.driver import OnStatus, ShouldStop

MODULES = {
    "tabular": "rollin.runs.engines.tabular",
    "until-solved": "rollin.runs.engines.until_solved",
    "sac": "rollin.runs.engines.sac",
    "rollin": "rollin.runs.engines.rollin",
    "agent": "rollin.runs.engines.agent",
}
"""Where an engine lives, by its name. The first that claims a task has it."""


def engine(name: str) -> Engine[Any]:
    """The engine of a name."""
    if name not in MODULES:
        raise RollinError(f"There is no engine {name!r}: this version has {', '.join(MODULES)}.")
    return import_module(MODULES[name]).ENGINE


def engines() -> Iterator[Engine[Any]]:
    """All of them."""
    return map(engine, MODULES)


def engine_for(task: str) -> Engine[Any]:
    """The engine that a task belongs to."""
    task = plain_name(task)
    if task in TASKS:  # which spares loading the other engines
        return engine("rollin")
    for found in engines():
        if found.claims(task):
            return found
    known = [name for found in engines() for name in found.tasks]
    kinds = "; ".join(found.about for found in engines() if found.about)
    meant = factory_here(task) or did_you_mean(task, known)
    raise RollinError(
        f"Unknown task {task!r}.{meant} Expected {kinds}; or "
        "module:factory that returns your own MDP or contextual environment."
    )


def metric(name: str, of: str | None = None) -> Metric:
    """Return a metric by its name; of: the engine whose it is, if that is known.

    What no engine declares, such as a measure of an environment, is a result.
    """
    for found in [engine(of)] if of in MODULES else engines():
        for one in found.metrics:
            if one.name == name:
                return one
    return Metric(name, result=True)


def engine_of(spec: RunSpec[Any]) -> Engine[Any]:
    """The engine of a spec."""
    return engine(spec.config.engine)


def run(
    spec: RunSpec[Any],
    out: Path,
    command: str = "",
    on_status: "OnStatus" = lambda status: None,
    should_stop: "ShouldStop" = lambda: False,
    of: Membership | None = None,
    until: int | None = None,
) -> bool:
    """Run a spec in a directory, or resume it; a finished one is left as it is.

    until: stop at the first end of an episode at this step or later, with a checkpoint.
    """
    from rollin.runs.driver import execute  # which those who read runs do not load

    # a bad task is refused before anything is written
    made = engine_of(spec).run(spec, RunDirectory(out))
    return execute(made, command, on_status, should_stop, of, until)


def spec_of(run: RunDirectory) -> RunSpec[Any]:
    """What a run is, by its config.json."""
    described = run.config
    return spec_from(described.engine, described.task, described.config)


def spec_from(name: str, task: str, config: dict[str, Any]) -> RunSpec[Any]:
    """Return a spec of plain values."""
    return RunSpec(task, config_from(engine(name).config_class, config))


def condition_key(spec: RunSpec[Any]) -> str:
    """What runs of one condition have in common: a hash of the options without seed and length."""
    plain = engine_of(spec).canonical(spec.task, spec.config)
    return digest(RunSpec(spec.task, plain).to_json())


def read_record(run: RunDirectory, at: Sequence[int] = ()) -> Record:
    """A run as its directory has it; at: steps at which its curve is to have a row."""
    try:
        described = run.config
        spec = spec_of(run)
        if run.finished and os.path.lexists(run.path / POLICY):  # which need not be kept
            run.check_files()
        found = engine_of(spec).record(run, spec, at)
        return replace(
            found,
            labels=described.labels,
            family=described.family,
            scale=described.scale,
            spec_hash=described.spec_hash or spec.hash,
            key=condition_key(spec),
            fingerprint=described.fingerprint or "",
            options=flat(spec.config),
            version=described.versions.get("rollin", ""),
            processor=described.processor,
            path=run.path,
        )
    except RollinError:
        raise
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise RollinError(f"its files cannot be read: {error}") from error
