"""walker, hopper, humanoid, ant: run at the velocity that the context asks for.

The paper's four non-goal tasks. Dynamics and rewards are those of Gym's v3 and v4; only the reward
for being healthy depends on the context: `high` while the x-velocity lies in the band
[λ level, λ (level + 0.1)), `low` otherwise. Ten contexts, level = 0.1 … 1.

The paper also writes κ for the level. Its tables have κ = k / 9, and fit best to a threshold one
band below the level, so R(k / 10) at index k (docs/results/paper-numbers.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from rollin.checks import did_you_mean
from rollin.curriculum.contexts import Curriculum, ReturnThreshold
from rollin.envs.robot import Ant, Humanoid, Motion, Planar, RobotEnv, picture_size
from rollin.errors import RollinError

if TYPE_CHECKING:
    from gymnasium.envs.mujoco import MujocoEnv

BAND = 0.1  # width of the band of velocities, and the step from level to level
FIRST = 0.1  # level of the first context
DIGITS = 6  # to which the edges of bands are rounded: what float32 keeps
HORIZON = 1000
SMOOTH = 50  # steps of the running mean in pictures: a gait's velocity swings

Array = NDArray[Any]


@dataclass(frozen=True)
class Robot:
    """A row of the paper's table, and Gymnasium's v5 class with options that make it v4.

    motion: the robot's step; forward: weight of the x-velocity in the reward; lam: λ, metres a
    second at level 1; R(x) = threshold + slope · x; high, low: the healthy reward inside and
    outside the band.
    """

    factory: str
    motion: type[Motion]
    forward: float
    lam: float
    threshold: float
    slope: float
    high: float
    low: float
    options: Mapping[str, Any]

    def make(self, **options: Any) -> "MujocoEnv":
        """Make the robot with Gymnasium's own reward."""
        module, name = self.factory.split(":")
        kind = getattr(import_module(f"gymnasium.envs.mujoco.{module}"), name)
        return kind(**{**self.options, **options})

    @property
    def curriculum(self) -> Curriculum:
        """Return levels 0.1, 0.2, …, 1 with the thresholds R(level - 0.1)."""
        return Curriculum.along(
            lambda level: [round(level, 12)],
            BAND,
            lambda level: self.R(round(level - BAND, 12)),
            start=FIRST,
            threshold_at="position",
        )

    @property
    def printed(self) -> Curriculum:
        """Return the same with κ = level and R(κ), as in the paper's text."""
        return self.curriculum.changed(kappa="position", rule=ReturnThreshold(self.R))

    def R(self, x: float) -> float:
        """Return the table's near-optimal threshold."""
        return self.threshold + self.slope * x


ROBOTS = {
    "walker": Robot(
        factory="walker2d_v5:Walker2dEnv", motion=Planar,
        forward=1.0, lam=5.0, threshold=500, slope=4500, high=1.5, low=0.5,
        options={
            "xml_file": "walker2d.xml",  # v5's default has another friction of one foot
            "ctrl_cost_weight": 1e-3,
            "healthy_z_range": (0.8, 2.0),
            "healthy_angle_range": (-1.0, 1.0),
        },
    ),
    "hopper": Robot(
        factory="hopper_v5:HopperEnv", motion=Planar,
        forward=1.0, lam=3.0, threshold=500, slope=4500, high=1.5, low=0.5,
        options={
            "ctrl_cost_weight": 1e-3,
            "healthy_z_range": (0.7, float("inf")),
            "healthy_angle_range": (-0.2, 0.2),
            "healthy_state_range": (-100.0, 100.0),
        },
    ),
    "humanoid": Robot(
        factory="humanoid_v5:HumanoidEnv", motion=Humanoid,
        forward=1.25, lam=1.0, threshold=2500, slope=2500, high=7.5, low=2.5,
        options={
            "ctrl_cost_weight": 0.1,
            "contact_cost_weight": 0.0,  # which v4 did not have
            "healthy_z_range": (1.0, 2.0),
            "include_cfrc_ext_in_observation": True,
        },
    ),
    "ant": Robot(
        factory="ant_v5:AntEnv", motion=Ant,
        forward=1.0, lam=6.0, threshold=500, slope=4500, high=1.5, low=0.25,
        options={
            "ctrl_cost_weight": 0.5,
            "contact_cost_weight": 0.0,
            "contact_force_range": (-1.0, 1.0),
            "healthy_z_range": (0.2, 1.0),
            "include_cfrc_ext_in_observation": False,
        },
    ),
}  # fmt: skip


class Velocity(RobotEnv):
    """A robot that must run at a velocity: context (level), outcome (x-velocity, control cost).

    Ends where the robot is no longer healthy. That step has a healthy reward, as in v4 and unlike
    v5. contact_forces: whether the ant or the humanoid observes them (default: as in v4); forward:
    weight of the x-velocity in the reward (default: v4's); high, low: healthy reward inside and
    outside the band (default: the paper's).
    """

    measures = ("x_velocity",)

    def __init__(
        self,
        robot: str,
        horizon: int = HORIZON,
        contact_forces: bool | None = None,
        forward: float | None = None,
        high: float | None = None,
        low: float | None = None,
        render_mode: str | None = None,
        width: int = 480,
        height: int = 480,
    ) -> None:
        if robot not in ROBOTS:
            raise RollinError(
                f"robot must be one of {', '.join(ROBOTS)}, got {robot!r}."
                f"{did_you_mean(str(robot), ROBOTS)}"
            )
        self.constants = ROBOTS[robot]
        self.forward = self.constants.forward if forward is None else forward
        self.high = self.constants.high if high is None else high
        self.low = self.constants.low if low is None else low
        options: dict[str, Any] = {"forward_reward_weight": self.forward}
        if contact_forces is not None:
            if robot not in ("ant", "humanoid"):
                raise RollinError(f"contact_forces: only the ant and the humanoid, not {robot}.")
            options["include_cfrc_ext_in_observation"] = contact_forces
        # the camera that follows the robot: a free one would lose it
        camera = {"camera_name": "track", **picture_size(width, height)}
        made = self.constants.make(render_mode=render_mode, **camera, **options)
        self._motion = self.constants.motion(made, {**self.constants.options, **options})
        levels = spaces.Box(0.0, 1.0, (1,), np.float64)
        super().__init__(made, horizon, levels, self.constants.curriculum, self.constants.printed)
        self._set_band()

    def _begin(self, seed: int | None, start: Any) -> tuple[Array, dict[str, Any]]:
        self._set_band()
        observation, info = self.robot.reset(seed=seed)
        return observation, info | {"x_velocity": 0.0, "outcome": np.zeros(2)}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Act; `info` has the x-velocity and the reward's parts."""
        observation, healthy, info = self._motion.step(action)
        velocity = info["x_velocity"]
        cost = -info["reward_ctrl"]
        low, high = self._band
        paid = self.high if low <= velocity < high else self.low
        reward = info["reward_forward"] + paid - cost
        info["reward_survive"] = paid
        info["outcome"] = np.array((velocity, cost))
        return self._observed(observation), reward, not healthy, self._over(), info

    def band(self, context: ArrayLike) -> tuple[Array, Array]:
        """Return the velocities [low, high) of contexts (…, 1), in metres a second.

        Rounded, so that 3 · 0.1 is 0.3 and one band begins where the previous one ends.
        """
        level = np.asarray(context, np.float64)[..., 0]
        lam = self.constants.lam
        return np.round(lam * level, DIGITS), np.round(lam * (level + BAND), DIGITS)

    def context_reward(self, outcome: ArrayLike, context: ArrayLike) -> Array:
        """Return forward reward + healthy reward of the band - control cost."""
        velocity, cost = np.moveaxis(np.asarray(outcome, np.float64), -1, 0)
        forward = self.forward * velocity
        healthy = np.where(self._inside(velocity, context), self.high, self.low)
        return forward + healthy - cost

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Return whether the velocity lies in the band."""
        return self._inside(np.asarray(outcome)[..., 0], context)

    def to_context(self, outcome: Array) -> Array:
        """Return the curriculum's context in whose band the velocity lies, or the nearest one."""
        velocity = np.asarray(outcome)[..., :1]
        steps = np.floor(np.round(velocity / (self.constants.lam * BAND), DIGITS))
        return np.clip(np.round(steps * BAND, 12), FIRST, 1.0)

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw the x-velocity over time and the band of the context."""
        low, high = self.band(context)
        axes.axhspan(low, high, color="#059669", alpha=0.2, lw=0)
        for episode in outcomes:
            velocity = np.asarray(episode)[1:, 0]  # the first outcome is that of the reset
            steps = np.arange(len(velocity)) + 1
            axes.plot(steps, velocity, color="#7c3aed", lw=0.4, alpha=0.35)
            width = min(SMOOTH, max(len(velocity) // 4, 1))
            mean = np.convolve(velocity, np.full(width, 1 / width), "valid")
            axes.plot(steps[: len(mean)] + (width - 1) / 2, mean, color="#7c3aed", lw=1.2)
        longest = max(len(episode) for episode in outcomes) - 1
        axes.set(xlabel="step", ylabel="x-velocity (m/s)", xlim=(0, longest))

    def _set_band(self) -> None:
        """Cache the context's band as plain numbers, which a step compares fastest."""
        low, high = self.band(self.context)
        self._band = float(low), float(high)

    def _inside(self, velocity: Array, context: ArrayLike) -> Array:
        low, high = self.band(context)
        return (velocity >= low) & (velocity < high)


walker = partial(Velocity, "walker")
hopper = partial(Velocity, "hopper")
humanoid = partial(Velocity, "humanoid")
ant = partial(Velocity, "ant")
