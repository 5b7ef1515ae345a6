"""Our environments in Gymnasium's registry, under names with a version: rollin/PointUmaze-v0.

`import rollin` registers them, so that nothing else of ours may be imported here. A version never
changes under its users. Runs, and their hashes, have the plain names (`point-umaze`).
"""

import gymnasium

IDS = {
    "rollin/PointUmaze-v0": ("point-umaze", "rollin.envs.point_umaze:PointUmaze"),
    "rollin/AntmazeUmaze-v0": ("antmaze-umaze", "rollin.envs.ant_umaze:AntUmaze"),
    "rollin/Walker-v0": ("walker", "rollin.envs.velocity:walker"),
    "rollin/Hopper-v0": ("hopper", "rollin.envs.velocity:hopper"),
    "rollin/Humanoid-v0": ("humanoid", "rollin.envs.velocity:humanoid"),
    "rollin/Ant-v0": ("ant", "rollin.envs.velocity:ant"),
}
"""Plain name and factory, by Gymnasium's id."""


def register() -> None:
    """Register all, once."""
    for name, (_, factory) in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, factory)


def plain_name(task: str) -> str:
    """The name that a task has in runs: ours without namespace and version, others as they are."""
    return IDS[task][0] if task in IDS else task
