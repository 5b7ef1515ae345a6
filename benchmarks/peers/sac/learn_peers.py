"""The packages as pupils of `learn.py`, with their defaults."""
# pyright: reportMissingImports=false

from typing import Any

import numpy as np

from benchmarks.peers.sac.case import make
from benchmarks.peers.sac.learn import Trial


class Package:
    """Stable-Baselines3's interface."""

    def __init__(self, trial: Trial, algorithm: Any, **options: Any) -> None:
        self.model = algorithm(
            "MlpPolicy",
            make(trial.env),
            batch_size=trial.case.batch,
            learning_starts=trial.warmup,
            seed=trial.seed,
            **options,
        )
        self.model.learn(0)

    def steps(self, count: int) -> None:
        """So many training steps."""
        self.model.learn(count, reset_num_timesteps=False)

    def act(self, observation: Any) -> Any:
        """The deterministic action."""
        return self.model.predict(observation, deterministic=True)[0]


class SB3(Package):
    """Stable-Baselines3 on PyTorch."""

    libraries = ("stable-baselines3", "torch")

    def __init__(self, trial: Trial) -> None:
        import torch
        from stable_baselines3 import SAC

        torch.set_num_threads(1)
        super().__init__(trial, SAC, device="cpu")


class OnJax(Package):
    """Stable-Baselines3 on JAX, which returns before it has computed."""

    libraries = ("sbx-rl", "jax", "flax", "optax")

    def steps(self, count: int) -> None:
        """So many training steps."""
        import jax

        super().steps(count)
        policy = self.model.policy
        jax.block_until_ready((policy.actor_state.params, policy.qf_state.params))


class SBX(OnJax):
    """SBX' SAC."""

    def __init__(self, trial: Trial) -> None:
        from sbx import SAC

        super().__init__(trial, SAC)


class CrossQ(OnJax):
    """SBX' CrossQ with its own networks."""

    def __init__(self, trial: Trial) -> None:
        from sbx import CrossQ as Algorithm

        super().__init__(trial, Algorithm)


class RLtools:
    """RLtools, compiled for these sizes."""

    libraries = ("rltools", "mkl", "pybind11")

    def __init__(self, trial: Trial) -> None:
        from benchmarks.peers.sac.rltools_sac import compiled

        self.state = compiled(trial.case, trial.warmup, trial.seed).State(trial.seed)

    def steps(self, count: int) -> None:
        """So many training steps."""
        for _ in range(count):
            self.state.step()

    def act(self, observation: Any) -> Any:
        """The deterministic action."""
        return self.state.action(np.asarray(observation, np.float32))
