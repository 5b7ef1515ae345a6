"""dead-end: point-umaze's point in a maze whose straight way to the goal ends at a wall.

From the start (0, 0) a room opens towards the last goal (8, 4.5), and is closed there. The way
leads out of it, down and around: along (0, -4.5) and (8, -4.5), 21.5 m.
"""

from rollin.envs.maze import Maze
from rollin.envs.point_maze import PointMaze

LOW, HIGH = -6.0, 6.0  # of y; x goes from -2 to 10


class DeadEnd(PointMaze):
    """A point before a dead end; options as `rollin.envs.point_maze.PointMaze`."""

    maze = Maze(
        path=((0.0, 0.0), (0.0, -4.5), (8.0, -4.5), (8.0, 4.5)),
        bounds=(-2.0, 10.0, LOW, HIGH),
        blocks=(
            (5.0, 6.0, -3.0, HIGH + 1),  # the end of the room
            (1.5, 6.0, -3.0, -2.0),  # and its floor
        ),
    )
