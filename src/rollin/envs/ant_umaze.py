"""antmaze-umaze: D4RL's ant in the U-maze, with the paper's path of goals.

After the environment of D4RL (Fu, Kumar, Nachum, Tucker, Levine: "D4RL: Datasets for Deep
Data-Driven Reinforcement Learning", 2020), built from Gymnasium's own ant.xml: D4RL's time step,
contacts and torques, and its maze of 4 m cells. Coordinates are those of point-umaze.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.envs.mujoco.mujoco_env import expand_model_path
from numpy.typing import NDArray

from rollin.curriculum.contexts import Curriculum
from rollin.envs.point_umaze import HIGH, LOW, PATH, RADIUS, UMAZE, goal_reward, reward_at
from rollin.envs.robot import RobotEnv, Simulation, picture_size

CELL = 4.0  # metres
WALL_HEIGHT = 2.0
MAZE = (  # # is wall; the ant starts at S, which is (0, 0); columns are x, rows are y
    "#####",
    "#S..#",
    "###.#",
    "#...#",
    "#####",
)
TIMESTEP = 0.02
FRAMES = 5  # so that a step lasts 0.1 s
GEAR = 30.0  # torque at control 1
CONTACT = {"solref": ".02 1", "solimp": ".8 .8 .01"}
RESET_NOISE = 0.1  # of positions uniform, of velocities normal
HORIZON = 500
R = 200.0
DELTA = 1 / 24
CAMERA = {"lookat": np.array([4.0, 4.0, 0.0]), "distance": 18.0, "elevation": -90, "azimuth": 90}

APPEARANCE = {  # a plain floor without reflections
    "asset/texture[@name='texplane']": {"rgb1": ".62 .62 .64", "rgb2": ".55 .55 .57"},
    "asset/material[@name='MatPlane']": {"reflectance": "0", "specular": "0", "shininess": "0"},
}

Array = NDArray[Any]
mujoco: Any = import_module("mujoco")  # its compiled part has no type stubs


def ant_in_maze() -> str:
    """Return Gymnasium's ant as MuJoCo XML, with D4RL's constants and walls."""
    tree = ET.parse(expand_model_path("ant.xml")).getroot()
    _one(tree, "option").set("timestep", str(TIMESTEP))
    for name, value in CONTACT.items():
        _one(tree, "default/geom").set(name, value)
    for motor in tree.findall("actuator/motor"):
        motor.set("gear", str(GEAR))
    for path, attributes in APPEARANCE.items():
        for name, value in attributes.items():
            _one(tree, path).set(name, value)
    torso = _one(tree, "worldbody/body[@name='torso']")
    torso.remove(_one(torso, "camera"))  # which some versions of Gymnasium prefer to a free one
    world = _one(tree, "worldbody")
    for x, y in wall_centres():
        ET.SubElement(
            world,
            "geom",
            name=f"wall_{x:g}_{y:g}",
            type="box",
            pos=f"{x} {y} {WALL_HEIGHT / 2}",
            size=f"{CELL / 2} {CELL / 2} {WALL_HEIGHT / 2}",
            contype="1",
            conaffinity="1",
            rgba="0.25 0.25 0.3 1",
        )
    # a site only marks the goal: it touches nothing. At 0 0 0 it could not be moved later.
    disc = {
        "pos": "0 8 0",
        "type": "cylinder",
        "size": f"{RADIUS} 0.01",
        "rgba": "0.02 0.6 0.4 0.6",
    }
    ET.SubElement(world, "site", {"name": "goal", **disc})
    return ET.tostring(tree, encoding="unicode")


def wall_centres() -> list[tuple[float, float]]:
    """Return the centres of the maze's blocks, (x, y) in metres."""
    cells = {(i, j): mark for i, row in enumerate(MAZE) for j, mark in enumerate(row)}
    start = next(cell for cell, mark in cells.items() if mark == "S")
    return [
        ((j - start[1]) * CELL, (i - start[0]) * CELL)
        for (i, j), mark in cells.items()
        if mark == "#"
    ]


def _one(tree: ET.Element, path: str) -> ET.Element:
    element = tree.find(path)
    assert element is not None, f"Gymnasium's ant.xml has no {path}"
    return element


class MazeAnt(MujocoEnv):
    """D4RL's ant in its maze, without a task: 29 positions and velocities, 8 torques in [-1, 1]."""

    metadata = {  # noqa: RUF012 (Gymnasium's)
        "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"],
        "render_fps": 10,
    }

    def __init__(self, render_mode: str | None, width: int, height: int) -> None:
        space = spaces.Box(-np.inf, np.inf, (29,), np.float64)
        camera: Any = CAMERA
        super().__init__(
            "ant.xml", FRAMES, space, render_mode, width, height, default_camera_config=camera
        )
        self._goal = self.model.site("goal").id
        self._simulation = Simulation(self, forces=False)
        self._state: tuple[Array, Array] = self.data.qpos, self.data.qvel  # views

    def _initialize_simulation(self) -> tuple[Any, Any]:
        model = mujoco.MjModel.from_xml_string(ant_in_maze())
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, self.width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, self.height)
        return model, mujoco.MjData(model)

    def reset_model(self) -> Array:
        """Set D4RL's first state: noise on every position and every speed."""
        noise = self.np_random.uniform(-RESET_NOISE, RESET_NOISE, self.model.nq)
        speed = RESET_NOISE * self.np_random.standard_normal(self.model.nv)
        self.set_state(self.init_qpos + noise, self.init_qvel + speed)
        return self.observed()

    def observed(self) -> Array:
        """Return all positions and velocities."""
        return np.concatenate(self._state)

    def act(self, action: Array) -> Array:
        """Act for 0.1 s."""
        self._simulation.run(action)
        self._simulation.show()
        return self.observed()

    def show_goal(self, place: Array) -> None:
        """Move the disc that marks the goal."""
        self.model.site_pos[self._goal, :2] = place


class AntUmaze(RobotEnv):
    """Observation the ant's 29 numbers, x and y first; context the goal; outcome (x, y).

    Reward exp(-5 D) within D = 0.5 m of the goal. Episodes end by time only, also on the ant's
    back.
    """

    def __init__(
        self,
        horizon: int = HORIZON,
        render_mode: str | None = None,
        width: int = 480,
        height: int = 480,
    ) -> None:
        self.ant = MazeAnt(render_mode, **picture_size(width, height))
        places = spaces.Box(LOW, HIGH, (2,), np.float64)
        # 1/Δ contexts at Δ, 2Δ, …, 1 of the path: all published κ are k / (1/Δ - 1)
        own = Curriculum.along(PATH, DELTA, R, start="delta")
        super().__init__(self.ant, horizon, places, own, own.changed(start=0.0))

    def _begin(self, seed: int | None, start: Any) -> tuple[Array, dict[str, Any]]:
        self.ant.show_goal(self.context)
        observation, _ = self.ant.reset(seed=seed)
        return observation, {"outcome": observation[:2].copy()}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Act for 0.1 s."""
        observation = self.ant.act(action)
        place = observation[:2].copy()
        reward = reward_at(place, self.context)
        return self._observed(observation), reward, False, self._over(), {"outcome": place}

    def context_reward(self, outcome: Array, context: Array) -> Array:
        """Return exp(-5 D) within 0.5 m of the goal, else 0."""
        return goal_reward(outcome, context)

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw the maze from above, with the path, the goal and the places of episodes."""
        UMAZE.draw(axes, context, outcomes)
