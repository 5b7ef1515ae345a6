"""The arrays that the compiled kernels read: dynamics, rewards, policies, random streams."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rollin.errors import RollinError
from rollin.tabular.kernels.draws import FLAG, MAX_BITS, STREAMS, U32, alias_rows, bits_for
from rollin.tabular.kernels.rollouts import F32
from rollin.tabular.mdp import Array, ContextualMDP, TabularTask

Seed = int | np.random.SeedSequence
Tables = tuple[U32, U32, int, int]


class Stream:
    """A random stream: xoshiro128++ state for the kernels, seeded through a SeedSequence."""

    def __init__(self, seed: Seed) -> None:
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(seed)
        words = seed.generate_state(4 * STREAMS, np.uint32).astype(np.uint32)
        self.words: U32 = words.reshape(4, STREAMS)

    def get_state(self) -> dict[str, Any]:
        """Return a copy of the generator's words."""
        return {"words": self.words.copy()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        self.words[:] = state["words"]


def _finite(probabilities: Array) -> Array:
    """Raise for NaN: kernels index by the entries of a table, unchecked."""
    if not np.isfinite(probabilities).all():
        raise RollinError("Probabilities to draw from must be finite numbers: they hold NaN.")
    return probabilities


def alias_table(probabilities: Array) -> tuple[U32, int]:
    """Return the packed alias table of at most 2^MAX_BITS outcomes, and its bits."""
    bits = bits_for(len(probabilities))
    table = np.empty((1, 1 << bits), np.uint32)
    alias_rows(_finite(np.asarray(probabilities, np.float64))[None], bits, table)
    return table[0], bits


@dataclass(frozen=True, eq=False)
class Dynamics:
    """Successor tables of an MDP, padded to P = 2^bits actions.

    successors: (S, P, 2^fan) premultiplied next states without success flags;
    fan_alias: (S, P, 2^fan) alias tables over them (a dummy if fan = 0).
    """

    mdp: ContextualMDP
    bits: int
    fan: int
    successors: U32
    fan_alias: U32

    @classmethod
    def of(cls, mdp: ContextualMDP) -> "Dynamics":
        """Pad and pack the transitions of an MDP."""
        S = mdp.n_states
        A = mdp.n_actions
        bits = bits_for(A)
        P = 1 << bits
        if max(bits, bits_for(S)) > MAX_BITS:
            raise RollinError(
                f"Sampling takes at most {1 << MAX_BITS} states and actions, got S = {S}, A = {A}: "
                "use an exact algorithm (gradient='exact', 'pg' or 'npg')."
            )
        if mdp.deterministic:
            successors = np.zeros((S, P, 1), np.uint32)
            successors[:, :A, 0] = mdp.transitions * P
            return cls(mdp, bits, 0, successors, np.zeros(1, np.uint32))
        support = int((mdp.transitions > 0).sum(2).max())
        fan = bits_for(support)
        # the likeliest 2^fan states of every pair are its support, in any order
        top = np.argsort(-mdp.transitions, axis=2, kind="stable")[:, :, : 1 << fan]
        chance = np.take_along_axis(mdp.transitions, top, axis=2)
        width = top.shape[2]
        successors = np.zeros((S, P, 1 << fan), np.uint32)
        successors[:, :A, :width] = top * P
        fan_alias = np.zeros((S, P, 1 << fan), np.uint32)
        rows = np.empty((S * A, 1 << fan), np.uint32)
        alias_rows(chance.reshape(S * A, width), fan, rows)
        fan_alias[:, :A] = rows.reshape(S, A, 1 << fan)
        return cls(mdp, bits, fan, successors, fan_alias.ravel())

    @property
    def P(self) -> int:
        """Return the padded number of actions."""
        return 1 << self.bits

    @cached_property
    def tables(self) -> Tables:
        """Return `dynamics` of the kernels: flat successor words, fan_alias, bits, fan."""
        return self.successors.ravel(), self.fan_alias, self.bits, self.fan

    def tables_of(self, task: TabularTask) -> Tables:
        """Return the same with the success flag of a task's pairs."""
        words = self.successors.copy()
        words[:, : task.mdp.n_actions][task.success] |= np.uint32(FLAG)
        return words.ravel(), self.fan_alias, self.bits, self.fan

    def padded(self, table: Array) -> F32:
        """Return a table (S, A) as (S, P) float32, with zeros in the padding."""
        out = np.zeros((len(table), self.P), np.float32)
        out[:, : table.shape[1]] = table
        return out

    def policy_alias(self, log_pi: Array) -> U32:
        """Return the flat (S·P,) action alias tables of a policy."""
        table = np.empty((len(log_pi), self.P), np.uint32)
        alias_rows(_finite(np.exp(log_pi)), self.bits, table)
        return table.ravel()
