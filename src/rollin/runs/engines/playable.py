"""The policy of a run of ROLLIN, finished or not, and an environment to show it in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.arrays import Float
from rollin.deep.evaluate import Evaluation, evaluate_policy
from rollin.envs.context_env import ContextEnv
from rollin.errors import RollinError
from rollin.policy import Policy
from rollin.runs.checkpoint import read_checkpoint
from rollin.runs.curricula import env_of
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.exported import ExportedPolicy, Trained
from rollin.runs.formats import converted
from rollin.runs.networks import policy_tensors
from rollin.runs.spec import RunSpec
from rollin.sac.network import Layout


@dataclass(frozen=True)
class Playable:
    """A run, to be evaluated: π_main, its environment, the curriculum it walked, where it stands.

    contexts: (K + 1, C); kappas: (K + 1,); thresholds: as many, or none where no rule has one.
    """

    policy: Policy
    env: ContextEnv
    contexts: NDArray[np.float64]
    kappas: list[float]
    thresholds: list[float]
    k: int
    step: int

    @property
    def K(self) -> int:
        """Index of the last context."""
        return len(self.contexts) - 1

    @classmethod
    def open(
        cls, run: Trained, spec: RunSpec[RollinConfig], render_mode: str | None = None
    ) -> "Playable":
        """A policy: exported, of a finished run, or of the last checkpoint of one that is not."""
        env = env_of(spec, render_mode)
        try:
            if isinstance(run, ExportedPolicy):
                policy, about = run.policy, run.about
                walked, k, step = about.curriculum, about.k, about.step
            elif run.finished:
                result, policy = run.result(), Policy.load(run.path)
                walked, k, step = result["curriculum"], int(result["k"]), int(result["env_steps"])
            else:
                policy, walked, k, step = _saved(run, spec, env)
            contexts = np.array(walked["contexts"], np.float64)
            kappas, thresholds = (
                converted(walked[name], list[float], run.path) for name in ("kappas", "thresholds")
            )
            return cls(policy, env, contexts, kappas, thresholds, k, step)
        except RollinError:
            env.close()
            raise
        except (KeyError, TypeError, ValueError) as error:
            env.close()
            raise RollinError(
                f"{run.path} does not hold what a run of ROLLIN leaves "
                f"({type(error).__name__}: {error}): its files are damaged."
            ) from error

    def evaluate(
        self, k: int, episodes: int, seed: int, on_outcome: Callable[[int, Float], None]
    ) -> Evaluation:
        """Deterministic episodes under context k."""
        context = self.contexts[k]
        return evaluate_policy(
            self.policy, self.env, context, episodes, seed=seed, on_outcome=on_outcome
        )


def _saved(
    run: RunDirectory, spec: RunSpec[RollinConfig], env: ContextEnv
) -> tuple[Policy, dict[str, Any], int, int]:
    """π_main, curriculum, context and step of the last checkpoint."""
    saved = read_checkpoint(run.checkpoint, run.recorded_hash() or spec.hash)
    if saved is None:
        raise RollinError(
            f"{run.path} has neither a policy nor a checkpoint yet: let it run for a while, or "
            f"continue it with rollin resume {run.path}."
        )
    k, walked = int(saved.values["rollin"]["progress"]["k"]), saved.values["curriculum"]
    sac = spec.config.sac
    tensors = policy_tensors(
        Layout(env.observation_size + env.context_size, env.action_size, sac.hidden),
        sac,
        saved.arrays["rollin/main/theta"],
        env.actions,
        contexts=np.array(walked["contexts"]),
        k=np.array([k]),
        context_space=np.stack([env.context_space.low, env.context_space.high]),
    )
    return Policy.of(tensors), walked, k, saved.step
