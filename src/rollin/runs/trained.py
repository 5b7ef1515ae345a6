"""The policy of a deep run, finished or not, and an environment to show it in."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rollin.curriculum import Curriculum
from rollin.deep.evaluate import Evaluation, evaluate_context
from rollin.envs.contextual import ContextEnv
from rollin.errors import RollinError
from rollin.policy import Policy
from rollin.runs.checkpoint import read_checkpoint
from rollin.runs.networks import policy_tensors
from rollin.runs.rollin import curriculum_of, env_of
from rollin.runs.spec import RollinConfig, RunSpec
from rollin.runs.store import RunDirectory
from rollin.sac.network import Float, Layout


@dataclass(frozen=True)
class TrainedRun:
    """A run of ROLLIN, to be evaluated: π_main, its environment and curriculum, where it stands."""

    policy: Policy
    env: ContextEnv
    curriculum: Curriculum
    k: int
    step: int

    @classmethod
    def open(cls, run: RunDirectory, render_mode: str | None = None) -> "TrainedRun":
        """The policy of a finished run, or of the last checkpoint of one that is not."""
        spec = run.spec()
        if spec.config.engine != "rollin":
            raise RollinError(
                f"{run.path} is a run of the engine {spec.config.engine}: runs of ROLLIN on "
                "contextual environments can be evaluated."
            )
        env = env_of(spec, render_mode)
        curriculum = curriculum_of(env, spec.config)
        if run.finished:
            policy = Policy.load(run.path)
            return cls(policy, env, curriculum, policy.k, int(run.result()["env_steps"]))
        theta, k, step = _saved(run, spec)
        sizes = env.observation_size + env.context_size, env.action_size
        sac = spec.config.sac
        tensors = policy_tensors(
            Layout(*sizes, sac.hidden),
            sac,
            theta,
            env.actions,
            contexts=curriculum.contexts,
            kappas=np.array(curriculum.kappas),
            k=np.array([k]),
        )
        return cls(Policy.of(tensors), env, curriculum, k, step)

    def evaluate(self, k: int, episodes: int, seed: int, on_step: Any) -> Evaluation:
        """Deterministic episodes under context k."""
        context = self.curriculum.contexts[k]
        size, actions = self.env.observation_size, self.env.actions

        def act(seen: Float) -> Float:
            scaled = self.policy.act(seen[:size], seen[size:])
            middle, half = (actions.high + actions.low) / 2, (actions.high - actions.low) / 2
            return ((scaled - middle) / half).astype(np.float32)

        return evaluate_context(self.env, act, context, episodes, seed=seed, on_step=on_step)


def _saved(run: RunDirectory, spec: RunSpec[RollinConfig]) -> tuple[Float, int, int]:
    """π_main's parameters, context and step of the last checkpoint."""
    saved = read_checkpoint(run.checkpoint, spec.hash)
    if saved is None:
        raise RollinError(
            f"{run.path} has neither a policy nor a checkpoint yet: let it run for a while, or go "
            f"on with rollin resume {run.path}."
        )
    try:
        k = int(saved.values["rollin"]["progress"]["k"])
        return saved.arrays["rollin/main/theta"], k, saved.step
    except (KeyError, TypeError) as error:
        raise RollinError(f"The checkpoint in {run.checkpoint} is damaged: {error}.") from error
