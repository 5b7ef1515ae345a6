"""Environments, and what stands between them and the algorithms.

To import this is to register ours with Gymnasium, under names with a version: rollin/PointUmaze-v0.
"""

import gymnasium

from rollin.names import IDS

for _name, (_, _factory) in IDS.items():
    if _name not in gymnasium.registry:
        gymnasium.register(_name, _factory)
