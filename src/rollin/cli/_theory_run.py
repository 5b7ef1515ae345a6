"""A run as `rollin theory` reads it: its MDP and options, and what it recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load

from rollin.errors import RollinError
from rollin.regular import LARGEST_POLICY, read_bounded
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import spec_of
from rollin.runs.engines.tabular_options import TabularConfig
from rollin.runs.mdps import TABULAR_TASKS, mdp_of
from rollin.runs.trust import check_trust
from rollin.tabular import soft
from rollin.tabular.magnitude import Magnitude
from rollin.tabular.mdp import ContextualMDP
from rollin.tabular.predictor import learned_terms
from rollin.tabular.soft import SoftOptimum


@dataclass(frozen=True)
class Run:
    """A finished tabular run.

    log_min_pi: by context, as in result.json; learning_rate: of two-phase-spg alone.
    """

    path: Path
    config: TabularConfig
    mdp: ContextualMDP
    log_min_pi: list[float | None]
    learning_rate: float | None

    @property
    def tracked(self) -> bool:
        """Whether it recorded its smallest probabilities, of some context at least."""
        return any(least is not None for least in self.log_min_pi)

    def predictor(self, optima: Sequence[SoftOptimum]) -> list[Magnitude]:
        """R's terms with the run's own policies and start distributions, without smoothing."""
        path = self.path / "policy.safetensors"
        try:
            policies = load(read_bounded(path, LARGEST_POLICY)).get("log_policies", ())
        except (SafetensorError, KeyError, ValueError) as error:
            raise RollinError(f"{path} cannot be read: {error}.") from error
        recursive = self.config.mu == "recursive"
        log_pis = [soft.log_softmax(policy) for policy in policies]
        return learned_terms(self.mdp, optima, log_pis, self.config.beta, recursive=recursive)


def read_run(task: str, fixed: Mapping[str, Any], *, trust: bool = False) -> Run | None:
    """The run that a task names, if it is a run directory; refused if the theory is not about it.

    fixed: options that only the run itself may set; None where not given. trust: whether code that
    the run names may be run though this user did not make it.
    """
    directory = RunDirectory(Path(task))
    if task in TABULAR_TASKS or not directory.exists:
        return None
    spec = spec_of(directory)
    config = spec.config
    if not isinstance(config, TabularConfig):
        raise RollinError(
            f"{task} is a run of {spec.task}, which is not a tabular task: the theory is "
            "about finite MDPs."
        )
    for name, given in fixed.items():
        kept = getattr(config, name)
        if given is not None and given != kept:
            raise RollinError(
                f"{task} was run with {name} = {kept}, got --{name} {given}: leave it out, "
                f"or name the task {spec.task} instead of the run."
            )
    if not directory.finished:
        raise RollinError(f"{task} is not finished: rollin resume {task} finishes it.")
    check_trust(directory.path, directory.config, trust=trust)
    mdp, result = mdp_of(spec), directory.result()
    if directory.config.fingerprint != mdp.fingerprint():
        raise RollinError(f"{spec.task} is no longer the task that {task} was run on.")
    return Run(
        directory.path,
        config,
        mdp,
        result.get("log_min_pi", []),
        result.get("learning_rate") if config.algorithm == "two-phase-spg" else None,
    )
