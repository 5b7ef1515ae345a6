"""The roll-in that the wrapper plays: its guides, their actions, its random stream, its counts.

The guide receives an observation that shows ω_{k-1}, the context that it has mastered.
"""

import warnings
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.agents.plan_source import Place
from rollin.curriculum.teacher import EpisodeRollIn, Plan
from rollin.envs.box_env import Env, checked_step
from rollin.errors import RollinError, foreign, format_exception
from rollin.streams import Streams, pack_generator, unpack_generator

Show = Callable[[Any, Any], Any]
"""From an observation and a context to the observation that shows it."""
ENTRIES = ("context", "desired_goal")  # of a Dict of observations


def injection(env: Env, show: Show | bool) -> Show:
    """Return the function that puts the guide's context into an observation of an env."""
    if callable(show):
        return show
    if show is False:
        return lambda observation, context: observation
    parts, key = _entry(env)
    if key is None:
        return _no_place(env)
    if parts is env.observation_space:
        return lambda observation, context: _replaced(observation, key, context)
    return lambda observation, context: spaces.flatten(
        parts, _replaced(spaces.unflatten(parts, observation), key, context)
    )


def place_of(env: Env, show: Show | bool) -> Place:
    """Return the shape of the guide's context in observations, or whether a function shows it."""
    if show is not True:
        return True
    parts, key = _entry(env)
    return False if key is None else parts[key].shape or ()


def _entry(env: Env) -> tuple[Any, str | None]:
    """The Dict of observations, flattened outermost inside RollIn or not, and its context."""
    flattened = isinstance(env, gymnasium.wrappers.FlattenObservation)
    for space in (env.observation_space, env.env.observation_space if flattened else None):
        if isinstance(space, spaces.Dict):
            for key in ENTRIES:
                if key in space.spaces:
                    return space, key
    return env.observation_space, None


def _no_place(env: Env) -> Show:
    def show(observation: Any, context: Any) -> Any:
        raise RollinError(
            f"The guide must be shown the context before, and observations in "
            f"{env.observation_space} have no place for it: use a Dict with the entry context, "
            "say show=function(observation, context), or show=False if the policy sees no context."
        )

    return show


def _replaced(observation: Mapping[str, Any], key: str, context: Any) -> dict[str, Any]:
    before = np.asarray(observation[key])
    try:
        return {**observation, key: np.asarray(context, before.dtype).reshape(before.shape)}
    except (TypeError, ValueError) as error:
        raise RollinError(
            f"The guide's context {context!r} does not fit the entry {key} of shape "
            f"{before.shape}: {format_exception(error)}."
        ) from error


# ------------------------------------------------------------------ roll-in

Guide = Callable[[Any, Any], Any]
"""From an observation that shows the guide's context, and that context, to an action.

A guide that draws may have a method `begin(seed)`, called before every roll-in with a whole number
from the wrapper's own stream.
"""
WARN_SHARE = 0.2  # of roll-ins that end their episode
WARN_AFTER = 50  # roll-ins


@dataclass(frozen=True)
class PrefixStep:
    """A step of a roll-in, for learners that replay it: raw observations of the env."""

    observation: Any
    action: Any
    reward: float
    after: Any
    terminated: bool
    truncated: bool


class RollInPlayer:
    """Lets guides act in an env.

    own: serves all plans whose guide was not loaded; kept: steps for `take`, None if they are not
    wanted.
    """

    def __init__(self, env: Env, own: Guide | None, show: Show | bool, seed: int) -> None:
        self._env = env
        self._own = None if own is None else check_guide(own, env)
        self._guides: dict[int, Guide] = {}  # by version
        self._show = injection(env, show)
        self.kept: list[PrefixStep] | None = None
        self._steps = self._failed_steps = self._rolled = self._failed = 0
        self._warned = False
        self.use_stream(seed, 0)

    def use_stream(self, seed: int, env: int) -> None:
        """Draw from the stream of this seed and env from here on."""
        self._stream_key = seed, env
        self._stream = Streams(seed)[f"rollin.{env}"]

    def reseed(self, reset_seed: int) -> None:
        """Restart the stream with the seed of a reset, because Gymnasium's resets repeat."""
        seed, env = self._stream_key
        self._stream = Streams(seed)[f"rollin.{env}.{reset_seed}"]

    def load(self, version: int, guide: Guide, planned: Container[int] = ()) -> None:
        """Keep a guide under its version, of the others the one before and those of plans."""
        check_guide(guide, self._env)
        guides = {v: g for v, g in self._guides.items() if version - 1 <= v or v in planned}
        self._guides = {**guides, version: guide}

    def take(self) -> list[PrefixStep]:
        """Return the steps since the last call, if they are kept."""
        taken = self.kept or []
        if self.kept is not None:
            self.kept = []
        return taken

    # ------------------------------------------------------------------ playing

    def play(self, plan: Plan, observation: Any) -> Iterator[tuple[PrefixStep, dict[str, Any]]]:
        """Act with the plan's guide until it stops or the episode ends; yield steps and infos.

        Nothing is drawn or played where there can be no roll-in.
        """
        if plan.beta == 0 or plan.guide == 0 or plan.length == 0:
            return
        guide = self._guides.get(plan.guide, self._own)
        if guide is None:
            raise RollinError(
                f"Plan {plan.plan_id} rolls in with guide {plan.guide}, which was not loaded: "
                "give RollIn a guide, let rollin.sb3.RollInCallback or coordinator.freeze load it, "
                "or use beta=0."
            )
        roll_in = EpisodeRollIn(plan, plan.stop, self._stream.random)
        if not roll_in.rolled_in:
            return
        if hasattr(guide, "begin"):
            guide.begin(int(self._stream.integers(2**31)))  # pyright: ignore[reportFunctionMemberAccess]
        over = False
        while roll_in.actor == "rollin" and not over:
            action = self._action(guide, observation, plan.guide_context)
            roll_in.advance()
            after, reward, *ends, info = checked_step(self._env.step(action), self._env)
            step = PrefixStep(observation, action, reward, after, *ends)
            if self.kept is not None:
                self.kept.append(step)
            observation = after
            over = any(ends)
            yield step, info
        self._count(roll_in.steps, failed=over)

    def _action(self, guide: Guide, observation: Any, context: Any) -> Any:
        injected = observation if context is None else self._show(observation, context)
        try:
            action = guide(injected, context)
        except (RollinError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a guide's own code may raise anything
            raise foreign(
                "The guide raised",
                error,
                f" for an observation of {self._env.observation_space}: guide and env must have "
                "the same spaces.",
            ) from error
        return fitted(action, self._env.action_space)

    # ------------------------------------------------------------------ counting

    def _count(self, steps: int, *, failed: bool) -> None:
        """Count a roll-in; failed: it has ended its episode."""
        self._rolled += 1
        if not failed:
            self._steps += steps
            return
        self._failed += 1
        self._failed_steps += steps
        often = self._failed > WARN_SHARE * self._rolled
        if often and self._rolled >= WARN_AFTER and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._failed} of {self._rolled} roll-ins ended their episode before they "
                "stopped. Shorten them by a smaller gamma of RollIn, rollin.attach or "
                "RollInCallback, and keep the learner's own discount; or give a longer time limit.",
                stacklevel=5,
            )

    def counts(self) -> dict[str, int]:
        """Return the steps so far: of roll-ins, and of those that ended their episode."""
        return {"rollin_steps": self._steps, "failed_rollin_steps": self._failed_steps}

    def get_state(self) -> dict[str, Any]:
        """Return stream and counts, as JSON-able values."""
        stream = [int(word) for word in pack_generator(self._stream)]
        counts = [self._steps, self._failed_steps, self._rolled, self._failed]
        return {"stream": stream, "counts": counts}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        unpack_generator(self._stream, np.array(state["stream"], np.uint64))
        counts = [int(count) for count in state["counts"]]
        self._steps, self._failed_steps, self._rolled, self._failed = counts


# ------------------------------------------------------------------ guides and actions


def check_guide(guide: Any, env: Env) -> Any:
    """Return a guide; raise if it can be seen that it cannot act in the env."""
    if not callable(guide):
        raise RollinError(
            f"A guide must be a function of (observation, context) that gives an action, got "
            f"{type(guide).__name__}: for a rollin.Policy give its method act."
        )
    for name in ("observation_space", "action_space"):
        of_guide = getattr(guide, name, None)
        of_env = getattr(env, name)
        if of_guide is not None and of_guide != of_env:
            raise RollinError(
                f"The guide's {name} is {of_guide}, the env's is {of_env}: take a guide that was "
                "trained on the same env, inside the same wrappers."
            )
    return guide


def fitted(action: Any, space: spaces.Space[Any]) -> Any:
    """Return an action as the space has it: clipped, or as a whole number."""
    if space.contains(action):
        return action
    try:
        array = np.asarray(action)
        if isinstance(space, spaces.Box) and array.shape == space.shape:
            return _clipped(array, space)
        if isinstance(space, spaces.Discrete) and space.contains(int(array)) and _whole(array):
            return np.int64(array)
    except (OverflowError, TypeError, ValueError):
        pass
    shape = getattr(action, "shape", "")
    raise RollinError(
        f"The guide gave an action that is none of {space}: {type(action).__name__} "
        f"{shape or repr(action)}; guide and env must have the same spaces."
    )


def _clipped(action: NDArray[Any], space: spaces.Box) -> NDArray[Any]:
    """Return an action inside a box; raise if it has no place in it, nor one beside it."""
    if not np.isfinite(action).all():
        raise RollinError(
            f"The guide gave an action that is not finite, {action.tolist()}: freeze it from an "
            "actor whose parameters are finite."
        )
    if np.issubdtype(space.dtype, np.integer) and not _whole(action):
        raise RollinError(
            f"The guide gave the action {action.tolist()}, and those of {space} are whole "
            "numbers: round it in the guide."
        )
    return np.clip(action, space.low, space.high).astype(space.dtype)


def _whole(action: NDArray[Any]) -> bool:
    return bool((np.floor(action) == action).all())
