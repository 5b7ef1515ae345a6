"""Contextual MDPs (Section 3 of the paper): (Ω, S, A, P, r_ω, γ, ρ) as arrays.

Only the reward depends on the context. `ContextualMDP` checks all of its input once, so that
everything below may rely on it; `TabularTask` is the MDP of one context.
"""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.checks import instance
from rollin.errors import RollinError, short_repr
from rollin.untrusted import LARGEST_POLICY, check_size, read_bounded

Array = NDArray[np.float64]

SUM_TOLERANCE = 1e-8  # largest accepted error of the sum of a probability vector
FIELDS = ("transitions", "rewards", "gamma", "rho", "contexts", "success")
NEEDED = frozenset(FIELDS[:4])


def _probabilities(name: str, values: Array, fix: str) -> Array:
    """Return probability vectors along the last axis, rescaled to sum to 1 but for rounding."""
    bad = np.argwhere(~np.isfinite(values) | (values < 0))
    if len(bad):
        at = tuple(bad[0].tolist())
        raise RollinError(f"{name} must hold finite values ≥ 0; entry {at} is {values[at]}. {fix}")
    sums = values.sum(-1)
    errors = np.abs(sums - 1)
    if (errors > SUM_TOLERANCE).any():
        worst = np.unravel_index(errors.argmax(), sums.shape)
        at = f" row {tuple(int(i) for i in worst)}" if sums.ndim else ""
        raise RollinError(f"{name}{at} must sum to 1, got {float(sums[worst]):.6g}. {fix}")
    return values / sums[..., None]


def _shape(name: str, array: NDArray[Any], expected: tuple[int, ...], meaning: str) -> None:
    if array.shape != expected:
        raise RollinError(f"{name} must have shape {expected} ({meaning}), got {array.shape}.")


@dataclass(frozen=True, eq=False, repr=False)
class ContextualMDP:
    """A finite contextual MDP with a curriculum ω_0 … ω_K.

    transitions: (S, A) integers, the next state of a deterministic MDP, or (S, A, S) probabilities.
    rewards: (K+1, S, A), r_ω(s, a) ∈ [0, 1] of every context.
    gamma: the discount factor in [0, 1); the theory needs γ < 1.
    rho: (S,) initial state distribution.
    contexts: (K+1, d) the vectors ω_k; k / K where the task has no geometry of its own.
    success: (K+1, S, A) bool, the pairs whose first use makes a trajectory successful.
        Default: every rewarded pair.

    >>> import numpy as np
    >>> import rollin
    >>> left_or_right = np.array([[0, 1], [0, 2], [1, 2]])  # three places in a row
    >>> rewards = np.zeros((2, 3, 2))
    >>> rewards[0, 1, 1] = rewards[1, 2, 1] = 1  # go right in the middle; then, at the end
    >>> mdp = rollin.ContextualMDP(left_or_right, rewards, gamma=0.9, rho=np.array([1.0, 0, 0]))
    >>> mdp.K, mdp.n_states, mdp.n_actions, mdp.contexts.tolist()
    (1, 3, 2, [[0.0], [1.0]])
    >>> mdp.task(1).r.tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """

    transitions: NDArray[Any]
    rewards: Array
    gamma: float
    rho: Array
    contexts: Array = field(default=None)  # type: ignore[assignment]
    success: NDArray[np.bool_] = field(default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 (frozen)
        rewards = np.asarray(self.rewards, dtype=np.float64)
        if rewards.ndim != 3 or min(rewards.shape) < 1:
            raise RollinError(
                f"rewards must have shape (K+1, S, A), got {rewards.shape}: "
                "one (S, A) table per context."
            )
        if len(rewards) < 2:
            raise RollinError("rewards must hold at least two contexts, got 1: add an easier one.")
        if not np.isfinite(rewards).all() or rewards.min() < 0 or rewards.max() > 1:
            raise RollinError(
                f"rewards must lie in [0, 1], got values from {rewards.min():g} to "
                f"{rewards.max():g}: shift and scale them."
            )
        n_contexts, S, A = rewards.shape
        put("rewards", rewards)
        put("transitions", _checked_transitions(np.asarray(self.transitions), S, A))

        if not 0 <= self.gamma < 1:
            raise RollinError(
                f"gamma must lie in [0, 1), got {self.gamma}: "
                "the infinite-horizon values need γ < 1."
            )
        put("gamma", float(self.gamma))

        rho = np.asarray(self.rho, dtype=np.float64)
        _shape("rho", rho, (S,), "one probability per state")
        put("rho", _probabilities("rho", rho, "Divide it by its sum."))

        spread = np.linspace(0, 1, n_contexts)
        contexts = np.asarray(spread if self.contexts is None else self.contexts, float)
        contexts = contexts[:, None] if contexts.ndim == 1 else contexts
        if contexts.ndim != 2 or len(contexts) != n_contexts or not np.isfinite(contexts).all():
            raise RollinError(
                f"contexts must be {n_contexts} finite vectors, one per reward table, "
                f"got shape {contexts.shape}."
            )
        put("contexts", contexts)

        success = rewards > 0 if self.success is None else np.asarray(self.success)
        _shape("success", success, rewards.shape, "one flag per context, state and action")
        if success.dtype != np.bool_:
            raise RollinError(f"success must hold booleans, got {success.dtype}.")
        put("success", success)

    def __repr__(self) -> str:
        return short_repr(
            self, states=self.n_states, actions=self.n_actions, K=self.K, gamma=self.gamma
        )

    @property
    def n_states(self) -> int:
        """Return S = |𝒮|."""
        return self.rewards.shape[1]

    @property
    def n_actions(self) -> int:
        """Return A = |𝒜|."""
        return self.rewards.shape[2]

    @property
    def K(self) -> int:
        """Return the index of the final context."""
        return len(self.rewards) - 1

    @property
    def deterministic(self) -> bool:
        """Return whether `transitions` is a next-state table."""
        return self.transitions.ndim == 2

    def task(self, k: int) -> "TabularTask":
        """Return the MDP of context ω_k."""
        if not 0 <= k <= self.K:
            raise RollinError(f"context k must lie in 0 … {self.K}, got {k}.")
        return TabularTask(self, k)

    def expected_next(self, values: Array) -> Array:
        """Return E_{s' ~ P(·|s,a)} values(s'): (S,) → (S, A)."""
        return values[self.transitions] if self.deterministic else self.transitions @ values

    def policy_kernel(self, pi: Array) -> Array:
        """Return P^π(s'|s) = Σ_a π(a|s) P(s'|s,a): (S, A) → (S, S)."""
        if not self.deterministic:
            return np.einsum("sa,sat->st", pi, self.transitions)
        S = self.n_states
        flat = np.bincount(self._flat_pairs, pi.ravel(), S * S)
        return np.asarray(flat, np.float64).reshape(S, S)

    @cached_property
    def _flat_pairs(self) -> NDArray[np.int64]:
        """Return s·S + s' of every (s, a), for `policy_kernel`."""
        return (np.arange(self.n_states)[:, None] * self.n_states + self.transitions).ravel()

    def replace(self, **changes: Any) -> "ContextualMDP":
        """Return a checked copy with some fields changed."""
        return replace(self, **changes)

    def smooth_rho(self, share: float) -> "ContextualMDP":
        """Return a copy with ρ ← (1 - share) ρ + share · uniform: bounds need ρ(s) > 0."""
        if not 0 <= share <= 1:
            raise RollinError(f"The uniform share of rho must lie in [0, 1], got {share}.")
        return self.replace(rho=(1 - share) * self.rho + share / self.n_states)

    def fingerprint(self) -> str:
        """Return the SHA-256 of all arrays."""
        digest = hashlib.sha256()
        for name, array in self._arrays().items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the arrays to one `.npz` file (no pickle)."""
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **self._arrays())

    def _arrays(self) -> Mapping[str, Any]:
        return {name: np.asarray(getattr(self, name)) for name in FIELDS}

    @classmethod
    def load(cls, path: str | Path) -> "ContextualMDP":
        """Read an `.npz` file with transitions, rewards, gamma and rho, such as `save` writes."""
        try:
            data = read_bounded(Path(path), LARGEST_POLICY, follow=True)
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                unpacked = sum(part.file_size for part in packed.infolist())
            check_size(Path(f"{path}, unpacked,"), unpacked, LARGEST_POLICY)
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except RollinError:
            raise
        except Exception as error:
            raise RollinError(
                f"{path} cannot be read as an .npz file of arrays: {error}."
            ) from error
        if not NEEDED <= arrays.keys() <= frozenset(FIELDS):
            raise RollinError(
                f"{path} must hold transitions, rewards, gamma, rho, may hold contexts, success; "
                f"it holds {', '.join(sorted(arrays)) or 'nothing'}."
            )
        gamma = arrays.pop("gamma")
        for name, array in arrays.items():
            if array.dtype.kind not in "biuf":
                raise RollinError(f"{path}: {name} must hold numbers, got {array.dtype}.")
        if gamma.size != 1 or gamma.dtype.kind not in "iuf":
            raise RollinError(f"{path}: gamma must be one number, got shape {gamma.shape}.")
        return cls(gamma=float(gamma.item()), **arrays)


def check_mdp(mdp: Any) -> ContextualMDP:
    """Return an MDP; raise for anything else, such as the name of a task."""
    made = mdp.replace("-", "_") if isinstance(mdp, str) else ""
    known = ("corridor", "combination_lock", "square_grid", "random_mdp")
    fix = f"rollin.{made}(…)" if made in known else 'rollin.four_rooms("hard")'
    return instance("mdp", mdp, ContextualMDP, f"pass an MDP, such as {fix}")


def _checked_transitions(transitions: NDArray[Any], S: int, A: int) -> NDArray[Any]:
    if transitions.ndim == 2:
        _shape("transitions", transitions, (S, A), "next state of every state and action")
        if transitions.dtype.kind not in "iu":
            raise RollinError(
                f"A (S, A) transition table must hold integers, got {transitions.dtype}: "
                "pass (S, A, S) for probabilities."
            )
        if transitions.min() < 0 or transitions.max() >= S:
            raise RollinError(
                f"Next states must lie in 0 … {S - 1}, got {transitions.min()} … "
                f"{transitions.max()}."
            )
        return transitions.astype(np.int64)
    _shape("transitions", transitions, (S, A, S), "P(s'|s,a), or (S, A) next states")
    return _probabilities(
        "transitions", transitions.astype(np.float64), "Each P(·|s,a) is a probability vector."
    )


@dataclass(frozen=True, eq=False)
class TabularTask:
    """The MDP ℳ_ω of one context: the shared dynamics with r_ω."""

    mdp: ContextualMDP
    k: int

    @property
    def r(self) -> Array:
        """Return the reward table r_ω, (S, A)."""
        return self.mdp.rewards[self.k]

    @property
    def success(self) -> NDArray[np.bool_]:
        """Return which pairs (S, A) make a trajectory successful."""
        return self.mdp.success[self.k]
