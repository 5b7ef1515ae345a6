"""A step of Gymnasium's v5 robots: the same numbers to the bit, for a fraction of the work.

Gymnasium's own step looks up every array of the simulator anew, asks twice whether the robot is
healthy, and sums contact forces that our tasks give no weight (docs/performance.md has the times).
Here the arrays are looked up once; they are views, and follow the simulator. What the model fixes,
such as masses and the time of a step, is read when the robot is made.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gymnasium.envs.mujoco import MujocoEnv

Array = NDArray[Any]

FASTEST = np.array(10.0)  # to which the walker's and the hopper's observed velocities are clipped
SLOWEST = -FASTEST  # arrays both: a step compares them with velocities faster than plain numbers
TORSO = 1  # number of the ant's body
FREE = 6  # velocities of a free joint, which has no motor


class Simulation:
    """A robot's motors and its simulator; forces: whether those of contacts are worked out, too."""

    def __init__(self, robot: "MujocoEnv", *, forces: bool) -> None:
        # an extra, imported where a robot is made; its compiled part has no type stubs
        self._mujoco: Any = import_module("mujoco")
        self._robot, self._model, self._data = robot, robot.model, robot.data
        self._ctrl: Array = robot.data.ctrl
        self._frames, self._forces = robot.frame_skip, forces

    def run(self, action: Array) -> None:
        """Act for the time of a step."""
        if np.shape(action) != self._ctrl.shape:  # one number alone would go to all motors
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
        self._forces: tuple[Array, ...] = ()  # as they are observed: all but the world's own
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
        """Act; returns the observation, whether the robot is still healthy, and the info."""

    def _paid(self, velocity: float, driven: Array) -> dict[str, float]:
        """The forward reward and the control cost, in the precision of the action."""
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
        self._bounds = options.get("healthy_state_range")  # the hopper's alone

    def step(self, action: Array) -> tuple[Array, bool, dict[str, Any]]:
        """Act; the velocity is that of the torso's joint."""
        before = self._qpos.item(0)
        self._simulation.run(action)
        x, z, angle = self._qpos[:3].tolist()
        velocity = (x - before) / self._dt
        seen = np.concatenate(self._parts)
        healthy = (
            self._low_z < z < self._high_z
            and self._low_angle < angle < self._high_angle
            and self._bounded(seen[1:])  # all but x and z
        )
        speeds = seen[self._joints :]
        np.minimum(np.maximum(speeds, SLOWEST, out=speeds), FASTEST, out=speeds)
        info = {
            "x_position": x,
            "z_distance_from_origin": z - self._first_z,
            "x_velocity": velocity,
            **self._paid(velocity, action),
        }
        self._simulation.show()
        return seen, healthy, info

    def _bounded(self, state: Array) -> bool:
        if self._bounds is None:
            return True
        low, high = self._bounds
        # no square is larger than the sum of all, which is found in a fifth of the time
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
        seen = state[2:]  # all but x and y
        if self._forces:
            seen = np.concatenate((seen, np.clip(*self._forces, *self._range)))
        info = _moved(before, self._place.tolist(), self._dt, self._ground)
        info |= self._paid(info["x_velocity"], action)
        self._simulation.show()
        return seen, healthy, info


class Humanoid(Motion):
    """The humanoid: velocities are those of its centre of mass."""

    def __init__(self, robot: "MujocoEnv", options: Mapping[str, Any]) -> None:
        super().__init__(robot, options)
        data: Any = robot.data
        self._masses: Array = robot.model.body_mass.copy()
        self._mass = float(self._masses.sum())
        self._centres: Array = data.xipos
        self._seen_centres, self._centre = b"", (0.0, 0.0)
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
        seen = np.concatenate(self._parts)
        info = _moved(before, self._centre_of_mass(), self._dt, self._ground)
        length, speed = self._tendons
        info |= {"tendon_length": length.copy(), "tendon_velocity": speed.copy()}
        info |= self._paid(info["x_velocity"], self._ctrl)
        self._simulation.show()
        return seen, self._low_z < self._qpos.item(2) < self._high_z, info

    def _centre_of_mass(self) -> tuple[float, float]:
        """Its x and y: before a step mostly those after the last one, which are kept."""
        centres = self._centres.tobytes()
        if centres != self._seen_centres:
            moment = np.einsum("b,bj->j", self._masses, self._centres)
            self._centre = moment.item(0) / self._mass, moment.item(1) / self._mass
            self._seen_centres = centres
        return self._centre


def _moved(
    before: Sequence[float], after: Sequence[float], dt: float, place: Array
) -> dict[str, Any]:
    """Where a robot that can go anywhere is, and how fast it went there."""
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
    """Whether all numbers are finite: surely if the sum of their squares is, the fast way."""
    return math.isfinite(state.dot(state)) or bool(np.isfinite(state).all())
