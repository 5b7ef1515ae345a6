"""`RollInCallback`: a teacher for the learners of Stable-Baselines3 and SBX.

It makes a school of the model's vector env, books the ends of episodes, freezes the model as guide
at each switch and logs where the curriculum stands. Level 1 leaves the learner as it is; level 2
adds a fresh explorer after the roll-in, as in the paper's practical algorithm.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import stable_baselines3
from msgspec import to_builtins
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from rollin.checks import at_least, check_gamma, one_of
from rollin.curriculum.teacher import EpisodeEnd, Teacher, check_teacher, claim
from rollin.errors import RollinError
from rollin.runs.formats import converted
from rollin.sb3 import files
from rollin.sb3.explorer import Explorer, check_explorable, mix_in, suited_level, take_out
from rollin.sb3.guide import Frozen, check_travels, freeze
from rollin.sb3.link import SB3Link, store
from rollin.school import School, not_wrapped
from rollin.streams import Streams, pack_generator, unpack_generator
from rollin.wrapper import PrefixStep, RollIn
from rollin.wrapper.statistics import Statistics

LEVELS = {1: "one learner", 2: "with a fresh explorer after the roll-in"}


class RollInCallback(BaseCallback):
    """ROLLIN for a model whose envs are wrapped in `rollin.RollIn`.

    prefix: hidden, or replay: also stored in the replay buffer, for off-policy learners with one
    env. level: 1, one learner, or 2: a fresh explorer acts after the roll-in and begins anew at
    every switch, for off-policy learners; by default 2 for SAC, TD3, DDPG and DQN of
    Stable-Baselines3 with their own replay buffers, else 1. It is logged as `rollin/level`. seed:
    of roll-ins and explorers. anew: begin the teacher's curriculum with a model that has learned
    before. verbose: 1 prints the level, and why the teacher moves on. env_steps: stop `learn` once
    the environments have taken so many steps, those of roll-ins included, which `learn` itself does
    not count. It makes β > 0 comparable with β = 0; give both learns this number. gamma: of
    roll-ins, which stop with probability 1 - γ after each step; the model's discount if None. A
    smaller one shortens roll-ins and leaves the model's discount as it is.

    `save(path)` writes teacher, guide, streams and explorer beside the model, `load(path)` takes
    them back before the next `learn`.
    """

    def __init__(
        self,
        teacher: Teacher,
        *,
        prefix: Literal["hidden", "replay"] = "hidden",
        level: Literal[1, 2] | None = None,
        seed: int = 0,
        anew: bool = False,
        verbose: int = 0,
        env_steps: int | None = None,
        gamma: float | None = None,
    ) -> None:
        super().__init__(verbose)
        self.teacher: Any = check_teacher(teacher)
        one_of("prefix", prefix, ("hidden", "replay"))
        if level not in (None, 1, 2):
            raise RollinError(
                f"level must be 1 (one learner) or 2 (fresh explorer), got {level!r}: leave it out "
                "to have the one that suits the learner."
            )
        self.prefix, self.seed, self.anew = prefix, seed, anew
        self._gamma = None if gamma is None else check_gamma(gamma)
        self._limit = None if env_steps is None else at_least(1, "env_steps", env_steps)
        self._earlier = 0  # environment steps that the school does not count
        self._open = np.zeros(0, np.int64)  # environment steps of the episode that each env plays
        self._asked_level, self.level = level, level or 1
        self.school: School | None = None
        self.guide: Frozen | None = None
        self.explorer: Explorer | None = None
        self._stream = Streams(seed)["explorer"]
        self._loaded: tuple[Path, files.Arrays, files.Saved] | None = None
        self._held: list[PrefixStep] = []  # a roll-in that is still to be stored
        self._noted: list[tuple[int, int]] = []  # the start that each env was last seen at, if any
        if getattr(teacher, "steps", 0):
            claim(teacher, self)

    @property
    def env_steps(self) -> int:
        """Environment steps so far: the agent's and all those of roll-ins."""
        ended = 0 if self.school is None else self.school.steps
        return self._earlier + ended + int(self._open.sum())

    # ------------------------------------------------------------------ Stable-Baselines3 asks

    def _init_callback(self) -> None:
        env = self.training_env
        known = self.school is not None and self.school.link.envs is env  # pyright: ignore
        if not (known and self._noted):
            self._enrol(env)
        else:  # a further learn: it has reset the envs, unless it goes on counting steps
            pairs = zip(self._starts(), self._noted, strict=True)
            begun = np.array([start != noted for start, noted in pairs])
            if begun.any():
                self._book([{}] * env.num_envs, begun, stepped=False)

    def _on_training_start(self) -> None:
        if self.explorer is not None:
            mix_in(self.model, self.explorer)

    def _on_training_end(self) -> None:
        take_out(self.model)

    def _on_step(self) -> bool:
        infos, dones = self.locals["infos"], self.locals["dones"]
        self._open += 1
        self._store_prefix()
        if np.any(dones):
            self._book(infos, dones, stepped=True)
        if self._limit is None or self.env_steps < self._limit:
            return True
        self._tell(f"learn stops after {self.env_steps:,} environment steps")
        return False

    # ------------------------------------------------------------------ the school

    def _enrol(self, env: VecEnv) -> None:
        """Take over the envs; an episode that nobody planned begins again."""
        if not all(env.env_is_wrapped(RollIn)):
            raise not_wrapped(AttributeError(f"{env.num_envs} envs without it"))
        self._noted = []  # until all is done
        take_out(self.model)  # of a learn that was broken off
        self.level = self._asked_level or suited_level(self.model)
        self._check(self.model)
        self._tell(f"level {self.level} for {type(self.model).__name__}, {LEVELS[self.level]}")
        self._earlier, self.school = self.env_steps, None
        self._open = np.zeros(env.num_envs, np.int64)
        own = float(self.model.gamma)  # pyright: ignore[reportAttributeAccessIssue]
        gamma = own if self._gamma is None else self._gamma
        self.school = School(
            self.teacher, SB3Link(env), gamma, seed=self.seed, keep_prefix=self.prefix == "replay"
        )
        self.explorer = Explorer(self.model, self._stream) if self.level == 2 else None  # pyright: ignore
        if self._loaded is not None:
            self._restore(*self._loaded)
            self._loaded = None
        self.school.begin()
        if self.school.switched is not None:
            self._freeze()
        if not all(self.school.link.playing()):
            self._begin_again()
        self._note_starts(np.ones(env.num_envs, bool))

    def _begin_again(self) -> None:
        model: Any = self.model
        model._last_obs = model.env.reset()
        if model._vec_normalize_env is not None:
            model._last_original_obs = model._vec_normalize_env.get_original_obs()

    def _check(self, model: Any) -> None:
        off_policy = isinstance(model, OffPolicyAlgorithm)
        if self.prefix == "replay" and not (off_policy and model.n_envs == 1):
            raise RollinError(
                'prefix="replay" stores roll-ins in the replay buffer of an off-policy learner '
                f"with one env, got {type(model).__name__} with {model.n_envs}: use "
                'prefix="hidden".'
            )
        if self.level == 2:
            check_explorable(model)
        elsewhere = not isinstance(self.training_env.unwrapped, DummyVecEnv)
        if elsewhere and getattr(self.teacher, "beta", 1) > 0:
            check_travels(model)
        begins = self._loaded is None and not getattr(self.teacher, "steps", 0)
        if begins and getattr(model, "_n_updates", 0) and not self.anew:
            raise RollinError(
                f"This {type(model).__name__} has learned before, and its teacher begins anew: "
                "callback.load(path) takes back the teacher that callback.save(path) wrote beside "
                "the model; RollInCallback(teacher, anew=True) begins the curriculum with it."
            )

    def _book(self, infos: Sequence[Mapping[str, Any]], begun: Any, *, stepped: bool) -> None:
        """Tell the school what ended in envs that have begun another episode."""
        assert self.school is not None
        ends = self.school.book(self._ends(infos, begun), stepped=stepped)
        if self.school.switched is not None:
            self._switch(self.school.switched)
        self._note_starts(begun)
        if ends:
            self._log()

    def _ends(self, infos: Sequence[Mapping[str, Any]], dones: Any) -> Iterator[EpisodeEnd]:
        """Ends of this step; what the reset in it has cut off comes after them."""
        for i in np.flatnonzero(dones).tolist():
            for info in (infos[i], self._resets[i]):
                if "rollin_end" in info:
                    yield EpisodeEnd.of_info(info["rollin_end"])

    def _switch(self, reason: str) -> None:
        self._freeze()
        if self.explorer is not None:
            self.explorer.restart()  # lines 6 and 7 of the detailed pseudocode
        self._tell(reason)
        self.logger.record("rollin/advanced", reason, exclude=("tensorboard", "csv"))

    def _tell(self, what: str) -> None:
        if self.verbose:
            print(f"rollin: {what}")  # noqa: T201  (as Stable-Baselines3's own callbacks do)

    def _freeze(self) -> None:
        assert self.school is not None
        self.guide = freeze(self.model)
        self.school.load(self.guide)

    @property
    def _resets(self) -> Sequence[Mapping[str, Any]]:
        """What each env told at its last reset."""
        env = self.training_env.unwrapped
        return getattr(env, "reset_infos", [{}] * env.num_envs)

    def _starts(self) -> list[tuple[int, int]]:
        """Ticket and use of the episode that each env began last."""
        found = [info.get("rollin_start", {}) for info in self._resets]
        return [(start.get("ticket", 0), start.get("serial", 0)) for start in found]

    def _note_starts(self, dones: Any) -> None:
        """How many steps episodes that have just begun took to roll in, and so who acts there."""
        self._noted = self._starts()
        for i in np.flatnonzero(dones).tolist():
            start = self._resets[i].get("rollin_start", {})
            self._open[i] = start.get("hidden", 0) + start.get("cut", 0)
            if self.explorer is not None:
                self.explorer.acting[i] = start.get("hidden", 0) > 0
        if self.prefix == "replay":
            self._held = self.training_env.env_method("take_prefix", indices=[0])[0]

    def _store_prefix(self) -> None:
        """Store a roll-in after the last row of the episode before, ahead of its own first row."""
        for step in self._held:
            store(self.model, step)
        self._held = []

    # ------------------------------------------------------------------ logging, saving

    def _log(self) -> None:
        assert self.school is not None
        school, teacher, record = self.school, self.teacher, self.logger.record
        if hasattr(teacher, "progress"):
            record("rollin/k", teacher.k)
            record("rollin/kappa", teacher.progress.kappa)
            record("rollin/threshold", teacher.threshold)
            if not math.isnan(teacher.window.mean):
                record("rollin/window", teacher.window.mean)
            record("rollin/late", teacher.late)
        for name in ("hidden", "cut", "abandoned", "episodes"):
            record(f"rollin/{name}", getattr(school, name))
        record("rollin/env_steps", self.env_steps)
        record("rollin/level", self.level)

    def save(self, path: str | Path) -> Path:
        """Write teacher, guide, streams and explorer beside the model of this path."""
        if self.school is None:
            raise RollinError("There is nothing to save before learn: call save after it.")
        tensors: files.Arrays = {}
        told: dict[str, Any] = {
            "school": self.school.get_state(),
            "level": self.level,
            "algorithm": type(self.model).__name__,
            "stable_baselines3": stable_baselines3.__version__,
            "stream": [int(word) for word in pack_generator(self._stream)],
            "env_steps": self.env_steps,
        }
        if self.guide is not None:
            tensors |= {f"guide.{name}": value for name, value in self.guide.tensors().items()}
            if self.guide.statistics is not None:
                found = self.guide.statistics.tensors()
                tensors |= {f"statistics.{name}": value for name, value in found.items()}
        if self.explorer is not None:
            found, told["explorer"] = self.explorer.get_state()
            tensors |= {f"explorer.{name}": value for name, value in found.items()}
        target = files.beside(path)
        files.write(target, tensors, told)
        return target

    def load(self, path: str | Path) -> "RollInCallback":
        """Take back what `save` wrote, when `learn` begins; returns the callback."""
        place = files.beside(path)
        tensors, values = files.read(place)
        told: files.Saved = converted(values, files.Saved, place)
        if self._asked_level not in (None, told.level):
            raise RollinError(
                f"This was saved with level={told.level}, and the callback has "
                f"level={self._asked_level}: use the same."
            )
        with files.taken_from(place):
            self.teacher.set_state(told.school.teacher)
        self._asked_level = told.level
        self._loaded, self.school = (place, tensors, told), None
        claim(self.teacher, self)  # learn resets the envs before there is a guide
        return self

    def _restore(self, place: Path, tensors: files.Arrays, told: files.Saved) -> None:
        kind = type(self.model).__name__
        if told.algorithm != kind:
            raise RollinError(
                f"This was saved beside a {told.algorithm}, and the model is a {kind}: load the "
                "model that it belongs to."
            )
        with files.taken_from(place):
            self._take(tensors, told)

    def _take(self, tensors: files.Arrays, told: files.Saved) -> None:
        assert self.school is not None
        self.school.set_state(to_builtins(told.school))
        known = 0 if told.env_steps is None else told.env_steps - self.school.steps
        self._earlier = max(known, 0)  # steps of episodes that were being played
        unpack_generator(self._stream, np.array(told.stream, np.uint64))
        if version := told.school.guide:
            self.guide = freeze(self.model)
            self.guide.take(files.under(tensors, "guide."))
            self.guide.statistics = Statistics.of_tensors(files.under(tensors, "statistics."))
            self.school.load(self.guide, version)
        if self.explorer is not None:
            state = to_builtins(told.explorer)
            self.explorer.set_state(files.under(tensors, "explorer."), state)
