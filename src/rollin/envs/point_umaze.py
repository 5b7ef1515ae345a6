"""point-umaze: a point mass in the U-maze of antmaze-umaze, with its path, reward and contexts.

Small enough to see ROLLIN work in seconds. Coordinates are the ant's: the start is (0, 0), the last
goal (0, 8), and the way there leads along (8, 0) and (8, 8), 24 m, around a wall.
"""

from rollin.envs.point_maze import PointMaze
from rollin.envs.umaze import UMAZE


class PointUmaze(PointMaze):
    """A point in the U-maze; options as `rollin.envs.point_maze.PointMaze`."""

    maze = UMAZE
