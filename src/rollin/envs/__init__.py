"""Environments, and the adapters between them and the algorithms.

Importing this package registers rollin's tasks with Gymnasium, such as rollin/PointUmaze-v0.
"""

import gymnasium

from rollin.tasks import TASKS, gymnasium_id

for _name, _task in TASKS.items():
    if gymnasium_id(_name) not in gymnasium.registry:
        gymnasium.register(gymnasium_id(_name), _task.factory)
