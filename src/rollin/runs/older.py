"""Runs of older versions: what their config.json leaves unsaid, and what was done then.

Read so, such a run is what it was and not what today's defaults would make of it: reports put it
beside its own kind.
"""

import math
from typing import Any

LEVELS = ("walker", "hopper", "humanoid", "ant")  # tasks whose first context is not at position 0


def as_it_was(engine: str, task: str, config: dict[str, Any]) -> dict[str, Any]:
    """The options of a run, those included that its version did not have."""
    if engine not in ("sac", "rollin") or "head_gain" in config["sac"]:
        return config
    config = config | {"sac": {**config["sac"], "head_gain": math.sqrt(2.0)}}
    if engine == "rollin":
        config["algorithm"] = {**config["algorithm"], "exp_fill": config["sac"]["batch"]}
        if task == "antmaze-umaze" and config["start"] is None:
            config["start"] = 0.0
        elif task in LEVELS or config["start"] is not None:
            config |= {"kappa": "position", "threshold_at": "position"}
    return config
