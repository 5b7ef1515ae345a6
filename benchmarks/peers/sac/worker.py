"""Holds one contestant and times it on demand, so that many can take turns in one benchmark.

    python worker.py CONTESTANT CASE-AS-JSON

After its first training step, or update if it has no steps, it prints the seconds since the start
of the process, the versions of its libraries and, if it is ours, how many numbers its vectors hold;
then, for each line "steps N" or "updates N" on standard input, wall-clock seconds and CPU seconds
(of all threads) that so many take.
"""

import importlib
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

BEGAN = time.time()
sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.peers.sac.case import Case  # noqa: E402

CONTESTANTS = {
    "rollin cpu": ("ours", "RollinCpu"),
    "rollin cpu, bfloat16": ("ours", "RollinCpuBfloat16"),
    "rollin jax": ("ours", "RollinJax"),
    "RLtools": ("rltools_sac", "RLtools"),
    "jaxrl": ("jaxrl_sac", "Jaxrl"),
    "jaxrl, bfloat16": ("jaxrl_sac", "JaxrlBfloat16"),
    "SBX SAC": ("sb3_sac", "SBX"),
    "SBX CrossQ": ("sb3_sac", "CrossQ"),
    "SB3": ("sb3_sac", "SB3"),
    "CleanRL": ("cleanrl_sac", "CleanRL"),
    "CleanRL, bfloat16": ("cleanrl_sac", "CleanRLBfloat16"),
    "CleanRL, compiled": ("cleanrl_sac", "CleanRLCompiled"),
    "products, ours": ("products", "Ours"),
    "products, OpenBLAS": ("products", "OpenBLAS"),
    "products, MKL": ("products", "MKL"),
}


def lanes() -> int | None:
    """Numbers in a vector of our kernels, if this process has loaded them."""
    simd = sys.modules.get("rollin.sac.cpu.simd")
    return None if simd is None else int(simd.LANES)


def main() -> None:
    name, text = sys.argv[1:]
    values = json.loads(text)
    values["hidden"] = tuple(values["hidden"])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    module, kind = CONTESTANTS[name]
    make = getattr(importlib.import_module(f"benchmarks.peers.sac.{module}"), kind)
    contestant = make(Case(**values))
    try:
        contestant.steps(1)
    except NotImplementedError:
        contestant.updates(1)
    libraries = (*contestant.libraries, "gymnasium", "mujoco")
    found = ", ".join(f"{library} {version(library)}" for library in libraries)
    seconds = time.time() - BEGAN
    print(json.dumps({"start": seconds, "version": found, "lanes": lanes()}), file=answers)
    for line in sys.stdin:
        what, count = line.split()
        began, used = time.perf_counter(), time.process_time()
        getattr(contestant, what)(int(count))
        print(time.perf_counter() - began, time.process_time() - used, file=answers)


if __name__ == "__main__":
    main()
