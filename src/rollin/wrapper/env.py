"""`RollIn`: a Gymnasium wrapper that plays the roll-in inside `reset`.

Whoever learns on the wrapped environment sees episodes that start from μ_k = β d + (1 - β) ρ, where
d is where the guide, the policy of the context before, is when it stops. Prefix and guide stay
hidden from the learner. Plans come from a teacher in the same process, or by `assign` from a school
in another one (`rollin.school`); ends go back in `info["rollin_end"]`.

The order of wrappers is env → TimeLimit → stacks, flattening → RollIn → Monitor → vector env →
normaliser: what lies inside is stepped by the guide, too, and what lies outside is not.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from rollin.curriculum.teacher import Plan, Teacher
from rollin.envs.box_env import checked_step, require_env
from rollin.envs.offer import Offer, attribute
from rollin.wrapper.episode import Episode, PrefixStep
from rollin.wrapper.fits import Env, Guide, check_order
from rollin.wrapper.orders import Orders
from rollin.wrapper.prefix import Prefix
from rollin.wrapper.showing import Show, place_of


class RollIn(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Any Gymnasium env, with a share β of its episodes begun by a guide.

    teacher: asked once an episode, in the same process; without one, plans come by `assign`, or
    every episode is played with this guide, beta and gamma under the context of `set_context`.
    guide: an action for an observation and a context; one that is given here serves all plans whose
    own guide was not loaded.
    gamma: of roll-ins, which stop with probability 1 - γ after each step; the paper takes the
    agent's discount. A smaller one shortens roll-ins, and the agent keeps its own.
    seed: of the stream that draws roll-ins, the env's own is left alone; give each env another. A
    reset with a seed begins a stream of both seeds, so that it repeats.
    show: how ω_{k-1} gets into the observation that the guide is shown; by default the entry
    `context` or `desired_goal` of a Dict, flattened or not; False for policies that see no context.
    reports: False for evaluation, which neither rolls in nor tells the teacher.

    With β = 0 or without guide nothing is drawn or stepped: the env behaves to the bit as without.

    >>> import gymnasium
    >>> import rollin
    >>> cart = gymnasium.make("CartPole-v1")
    >>> env = rollin.RollIn(cart, guide=lambda seen, _: int(seen[2] > 0), beta=0.5, gamma=0.9)
    >>> observed, info = env.reset(seed=1)
    >>> info["rollin_start"]
    {'ticket': 1, 'serial': 1, 'hidden': 10, 'cut': 0}
    """

    def __init__(
        self,
        env: Env,
        teacher: Teacher | None = None,
        guide: Guide | None = None,
        beta: float = 0.1,
        gamma: float = 0.99,
        *,
        seed: int = 0,
        show: Show | bool = True,
        reports: bool = True,
    ) -> None:
        require_env(env, "RollIn")
        RecordConstructorArgs.__init__(
            self, teacher=teacher, guide=guide, beta=beta, gamma=gamma, seed=seed, show=show,
            reports=reports,
        )  # fmt: skip
        gymnasium.Wrapper.__init__(self, env)
        check_order(env, RollIn)
        guided = guide is not None
        self._offer = Offer.of(env, place_of(env, show))
        self._orders = Orders(self._offer, teacher, beta, gamma, guided=guided, reports=reports)
        self._prefix = Prefix(env, guide, show, seed)
        self._open: Episode | None = None
        self._first_seed: int | None = None
        self._again: int | None = None

    # ------------------------------------------------------------------ what a school says

    def enrol(self, env: int, seed: int, teacher: int = 0, keep_prefix: bool = False) -> None:
        """From now on plans come by `assign`; env: its index, which its random stream is made of.

        teacher: the id of who makes the plans. An episode that another plan has begun does not
        count; if it is still at its first state, the next reset repeats it with the same seed.
        """
        first = self._orders.env is None
        counts = self._orders.enrol(env, teacher)
        if first:
            self._prefix.draw_as(seed, env)
        self._prefix.kept = [] if keep_prefix else None
        if self._open is not None and not counts:
            self._again = None if self._open.length else self._first_seed
            self._open = None

    @property
    def offer(self) -> Offer:
        """What the env offers to teachers."""
        return self._offer

    @property
    def playing(self) -> int:
        """Ticket of the episode that is being played under a school's plan; 0 if none is."""
        enrolled = self._orders.env is not None and self._open is not None
        return self._open.plan.ticket if enrolled and self._open else 0

    @property
    def enrolment(self) -> tuple[int, ...]:
        """The env's index in its school, if any; vector envs set it to call `enrol`."""
        return () if self._orders.env is None else (self._orders.env,)

    @enrolment.setter
    def enrolment(self, given: Sequence[int]) -> None:
        env, seed, teacher, keep_prefix = given
        self.enrol(env, seed, teacher, bool(keep_prefix))

    def assign(self, plan: Plan) -> None:
        """Play this plan from the next reset on; one that stood in stock and is standing goes."""
        self._orders.assign(plan)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Plans in stock; vector envs set it to a plan, or to several, to assign them."""
        return tuple(self._orders.stock)

    @plans.setter
    def plans(self, given: Plan | Sequence[Plan]) -> None:
        for plan in (given,) if isinstance(given, Plan) else given:
            self.assign(plan)

    def load_guide(self, version: int, guide: Guide, planned: Iterable[int] = ()) -> None:
        """Keep a guide under its version, of the others the one before and those of plans.

        planned: versions that plans ask for which are still to be assigned.
        """
        self._prefix.load(version, guide, {*planned, *(plan.guide for plan in self.plans)})

    def set_context(self, context: Any) -> None:
        """Play under this context from the next reset on, where no teacher plans."""
        self._orders.set_context(context)

    def take_prefix(self) -> list[PrefixStep]:
        """The hidden steps since the last call, if they are kept."""
        return self._prefix.take()

    def counts(self) -> dict[str, int]:
        """Hidden steps so far: of roll-ins, and of those that ended their episode."""
        return self._prefix.counts()

    def get_state(self) -> dict[str, Any]:
        """Stream and counts, as JSON-able values; an open episode is not part of it."""
        return self._prefix.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self._prefix.set_state(state)

    @property
    def wrapper_state(self) -> dict[str, Any]:
        """`get_state`; vector envs set it to call `set_state`."""
        return self.get_state()

    @wrapper_state.setter
    def wrapper_state(self, state: Mapping[str, Any]) -> None:
        self.set_state(state)

    # ------------------------------------------------------------------ episodes

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode as the next plan says, with its roll-in."""
        abandoned = self._abandon()
        if seed is not None:
            self._prefix.begin_again(seed)
        seed, self._again = self._again if seed is None else seed, None
        self._first_seed = seed
        plan = self._orders.next(options)
        asked = dict(options or {})
        if plan.context is not None:
            asked["context"] = plan.context
        if plan.start is not None:
            asked["start"] = plan.start
        observation, info = self.env.reset(seed=seed, options=asked or None)
        if plan.context is not None:
            self._offer.check_shown(observation, plan.context)
        episode = Episode(plan, self._orders.serial)
        if self._prefix.is_due(plan):
            observation, info = self._roll_in(episode, observation, info, asked)
        self._open = episode
        info = {**info, "rollin_start": episode.start()}
        return observation, info if abandoned is None else {**info, "rollin_end": abandoned}

    def _roll_in(self, episode: Episode, observation: Any, info: Any, asked: Any) -> Any:
        """Let the guide act; where it leads to, or the start if it has led to the end."""
        steps, over = 0, False
        for step, info in self._prefix.steps(episode.plan, observation):
            steps, over = steps + 1, step.terminated or step.truncated
            observation = step.after
            episode.prefix_return += step.reward
            self._watch(episode, info)
        self._prefix.count(steps, cut=over)
        if over:  # a redraw might never come to an end: this one plays no other
            episode.forget_prefix(steps)
            return self.env.reset(options=asked or None)
        episode.hidden = steps
        return observation, info

    def step(self, action: Any) -> Any:
        """One step of the learner's."""
        found = self.env.step(action)
        episode = self._open
        if episode is None:  # after the end: the env's own affair
            return found
        _, reward, terminated, truncated, info = checked_step(found, self.env)
        self._watch(episode, info)
        episode.count(reward, info)
        if terminated or truncated:
            return *found[:4], {**info, "rollin_end": self._close(terminated, truncated)}
        return found

    def _abandon(self) -> dict[str, Any] | None:
        """Close an episode that a reset from outside cuts off; what to say of it."""
        return None if self._open is None else self._close(abandoned=True)

    def _close(
        self, terminated: bool = False, truncated: bool = False, abandoned: bool = False
    ) -> dict[str, Any]:
        """Tell the teacher, and what `info["rollin_end"]` tells."""
        episode, self._open = self._open, None
        assert episode is not None
        end = episode.end(self._orders.env or 0, (terminated, truncated), abandoned=abandoned)
        self._orders.report(end)
        return end.as_info()

    def _watch(self, episode: Episode, info: Mapping[str, Any]) -> None:
        """Note a success: as `info` says, or as the contextual env judges the outcome."""
        if episode.success:
            return
        if "is_success" in info:
            episode.success = bool(info["is_success"])
        elif "outcome" in info and callable(judge := attribute(self.env, "is_success")):
            context = episode.plan.context
            if context is None:
                context = attribute(self.env, "context")
            episode.success = context is not None and bool(judge(info["outcome"], context))
