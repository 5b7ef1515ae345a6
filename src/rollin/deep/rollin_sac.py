"""ROLLIN in practice: the appendix's detailed pseudocode over two SAC agents, line by line.

The loop yields after every environment step and knows nothing of files or screens; its caller
decides when to stop, what to log and when to write a checkpoint (at the end of an episode). An
episode begins with a seed from the stream `env`, so that a run restored at the end of one resumes
bit for bit. Three ablations change one line each: who rolls in (20), who continues (18), and
whether the roll-in is recorded (27).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import add

import numpy as np

from rollin.checks import shown
from rollin.curriculum.teacher import Actor, EpisodeEnd, EpisodeRollIn, Plan
from rollin.deep.state import DeepState, GoExplore
from rollin.envs.context_env import ContextStep
from rollin.errors import RollinError
from rollin.sac.learner import Float, SACLearner, UpdateInfo
from rollin.sac.relabel import relabel
from rollin.sac.replay import Prefetcher, Replay, Selection


@dataclass(slots=True)
class Episode:
    """A finished episode; `rollin_steps` is 0 without roll-in, `measured` sums over its steps."""

    number: int
    k: int
    rollin: bool = False
    rollin_steps: int = 0
    length: int = 0
    total: float = 0.0
    success: bool = False
    measured: tuple[float, ...] = ()

    def count(
        self, actor: Actor, reward: float, success: bool, measured: tuple[float, ...]
    ) -> None:
        """Count a step; success: whether the episode is one by now."""
        self.length += 1
        self.total += reward
        self.rollin_steps += actor == "rollin"
        self.success = success
        self.measured = tuple(map(add, self.measured, measured))

    def end(
        self, plan: Plan, terminated: bool, truncated: bool, trace: Float | None = None
    ) -> EpisodeEnd:
        """Return what a teacher receives; steps of a roll-in count as the episode's own."""
        return EpisodeEnd(
            plan_id=plan.plan_id,
            serial=1,
            env=0,
            context=plan.context,
            purpose=plan.purpose,
            rolled_in=self.rollin,
            total=self.total,
            length=self.length,
            success=self.success,
            terminated=terminated,
            truncated=truncated,
            trace=trace,
        )


@dataclass(slots=True)
class RollinStep:
    """One environment step: who acted under which context, what was updated, what ended.

    main, exp: the last update of each agent at this step, None without one.
    mastered: why the context is mastered, at the end of the episode that showed it; or why the
    teacher returned to an easier one.
    """

    step: int
    k: int
    actor: Actor
    reward: float
    main: UpdateInfo | None
    exp: UpdateInfo | None
    episode: Episode | None
    mastered: str | None

    @property
    def episode_end(self) -> bool:
        """Whether this was the last step of an episode."""
        return self.episode is not None


def train_rollin(state: DeepState) -> Iterator[RollinStep]:
    """Train step by step without end; break out of the loop to stop.

    state: from `rollin.prepare`. Yields an event for every environment step: step, context k,
    actor, reward, losses, and, at its end, the episode and why its context was mastered.

    >>> import rollin
    >>> state = rollin.prepare("point-umaze", warmup=100, hidden=(8, 8), batch=16)
    >>> for event in rollin.train_rollin(state):
    ...     if event.episode_end:
    ...         break
    >>> event.step, event.k, event.actor, event.episode.length
    (200, 0, 'main', 200)
    >>> state.close()
    """
    if not isinstance(state, DeepState):
        raise RollinError(f"state must be what rollin.prepare(env) returns, got {shown(state)}.")
    env, options = state.env, state.options
    teacher, streams = state.teacher, state.streams
    main, exp = state.main, state.exp
    D, D_exp = state.D, state.D_exp
    stop = options.stop_probability(main.config.gamma)
    then: Actor = "main" if options.explorer == "main" else "exp"
    records_rollin = options.prefix == "replay"
    short = options.updates == "short"
    every, per_step = main.config.update_every, main.config.updates_per_step
    contexts = state.curriculum.contexts.astype(np.float32)
    learn = Updates(state)
    go_explore = GoExplore(options.go_explore, env, streams)
    while True:  # 3: for each environment step, one episode after the other
        plan = teacher.sample()
        k = teacher.context_of(plan.plan_id)
        before = teacher.previous
        omega = np.asarray(plan.context, np.float32)
        previous = omega if plan.guide_context is None else plan.guide_context.astype(np.float32)
        episode = Episode(state.episode + 1, k, measured=(0.0,) * len(env.measures))
        with _location(episode, state.step + 1):
            seed = int(streams["env"].integers(2**31))
            s, outcome = env.reset(plan.context, seed, plan.start)  # 9
        roll_in = EpisodeRollIn(  # 10 – 14
            plan, stop, lambda: streams["rollin"].random(), then=then, recorded=records_rollin
        )
        episode.rollin = roll_in.rolled_in
        first_row = D.total
        go_explore.begin(None if before is None else contexts[before])
        over = False
        while not over:
            step = state.step + 1
            actor = roll_in.actor
            recorded = roll_in.recorded
            if actor == "main":
                agent, context = main, omega  # 24
            elif actor == "exp":
                agent, context = exp, omega  # 18
            else:
                agent, context = state.guide, previous  # 20
                roll_in.advance()  # 21
            learning = recorded and step > options.warmup and step % every == 0
            main_learns = learning and (short or actor == "main")  # 28
            exp_learns = learning and (short or actor == "exp")
            with _location(episode, step):
                if main_learns:
                    learn.begin()
                if step <= options.warmup:
                    a = streams["warmup"].uniform(-1, 1, env.action_size).astype(np.float32)
                else:
                    a = agent.act(np.concatenate((s, context)))
                a = go_explore(a, outcome)
                result = env.step(a)  # 26
                outcome = result.outcome
                over = result.terminated or result.truncated
                D.append(  # 27
                    s, a, result.reward, result.observation, context=omega, outcome=outcome,
                    terminated=result.terminated, truncated=result.truncated, recorded=recorded,
                )  # fmt: skip
                main_info = exp_info = None
                for _ in range(per_step if main_learns else 0):
                    main_info = learn.main()  # 29
                if actor == "exp":  # 31
                    D_exp.take_newest()  # 32
                for _ in range(per_step if exp_learns else 0):
                    exp_info = learn.exp()  # 33
                success = episode.success or env.is_success(outcome, omega)
            episode.count(actor, result.reward, success, result.measured)
            s = result.observation  # 35
            state.step = step
            rows = D.total - first_row
            mastered = finish_episode(state, plan, episode, result, rows) if over else None  # 4 – 8
            done = episode if over else None
            yield RollinStep(step, k, actor, result.reward, main_info, exp_info, done, mastered)


def finish_episode(
    state: DeepState, plan: Plan, episode: Episode, last: ContextStep, rows: int
) -> str | None:
    """Lines 5 to 8 of the next step: return why a context is mastered, or None.

    rows: of the episode in D, the newest ones.
    """
    teacher = state.teacher
    D = state.D
    state.episode += 1
    recorded = state.options.prefix == "replay"  # all of an episode's steps are rows of D
    wanted = plan.trace and (not episode.rollin or (recorded and "rollin-trace" in teacher.wants))
    trace = D.outcomes(np.arange(D.total - rows, D.total)) if wanted else None
    if state.options.better and episode.k == teacher.progress.k:  # not one that looked ahead
        state.better.take(rows, episode.total)
    advances = len(state.progress.advances)
    guides = teacher.guides
    reason = teacher.update(episode.end(plan, last.terminated, last.truncated, trace))
    if len(state.progress.advances) != advances:  # 6: k ← k + 1, D_exp ← ∅
        state.D_exp.clear()
        state.exp.reset()  # 7
        state.better.clear()
    if teacher.guides != guides:  # not after a step back, before which no context was mastered
        state.freeze_guide()
    return reason or teacher.still_mastered()  # the final context at every episode


class Updates:
    """Draws batches, relabels them if wanted, and updates the agents."""

    def __init__(self, state: DeepState) -> None:
        options = state.options
        self._state = state
        self._p = options.p if options.sampling == "geometric" else None
        # goals of relabelling depend on how the episode continues: nothing is drawn ahead
        self._prefetcher = None
        if not (options.relabel or options.better):
            self._prefetcher = Prefetcher(state.main, state.D, state.main.streams, self._p)

    def begin(self) -> None:
        """Begin the first update of π_main that the next row of D will be followed by."""
        if self._prefetcher is not None:
            self._prefetcher.begin()

    def main(self) -> UpdateInfo:
        """One update of π_main from D."""
        if self._prefetcher is not None:
            return self._prefetcher.update()
        return self._update(self._state.main, self._state.D)

    def exp(self) -> UpdateInfo | None:
        """One update of π_exp from D_exp; None while that holds too few rows."""
        state = self._state
        if len(state.D_exp) < state.options.exp_fill:
            return None
        return self._update(state.exp, state.D_exp)

    def _update(self, agent: SACLearner, source: Replay | Selection) -> UpdateInfo:
        state = self._state
        batch = agent.batch
        picked = source.draw(len(batch), agent.streams["replay"], self._p)
        if share := round(state.options.better * len(batch)) if len(state.better) else 0:
            # spread over the batch, whose thirds are relabelled by their place
            places = np.arange(share) * len(batch) // share
            picked[places] = state.better.draw(share, agent.streams["better"])
        state.D.gather(picked, batch)
        if state.options.relabel:
            env = state.env
            stream = agent.streams["relabel"]
            relabel(state.D, picked, batch, stream, env.compute_reward, env.to_context)
        return agent.update(batch)


@contextmanager
def _location(episode: Episode, step: int) -> Iterator[None]:
    """Add episode and step to errors."""
    try:
        yield
    except RollinError as error:
        text = re.sub(r"^Step \d+: ", "", str(error))  # the replay counts its rows
        raise RollinError(f"Episode {episode.number}, step {step}: {text}") from error
