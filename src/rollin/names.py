"""Two names of a task: the plain one, which runs and their hashes have, and Gymnasium's."""

IDS = {
    "rollin/PointUmaze-v0": ("point-umaze", "rollin.envs.point_umaze:PointUmaze"),
    "rollin/DeadEnd-v0": ("dead-end", "rollin.envs.dead_end:DeadEnd"),
    "rollin/KeyDoor-v0": ("key-door", "rollin.envs.key_door:KeyDoor"),
    "rollin/PointSpeed-v0": ("point-speed", "rollin.envs.point_speed:PointSpeed"),
    "rollin/AntmazeUmaze-v0": ("antmaze-umaze", "rollin.envs.ant_umaze:AntUmaze"),
    "rollin/Walker-v0": ("walker", "rollin.envs.velocity:walker"),
    "rollin/Hopper-v0": ("hopper", "rollin.envs.velocity:hopper"),
    "rollin/Humanoid-v0": ("humanoid", "rollin.envs.velocity:humanoid"),
    "rollin/Ant-v0": ("ant", "rollin.envs.velocity:ant"),
}
"""Plain name and factory, by Gymnasium's id, whose version never changes under its users."""


def plain_name(task: str) -> str:
    """The name that a task has in runs: ours without namespace and version, others as they are."""
    return IDS[task][0] if task in IDS else task
