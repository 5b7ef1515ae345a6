"""The U-maze of point-umaze and antmaze-umaze, with the paper's path of goals."""

from rollin.envs.maze import Maze

PATH = ((0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0))  # corners of the curriculum, 24 m
LOW, HIGH = -2.0, 10.0  # outer walls, on both axes
UMAZE = Maze(PATH, (LOW, HIGH, LOW, HIGH), ((LOW - 1, 6.0, 2.0, 6.0),))
