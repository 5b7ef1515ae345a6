"""The base of the MuJoCo tasks: spaces, time limit, pictures, and a fast step of the robots.

The step is that of Gymnasium's v5 robots, bit for bit, for a fraction of the work. Gymnasium's own
step looks up every array of the simulator each time, computes twice whether the robot is healthy,
and sums contact forces that have no weight here (times: benchmarks/README.md). `Motion` looks the
arrays up once, as views that follow the simulator. Constants of the model, such as masses and the
time of a step, are read when the robot is made.

Without a display Gymnasium would try a window first, and fail with noise; so `choose_renderer`
looks for one of MuJoCo's other renderers.
"""

import math
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.checks import at_least
from rollin.curriculum.contexts import Curriculum
from rollin.envs.contextual import TaskEnv

if TYPE_CHECKING:
    from gymnasium.envs.mujoco import MujocoEnv

Array = NDArray[Any]

SHADOWS = 1024  # pixels of MuJoCo's map; with 4096, its default, a picture takes 1.5 times as long

RENDERER = "MUJOCO_GL"  # the variable of the environment that sets MuJoCo's renderer
BACKENDS = {  # renderers, and the Debian packages that they need
    "egl": "libegl1 libgl1-mesa-dri",
    "osmesa": "libosmesa6",
}
SECONDS = 60.0  # after which a renderer counts as hanging
PROBE = "from mujoco.{0} import GLContext; c = GLContext(16, 16); c.make_current(); c.free()"


class RobotEnv(TaskEnv):
    """A robot with a context beside its observation."""

    def __init__(
        self,
        robot: "MujocoEnv",
        horizon: int,
        context_space: spaces.Box,
        curriculum: Curriculum,
        printed: Curriculum,
    ) -> None:
        observations: Any = robot.observation_space
        super().__init__(observations, robot.action_space, context_space, curriculum, horizon)
        self.robot = robot
        robot.model.vis.quality.shadowsize = SHADOWS
        self.render_mode = robot.render_mode
        self.metadata = robot.metadata
        self.printed = printed

    def render(self) -> Any:
        """Return the robot's picture, or draw its window, with a floor without end."""
        places = self.robot.data.geom_xpos
        floors = planes(self.robot)
        original = places[floors]
        places[floors, :2] = tiles_below(self.robot.data.xpos[1, :2], self.robot, floors)
        try:
            return self.robot.render()
        finally:
            places[floors] = original

    def close(self) -> None:
        """Close the robot's window and renderer."""
        self.robot.close()


def planes(robot: "MujocoEnv") -> Array:
    """Return the geoms that collide as infinite planes, and are drawn some 40 metres wide."""
    return np.flatnonzero(robot.model.geom_type == 0)  # mjtGeom.mjGEOM_PLANE


def tiles_below(place: Array, robot: "MujocoEnv", floors: Array) -> Array:
    """Return where to draw planes below the robot, with their squares at the same places."""
    model = robot.model
    squares = 2 * model.geom_size[floors, :2] / model.mat_texrepeat[model.geom_matid[floors]]
    return np.round(place / squares) * squares


def picture_size(width: int, height: int) -> dict[str, int]:
    """Return the size of a robot's pictures in pixels; raise if it is not positive."""
    return {"width": at_least(1, "width", width), "height": at_least(1, "height", height)}


def choose_renderer() -> str:
    """Set MUJOCO_GL to EGL, else to OSMesa, unless it is set or the system is not Linux.

    Returns what to do if drawing fails: a display, or another renderer, may still work.
    """
    if os.environ.get(RENDERER) or sys.platform != "linux":
        return ""
    for name in BACKENDS:
        if can_draw(name):
            os.environ[RENDERER] = name
            return ""
    egl, osmesa = BACKENDS.values()
    return (
        " MuJoCo can draw here neither by EGL nor by OSMesa: install one of them, on Debian and "
        f"Ubuntu with apt install {egl}, or apt install {osmesa}."
    )


def can_draw(backend: str) -> bool:
    """Return whether a renderer works, by a subprocess, because a failed one stays loaded."""
    environment = {**os.environ, RENDERER: backend}
    command = [sys.executable, "-c", PROBE.format(backend)]
    try:
        asked = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


# ------------------------------------------------------------------ a step

FASTEST = np.array(10.0)  # to which the walker's and the hopper's observed velocities are clipped
SLOWEST = -FASTEST  # both arrays: comparing them with velocities is faster than with numbers
TORSO = 1  # number of the ant's body
FREE = 6  # velocities of a free joint, which has no motor


class Simulation:
    """A robot's motors and its simulator; forces: whether to compute those of contacts."""

    def __init__(self, robot: "MujocoEnv", *, forces: bool) -> None:
        # an extra, imported where a robot is made; its compiled part has no type stubs
        self._mujoco: Any = import_module("mujoco")
        self._robot = robot
        self._model = robot.model
        self._data = robot.data
        self._ctrl: Array = robot.data.ctrl
        self._frames = robot.frame_skip
        self._forces = forces

    def run(self, action: Array) -> None:
        """Act for the time of a step."""
        if np.shape(action) != self._ctrl.shape:  # one number would go to all motors
            raise ValueError(f"an action has shape {self._ctrl.shape}, got {np.shape(action)}")
        self._ctrl[:] = action
        self._mujoco.mj_step(self._model, self._data, nstep=self._frames)
        if self._forces:
            self._mujoco.mj_rnePostConstraint(self._model, self._data)

    def show(self) -> None:
        """Draw the window, if there is one."""
        if self._robot.render_mode == "human":
            self._robot.render()


class Motion(ABC):
    """Steps of a robot; options: its weights and healthy ranges, named as Gymnasium names them."""

    def __init__(self, robot: "MujocoEnv", options: Mapping[str, Any]) -> None:
        data: Any = robot.data
        forces = bool(options.get("include_cfrc_ext_in_observation"))
        self._simulation = Simulation(robot, forces=forces)
        self._forces: tuple[Array, ...] = ()  # those observed: all but the world's own
        if forces:
            self._forces = (data.cfrc_ext[1:].reshape(-1),)
        self._qpos: Array = data.qpos
        self._qvel: Array = data.qvel
        self._ground = self._qpos[:2]  # x and y of what can go anywhere
        self._dt = float(robot.dt)
        self._forward = options["forward_reward_weight"]
        self._control = options["ctrl_cost_weight"]
        self._low_z, self._high_z = options["healthy_z_range"]

    @abstractmethod
    def step(self, action: Array) -> tuple[Array, bool, dict[str, Any]]:
        """Act; return the observation, whether the robot is still healthy, and the info."""

    def _paid(self, velocity: float, driven: Array) -> dict[str, float]:
        """Return the forward reward and the control cost, in the precision of the action."""
        cost = self._control * np.add.reduce(np.square(driven))
        return {"reward_forward": self._forward * velocity, "reward_ctrl": -float(cost)}


class Planar(Motion):
    """The walker and the hopper, which cannot leave a plane: x, z, angle, then their joints."""

    def __init__(self, robot: "MujocoEnv", options: Mapping[str, Any]) -> None:
        super().__init__(robot, options)
        self._parts = (self._qpos[1:], self._qvel)  # all but x
        self._joints = len(self._qpos) - 1
        self._first_z = float(robot.init_qpos[1])
        self._low_angle, self._high_angle = options["healthy_angle_range"]
        self._bounds = options.get("healthy_state_range")  # of the hopper only

    def step(self, action: Array) -> tuple[Array, bool, dict[str, Any]]:
        """Act; the velocity is that of the torso's joint."""
        before = self._qpos.item(0)
        self._simulation.run(action)
        x, z, angle = self._qpos[:3].tolist()
        velocity = (x - before) / self._dt
        observation = np.concatenate(self._parts)
        healthy = (
            self._low_z < z < self._high_z
            and self._low_angle < angle < self._high_angle
            and self._bounded(observation[1:])  # all but x and z
        )
        speeds = observation[self._joints :]
        np.minimum(np.maximum(speeds, SLOWEST, out=speeds), FASTEST, out=speeds)
        info = {
            "x_position": x,
            "z_distance_from_origin": z - self._first_z,
            "x_velocity": velocity,
            **self._paid(velocity, action),
        }
        self._simulation.show()
        return observation, healthy, info

    def _bounded(self, state: Array) -> bool:
        if self._bounds is None:
            return True
        low, high = self._bounds
        # no square is larger than their sum, which takes a fifth of the time
        if low < 0 < high and state.dot(state) < min(low * low, high * high):
            return True
        return bool((low < state).all() and (state < high).all())


class Ant(Motion):
    """The ant: velocities are those of its torso."""

    def __init__(self, robot: "MujocoEnv", options: Mapping[str, Any]) -> None:
        super().__init__(robot, options)
        data: Any = robot.data
        self._place: Array = data.xpos[TORSO, :2]
        self._state = (self._qpos, self._qvel)
        self._range = options["contact_force_range"]

    def step(self, action: Array) -> tuple[Array, bool, dict[str, Any]]:
        """Act; healthy while its numbers are finite and its height is right."""
        before = self._place.tolist()
        self._simulation.run(action)
        state = np.concatenate(self._state)
        healthy = self._low_z <= state.item(2) <= self._high_z and _finite(state)
        observation = state[2:]  # all but x and y
        if self._forces:
            observation = np.concatenate((observation, np.clip(*self._forces, *self._range)))
        info = _moved(before, self._place.tolist(), self._dt, self._ground)
        info |= self._paid(info["x_velocity"], action)
        self._simulation.show()
        return observation, healthy, info


class Humanoid(Motion):
    """The humanoid: velocities are those of its centre of mass."""

    def __init__(self, robot: "MujocoEnv", options: Mapping[str, Any]) -> None:
        super().__init__(robot, options)
        data: Any = robot.data
        self._masses: Array = robot.model.body_mass.copy()
        self._mass = float(self._masses.sum())
        self._centres: Array = data.xipos
        self._cached_centres = b""
        self._centre = (0.0, 0.0)
        # all but x, y, the world's own body and the motors that a free joint does not have
        self._parts = (
            self._qpos[2:],
            self._qvel,
            data.cinert[1:].reshape(-1),
            data.cvel[1:].reshape(-1),
            data.qfrc_actuator[FREE:],
            *self._forces,
        )
        self._ctrl: Array = data.ctrl
        self._tendons: tuple[Array, Array] = data.ten_length, data.ten_velocity

    def step(self, action: Array) -> tuple[Array, bool, dict[str, Any]]:
        """Act; healthy while its height is right."""
        before = self._centre_of_mass()
        self._simulation.run(action)
        observation = np.concatenate(self._parts)
        info = _moved(before, self._centre_of_mass(), self._dt, self._ground)
        length, speed = self._tendons
        info |= {"tendon_length": length.copy(), "tendon_velocity": speed.copy()}
        info |= self._paid(info["x_velocity"], self._ctrl)
        self._simulation.show()
        return observation, self._low_z < self._qpos.item(2) < self._high_z, info

    def _centre_of_mass(self) -> tuple[float, float]:
        """Return x and y: before a step mostly those after the last one, which are cached."""
        centres = self._centres.tobytes()
        if centres != self._cached_centres:
            moment = np.einsum("b,bj->j", self._masses, self._centres)
            self._centre = moment.item(0) / self._mass, moment.item(1) / self._mass
            self._cached_centres = centres
        return self._centre


def _moved(
    before: Sequence[float], after: Sequence[float], dt: float, place: Array
) -> dict[str, Any]:
    """Return position and velocity of a robot that moves in the plane."""
    x, y = place.tolist()
    return {
        "x_position": x,
        "y_position": y,
        "distance_from_origin": math.sqrt(place.dot(place)),
        "x_velocity": (after[0] - before[0]) / dt,
        "y_velocity": (after[1] - before[1]) / dt,
        "reward_contact": -0.0,  # contacts cost nothing in v4
    }


def _finite(state: Array) -> bool:
    """Return whether all numbers are finite, mostly by the sum of squares, which is faster."""
    return math.isfinite(state.dot(state)) or bool(np.isfinite(state).all())
