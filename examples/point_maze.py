"""ROLLIN on Gymnasium-Robotics' PointMaze, a goal env, through the adapter.

    pip install '.[robotics]'
    python examples/point_maze.py

The curriculum moves the goal along the U from the start to the other end.
"""

import gymnasium
import gymnasium_robotics

import rollin

gymnasium.register_envs(gymnasium_robotics)

CORNERS = [[-1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]  # of the U, in the maze's metres


def make_env(render_mode=None):
    """Return a PointMaze that starts at one end of the U and continues at the goal."""
    env = gymnasium.make(
        "PointMaze_UMaze-v3", continuing_task=True, reset_target=False, render_mode=render_mode
    )
    curriculum = rollin.Curriculum.along(CORNERS, delta=1 / 6, rule=100.0)
    return rollin.GoalContext(env, curriculum=curriculum, reset_options={"reset_cell": [1, 1]})


def main(steps: int = 60_000) -> None:
    """Train, and print when each context was mastered."""
    trained = rollin.train(
        make_env, beta=0.1, steps=steps, warmup=2000, hidden=(64, 64), batch=128, gamma=0.98,
        learning_rate=1e-3, initial_temperature=0.1,
    )  # fmt: skip
    for advance in trained.advances:
        print(f"step {advance.step:6,}: context {advance.k - 1} mastered, {advance.reason}")
    print(f"kappa = {trained.kappa:.2f}")


if __name__ == "__main__":
    main()
