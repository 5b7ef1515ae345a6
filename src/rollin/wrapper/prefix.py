"""The roll-in itself: with probability β a guide acts until it stops, P(h) = (1-γ) γ^(h-1), h ≥ 1.

Lines 20 and 21 of the detailed pseudocode: act, then stop with probability 1 - γ.
"""

import warnings
from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np

from rollin.curriculum.teacher import Plan
from rollin.envs.box_env import checked_step
from rollin.errors import RollinError, foreign
from rollin.streams import Streams, pack_generator, unpack_generator
from rollin.wrapper.episode import PrefixStep
from rollin.wrapper.fits import Env, Guide, check_guide, fitted
from rollin.wrapper.showing import Show, showing

CUT_WARNING, CUT_LEAST = 0.2, 50  # share of roll-ins that end their episode; roll-ins before


class Prefix:
    """Guides by version, the stream that roll-ins are drawn from, and how many steps they took.

    own: serves all plans whose guide was not loaded; kept: hidden steps for `take`, None if nobody
    wants them.
    """

    def __init__(self, env: Env, own: Guide | None, show: Show | bool, seed: int) -> None:
        self._env = env
        self._own = None if own is None else check_guide(own, env)
        self._guides: dict[int, Guide] = {}
        self._show = showing(env, show)
        self.kept: list[PrefixStep] | None = None
        self._hidden = self._cut = self._rolled = self._cuts = 0
        self._warned = False
        self.draw_as(seed, 0)

    def draw_as(self, seed: int, env: int) -> None:
        """Draw from the stream of this seed and env from here on."""
        self._home = seed, env
        self._stream = Streams(seed)[f"rollin.{env}"]

    def begin_again(self, reset_seed: int) -> None:
        """Draw from a stream of the same seed and env, and of the seed that a reset is given.

        Gymnasium wants episodes that repeat with the seed of their reset.
        """
        seed, env = self._home
        self._stream = Streams(seed)[f"rollin.{env}.{reset_seed}"]

    def load(self, version: int, guide: Guide, planned: Container[int] = ()) -> None:
        """Keep a guide under its version, of the others the one before and those of plans."""
        check_guide(guide, self._env)
        kept = {v: g for v, g in self._guides.items() if version - 1 <= v or v in planned}
        self._guides = {**kept, version: guide}

    def take(self) -> list[PrefixStep]:
        """The hidden steps since the last call, if they are kept."""
        taken, self.kept = self.kept or [], [] if self.kept is not None else None
        return taken

    # ------------------------------------------------------------------ playing

    def is_due(self, plan: Plan) -> bool:
        """Whether this episode rolls in; nothing is drawn where none can."""
        if plan.beta == 0 or plan.guide == 0 or plan.length == 0:
            return False
        if self._own is None and plan.guide not in self._guides:
            raise RollinError(
                f"Ticket {plan.ticket} rolls in with guide {plan.guide}, which was not loaded: "
                "give RollIn a guide, let rollin.sb3.RollInCallback or school.freeze load it, or "
                "use beta=0."
            )
        return self._stream.random() < plan.beta

    def steps(self, plan: Plan, observation: Any) -> Iterator[tuple[PrefixStep, dict[str, Any]]]:
        """Act with the plan's guide from an observation on, until it stops or the episode ends."""
        guide = self._guides.get(plan.guide, self._own)
        assert guide is not None
        if hasattr(guide, "begin"):
            guide.begin(int(self._stream.integers(2**31)))  # pyright: ignore[reportFunctionMemberAccess]
        stopped, over, steps = False, False, 0
        while not (stopped or over):
            action = self._action(guide, observation, plan.guide_context)
            steps += 1
            if plan.length is None:
                stopped = self._stream.random() < plan.stop
            else:
                stopped = steps >= plan.length
            after, reward, *ends, info = checked_step(self._env.step(action), self._env)
            step = PrefixStep(observation, action, reward, after, *ends)
            if self.kept is not None:
                self.kept.append(step)
            observation, over = after, any(ends)
            yield step, info

    def _action(self, guide: Guide, observation: Any, context: Any) -> Any:
        seen = observation if context is None else self._show(observation, context)
        try:
            action = guide(seen, context)
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

    def count(self, steps: int, *, cut: bool) -> None:
        """Count a roll-in; cut: it has ended its episode."""
        self._rolled += 1
        if not cut:
            self._hidden += steps
            return
        self._cuts += 1
        self._cut += steps
        often = self._cuts > CUT_WARNING * self._rolled
        if often and self._rolled >= CUT_LEAST and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._cuts} of {self._rolled} roll-ins ended their episode before they "
                "stopped. Shorten them by a smaller gamma of RollIn, rollin.attach or "
                "RollInCallback, and keep the learner's own discount; or give a longer time limit.",
                stacklevel=4,
            )

    def counts(self) -> dict[str, int]:
        """Hidden steps so far: of roll-ins, and of those that ended their episode."""
        return {"hidden": self._hidden, "cut": self._cut}

    def get_state(self) -> dict[str, Any]:
        """Stream and counts, as JSON-able values."""
        stream = [int(word) for word in pack_generator(self._stream)]
        return {"stream": stream, "counts": [self._hidden, self._cut, self._rolled, self._cuts]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        unpack_generator(self._stream, np.array(state["stream"], np.uint64))
        counts = [int(count) for count in state["counts"]]
        self._hidden, self._cut, self._rolled, self._cuts = counts
