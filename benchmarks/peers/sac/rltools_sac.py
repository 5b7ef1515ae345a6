"""RLtools' SAC in C++ behind its Python package, as its users call it.

Sizes are compiled in: the first use of a case on a machine takes the system's compiler a while,
later ones load the result. A step of its loop is one call, so that its updates cannot be timed
alone. Per step it updates both critics, their targets, the actor and the temperature once, from one
batch, as the others do.
"""
# pyright: reportMissingImports=false

import os
import re
from typing import Any

import gymnasium
from rltools import SAC

from benchmarks.peers.sac.case import WARMUP, Case, make

STEP_LIMIT = 1_000_000  # its replay is as large


def compiled(case: Case, warmup: int = WARMUP, seed: int = 0) -> Any:
    """The module of a case; `hidden` must be two layers of one width."""
    (width,) = set(case.hidden)

    def factory() -> gymnasium.Env[Any, Any]:
        env = make(case.env)
        env.reset(seed=seed)  # it never seeds the environment itself
        return env

    # its cache holds one module per name
    instructions = "native" if "RL_TOOLS_COMPILER" not in os.environ else "narrow"
    name = f"{case.env}_{width}_{case.batch}_{warmup}_{instructions}"
    return SAC(
        factory,
        interface_name=re.sub(r"\W", "_", name),
        enable_evaluation=False,
        ACTOR_BATCH_SIZE=case.batch,
        CRITIC_BATCH_SIZE=case.batch,
        ACTOR_HIDDEN_DIM=width,
        CRITIC_HIDDEN_DIM=width,
        ACTOR_NUM_LAYERS=len(case.hidden) + 1,
        CRITIC_NUM_LAYERS=len(case.hidden) + 1,
        N_WARMUP_STEPS=warmup,
        STEP_LIMIT=STEP_LIMIT,
    )


class RLtools:
    """Its loop."""

    libraries = ("rltools", "mkl", "pybind11")

    def __init__(self, case: Case) -> None:
        self.state = compiled(case).State(0)
        self.steps(WARMUP)

    def steps(self, count: int) -> None:
        """So many training steps."""
        for _ in range(count):
            assert not self.state.step(), "past its limit of steps it does nothing"

    def updates(self, count: int) -> None:
        """Part of its step."""
        raise NotImplementedError
