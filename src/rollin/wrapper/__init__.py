"""ROLLIN around any Gymnasium env: `env` is the wrapper `RollIn`, the other modules are its parts.

`orders` says which plan comes next, `prefix` plays the roll-in, `showing` shows the guide the
context before, `episode` counts, `fits` refuses what does not fit; `numpy_guide` is a guide that
travels to other processes, `statistics` its normaliser.
"""

from rollin.wrapper.env import RollIn
from rollin.wrapper.episode import PrefixStep

__all__ = ["PrefixStep", "RollIn"]
