"""Stable-Baselines3 and SBX as their users call them."""
# pyright: reportMissingImports=false

from typing import Any

from benchmarks.peers.sac.case import WARMUP, Case, make


class Package:
    """`learn` for whole steps, `train` for updates alone."""

    def __init__(self, case: Case, algorithm: Any, **options: Any) -> None:
        self.case = case
        self.model = algorithm(
            "MlpPolicy",
            make(case.env),
            batch_size=case.batch,
            learning_starts=WARMUP,
            policy_kwargs={"net_arch": list(case.hidden)},
            seed=0,
            **options,
        )
        self.model.learn(WARMUP)

    def run(self, count: int) -> None:
        """So many updates, or training steps."""
        if self.case.loop:
            self.model.learn(count, reset_num_timesteps=False)
            return
        for _ in range(count):
            self.model.train(gradient_steps=1, batch_size=self.case.batch)


class SB3(Package):
    """Stable-Baselines3 on PyTorch."""

    def __init__(self, case: Case) -> None:
        import torch
        from stable_baselines3 import SAC

        torch.set_num_threads(case.threads)
        super().__init__(case, SAC, device="cpu")


class SBX(Package):
    """Stable-Baselines3 on JAX."""

    def __init__(self, case: Case) -> None:
        from sbx import SAC

        super().__init__(case, SAC)
