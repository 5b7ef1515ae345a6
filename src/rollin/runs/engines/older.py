"""Runs of older versions: what their config.json leaves unsaid, and what was done then.

Read so, such a run is what it was and not what today's defaults would make of it: reports put it
beside its own kind.
"""

import math
from typing import Any

LEVELS = ("walker", "hopper", "humanoid", "ant")  # tasks whose first context is not at position 0


def sac_as_it_was(config: dict[str, Any]) -> dict[str, Any]:
    """The options of a run with SAC, those included that its version did not have."""
    if "head_gain" in config["sac"]:
        return config
    return config | {"sac": {**config["sac"], "head_gain": math.sqrt(2.0)}}


def rollin_as_it_was(task: str, config: dict[str, Any]) -> dict[str, Any]:
    """The options of a run of ROLLIN, those included that its version did not have."""
    if "head_gain" in config["sac"]:
        return config
    config = sac_as_it_was(config)
    config["algorithm"] = {**config["algorithm"], "exp_fill": config["sac"]["batch"]}
    delta, start = config.get("delta"), config.get("start")
    given = config.get("path") is not None or config.get("contexts") is not None
    if task == "antmaze-umaze" and start is None and not given:
        config["start"] = 0.0
    uneven = delta is not None and not math.isclose(round(1 / delta) * delta, 1)
    if task in LEVELS or start is not None or uneven:
        config["kappa"] = "position"
        config["threshold_at"] = "position"
    if task in LEVELS and not given and config.get("threshold") is None:
        config["literal"] = True  # whose thresholds theirs were
    return config
