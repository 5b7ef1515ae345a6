"""Stable-Baselines3 and SBX as their users call them."""
# pyright: reportMissingImports=false

from typing import Any

from benchmarks.peers.sac.case import WARMUP, Case, make


class Package:
    """`learn` for whole steps, `train` for updates alone."""

    def __init__(self, case: Case, algorithm: Any, **options: Any) -> None:
        self.batch = case.batch
        self.model = algorithm(
            "MlpPolicy",
            make(case.env),
            batch_size=case.batch,
            learning_starts=WARMUP,
            seed=0,
            **options,
        )
        self.model.learn(WARMUP)

    def steps(self, count: int) -> None:
        """So many training steps."""
        self.model.learn(count, reset_num_timesteps=False)

    def updates(self, count: int) -> None:
        """So many updates."""
        for _ in range(count):
            self.model.train(gradient_steps=1, batch_size=self.batch)


class SB3(Package):
    """Stable-Baselines3 on PyTorch."""

    libraries = ("stable-baselines3", "torch")

    def __init__(self, case: Case) -> None:
        import torch
        from stable_baselines3 import SAC

        torch.set_num_threads(case.threads)
        networks = {"net_arch": list(case.hidden)}
        super().__init__(case, SAC, device="cpu", policy_kwargs=networks)


class SBX(Package):
    """SAC of Stable-Baselines3 on JAX."""

    libraries = ("sbx-rl", "jax", "flax", "optax")

    def __init__(self, case: Case) -> None:
        from sbx import SAC

        super().__init__(case, SAC, policy_kwargs={"net_arch": list(case.hidden)})


class CrossQ(Package):
    """CrossQ of Stable-Baselines3 on JAX, with the networks that it comes with.

    Its critics are wider than those of the others (1024 units), have batch normalisation and no
    targets, and its actor learns at every third update.
    """

    libraries = SBX.libraries

    def __init__(self, case: Case) -> None:
        from sbx import CrossQ as Algorithm

        super().__init__(case, Algorithm)
