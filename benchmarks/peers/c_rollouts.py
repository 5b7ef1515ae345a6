"""Compiles and calls `rollouts.c`, so that our kernel can be timed beside plain C."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

from rollin.tabular.learners import BatchSPG

SOURCE = Path(__file__).with_name("rollouts.c")


def compile_rollouts(folder: Path) -> ctypes.CDLL | None:
    """The library, or None without a C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    target = folder / "rollouts.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC", "-o", str(target)]
    subprocess.run([compiler, *flags, str(SOURCE)], check=True)
    return ctypes.CDLL(str(target))


def call_rollouts(library: ctypes.CDLL, learner: BatchSPG, starts: Any) -> int:
    """Sample a learner's batch with the C code; adds to the learner's gradient sums."""
    successors, *_ = learner._dynamics
    to_go = learner._to_go
    tables = learner._alias, learner._bonus, successors, to_go
    pointers = [
        array.ctypes.data_as(ctypes.c_void_p) for array in (learner.stream.words, starts, *tables)
    ]
    return library.rollouts(
        *pointers[:5],
        ctypes.c_float(learner.mdp.gamma),
        learner.batch,
        learner.horizon,
        pointers[5],
        to_go.shape[1],
    )
