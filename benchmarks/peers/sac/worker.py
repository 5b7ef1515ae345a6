"""Holds one contestant and times it on demand, so that many can take turns in one benchmark.

    python worker.py CONTESTANT CASE-AS-JSON

Prints the seconds from the start of the process to its first update; then, for each line with a
number on standard input, the seconds that so many updates or steps take.
"""

import importlib
import json
import sys
import time
from pathlib import Path

BEGAN = time.time()
sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.peers.sac.case import Case  # noqa: E402

CONTESTANTS = {
    "rollin cpu": ("ours", "RollinCpu"),
    "rollin jax": ("ours", "RollinJax"),
    "jaxrl": ("jaxrl_sac", "Jaxrl"),
    "SBX": ("sb3_sac", "SBX"),
    "SB3": ("sb3_sac", "SB3"),
    "CleanRL": ("cleanrl_sac", "CleanRL"),
    "products, ours": ("products", "Ours"),
    "products, OpenBLAS": ("products", "OpenBLAS"),
    "products, MKL": ("products", "MKL"),
}


def main() -> None:
    name, text = sys.argv[1:]
    values = json.loads(text)
    values["hidden"] = tuple(values["hidden"])
    module, kind = CONTESTANTS[name]
    make = getattr(importlib.import_module(f"benchmarks.peers.sac.{module}"), kind)
    contestant = make(Case(**values))
    contestant.run(1)
    print(time.time() - BEGAN, flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        contestant.run(int(line))
        print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main()
