"""A curriculum of the deep engine: contexts ω_0 … ω_K as real vectors, and the advance rules.

The paper calls three things κ: the progress of a run, the position of a context on its path, and
the argument of the threshold R(κ). Here κ is the first, k / K, which is where the published tables
lie (docs/results/paper-numbers.md). `positions` are the second, and `threshold_at` is the argument
of R.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollin.checks import at_least, check_literals, require_number, shown
from rollin.curriculum.progress import Progress, Window
from rollin.errors import RollinError, short_repr

# ------------------------------------------------------------------ rules
#
# An `AdvanceRule` decides from what one learning step reports (the tabular engine), an
# `EpisodeRule` from the last episodes under the current context (the deep engine).


class AdvanceRule(Protocol):
    """Decides whether the current context is mastered."""

    def mastered(self, measured: float) -> str | None:
        """Return the reason to advance, or None to stay."""
        ...


@dataclass(frozen=True)
class SuccessRate:
    """Advance when the success rate is strictly greater than the threshold (four rooms: 50 %).

    >>> import rollin
    >>> rule = rollin.SuccessRate(0.5)
    >>> rule.mastered(0.503)
    'success rate 0.503 > 0.5'
    >>> rule.mastered(0.5) is None
    True
    """

    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.threshold, Real) and 0 <= self.threshold < 1):
            raise RollinError(
                f"The success threshold must lie in [0, 1), got {self.threshold!r}: "
                "a rate can never be greater than 1."
            )

    def mastered(self, measured: float) -> str | None:
        """Return the reason if `measured`, a step's share of successes, exceeds the threshold."""
        if measured > self.threshold:
            return f"success rate {measured:.3f} > {self.threshold:g}"
        return None

    def measure(self, total: float, success: bool) -> float:
        """Return 1 for a success, else 0."""
        return float(success)

    def threshold_at(self, at: float) -> float:
        """Return the threshold, the same on every context."""
        return self.threshold


@dataclass(frozen=True)
class SubOptimality:
    """Advance when the soft sub-optimality V*(ρ) - V^π(ρ) is at most ε (the theory's rule).

    >>> import rollin
    >>> rollin.SubOptimality(0.01).mastered(0.004)
    'sub-optimality 0.004 ≤ 0.01'
    """

    epsilon: float

    def __post_init__(self) -> None:
        require_number("epsilon", self.epsilon)
        if not self.epsilon > 0:
            raise RollinError(f"epsilon must be greater than 0, got {self.epsilon}.")

    def mastered(self, measured: float) -> str | None:
        """Return the reason if `measured`, the exact soft sub-optimality, is at most ε."""
        if measured <= self.epsilon:
            return f"sub-optimality {measured:.3g} ≤ {self.epsilon:g}"
        return None


class EpisodeRule(Protocol):
    """Decides from the last episodes whether a context is mastered."""

    def measure(self, total: float, success: bool) -> float:
        """Return the number that an episode adds to the window."""
        ...

    def threshold_at(self, at: float) -> float:
        """Return what the mean of the window must exceed.

        at: κ of the context, or what the curriculum's `threshold_at` names instead.
        """
        ...


@dataclass(frozen=True, repr=False)
class ReturnThreshold:
    """Advance when the mean return is strictly greater than R, a number or a function of κ.

    >>> import rollin
    >>> rising = rollin.ReturnThreshold(lambda kappa: 500 + 4500 * kappa)
    >>> rising.threshold_at(0.5)
    2750.0
    """

    R: float | Callable[[float], float]

    def __post_init__(self) -> None:
        if not callable(self.R) and not (isinstance(self.R, Real) and math.isfinite(self.R)):
            raise RollinError(f"The return threshold R must be a finite number, got {self.R!r}.")

    def __repr__(self) -> str:
        return short_repr(self, R=self.R)

    def measure(self, total: float, success: bool) -> float:
        """Return the episode's return."""
        return total

    def threshold_at(self, at: float) -> float:
        """Return R, or R(κ)."""
        value = self.R(at) if callable(self.R) else self.R
        if not isinstance(value, Real):
            raise RollinError(f"R({at:g}) must be a number, got {value!r}.")
        return float(value)


Rule = EpisodeRule | float | Callable[[float], float]
"""A rule, or the return threshold R, or R(κ)."""


def as_rule(rule: Any) -> Any:
    """Return the rule of a threshold R or of a function R(κ); rules and None stay as they are."""
    if rule is None:
        return None
    if hasattr(rule, "threshold_at") and hasattr(rule, "measure"):
        return rule
    if callable(rule):
        function: Any = rule
        return ReturnThreshold(function)
    if isinstance(rule, Real) and not isinstance(rule, bool):
        return ReturnThreshold(float(rule))
    raise RollinError(
        f"A rule must be a threshold R, a function R(κ), a ReturnThreshold or a SuccessRate, got "
        f"{type(rule).__name__}."
    )


# ------------------------------------------------------------------ contexts

MOST = 100_000  # contexts of a curriculum
FINEST = 1 / 96  # step between contexts where a teacher chooses among them

Path = Callable[[float], ArrayLike]
"""From a position in [0, 1] to the context there, ω(position)."""
Start = float | Literal["delta"]
"""Position of the first context; delta: one step Δ along the path."""
KappaReading = Literal["index", "position"]
"""κ of context k: k / K, or its position on the path."""
ThresholdArgument = Literal["kappa", "position"]
"""What R is a function of on context k: k / K, or its position on the path."""


@dataclass(frozen=True, eq=False, repr=False)
class Curriculum:
    """Contexts ω_0 … ω_K from easy to hard, and the rule that decides when to advance.

    Make one with `listed`, `along` or `between`. contexts: (K + 1, C). positions: (K + 1,) of the
    contexts on their path, rising to 1. rule: a `ReturnThreshold` or a `SuccessRate`; None if the
    teacher decides. episodes: number of recent episodes that the rule averages over. path: from a
    position to a context, sampled with step delta from start. kappa: progress κ is "index", k / K,
    or "position". threshold_at: the argument of a threshold R(·), "kappa" for k / K or "position".

    >>> import rollin
    >>> path = rollin.Curriculum.along([[0, 0], [8, 0], [8, 8]], delta=0.25, rule=80.0)
    >>> path.kappas
    (0.0, 0.25, 0.5, 0.75, 1.0)
    >>> path.contexts[3].tolist()
    [8.0, 4.0]
    >>> later = path.changed(start="delta")  # without the context at the very beginning
    >>> later.positions, later.kappas[1]
    ((0.25, 0.5, 0.75, 1.0), 0.3333333333333333)
    >>> speeds = rollin.Curriculum.listed([[0.5], [1], [2]], rule=rollin.SuccessRate(0.8))
    >>> speeds.threshold(0)
    0.8
    """

    contexts: NDArray[np.float64]
    positions: tuple[float, ...]
    rule: EpisodeRule | None
    episodes: int = 10
    path: Path | None = None
    delta: float | None = None
    start: Start = 0.0
    kappa: KappaReading = "index"
    threshold_at: ThresholdArgument = "kappa"

    def __post_init__(self) -> None:
        if not isinstance(self.episodes, int):
            raise RollinError(f"episodes must be a whole number, got {self.episodes!r}.")
        at_least(1, "episodes", self.episodes)
        check_literals(self)
        if not isinstance(self.contexts, np.ndarray) or self.contexts.ndim != 2:
            raise RollinError(
                f"contexts must be an array (K + 1, C), got {shown(self.contexts)}: "
                "Curriculum.listed and Curriculum.along make one of lists."
            )
        if len(self.contexts) != len(self.positions):
            raise RollinError(
                f"Every context needs its position, got {len(self.contexts)} contexts and "
                f"{len(self.positions)}: Curriculum.listed and Curriculum.along give them."
            )
        if len(self.contexts) < 2:
            raise RollinError(
                f"A curriculum needs at least two contexts, got {len(self.contexts)}: add an "
                "easier one, or choose a smaller step."
            )
        if not np.isfinite(self.contexts).all():
            raise RollinError("The contexts of a curriculum must be finite numbers.")
        if self.rule is None:
            return
        if not hasattr(self.rule, "threshold_at"):
            raise RollinError(
                f"The rule must be a ReturnThreshold or a SuccessRate, got {self.rule!r}: "
                "Curriculum.listed and Curriculum.along also take a number."
            )
        for k in range(self.K + 1):
            if not math.isfinite(self.threshold(k)):
                raise RollinError(
                    f"The threshold must be a finite number on every context, got "
                    f"{self.threshold(k)} at {self._argument(k):g}."
                )

    def __repr__(self) -> str:
        return short_repr(
            self, K=self.K, first=self.contexts[0].tolist(), final=self.contexts[-1].tolist(),
            rule=self.rule,
        )  # fmt: skip

    @classmethod
    def listed(
        cls, contexts: ArrayLike, rule: Rule | None = None, *, episodes: int = 10
    ) -> "Curriculum":
        """Return a curriculum of these contexts; a number as rule is the return threshold R."""
        array = _vectors(contexts, "Contexts")
        steps = max(len(array) - 1, 1)
        positions = tuple(k / steps for k in range(len(array)))
        return cls(array, positions, as_rule(rule), episodes)

    @classmethod
    def along(
        cls,
        path: ArrayLike | Path,
        delta: float = FINEST,
        rule: Rule | None = None,
        *,
        start: Start = 0.0,
        episodes: int = 10,
        kappa: KappaReading = "index",
        threshold_at: ThresholdArgument = "kappa",
    ) -> "Curriculum":
        """Return contexts ω(start), ω(start + Δ), …, ω(1); the last step may be shorter.

        path: a function of the position, or the corners of a polyline at constant speed.
        """
        function: Path = path if callable(path) else polyline(path)
        if not (isinstance(delta, Real) and 0 < delta <= 1):
            raise RollinError(f"The step Δ must lie in (0, 1], got {delta}.")
        if start == "delta" and delta == 1:
            raise RollinError("A step Δ of 1 leaves one context, the last: choose a smaller one.")
        first = delta if start == "delta" else start
        if not (isinstance(first, Real) and 0 <= first < 1):
            raise RollinError(f"A curriculum must start at a position in [0, 1), got {first}.")
        count = math.floor(min((1 - first) / delta + 1e-9, 1e15))  # infinite for the smallest Δ
        if count > MOST:
            raise RollinError(
                f"A step Δ of {delta:g} gives {count:,} contexts: choose one of at least "
                f"{(1 - first) / MOST:g}."
            )
        positions = [first + delta * i for i in range(count + 1)]
        if positions[-1] > 1 - 1e-9:
            positions[-1] = 1.0
        else:
            positions.append(1.0)
        contexts = _vectors([np.ravel(function(position)) for position in positions], "Contexts")
        if (contexts[0] == contexts[-1]).all():
            _refuse_goal(contexts[0])
        rounded = tuple(round(position, 12) for position in positions)  # 0.3, not 0.1 + 2 · 0.1
        return cls(
            contexts, rounded, as_rule(rule), episodes, function, delta, start, kappa, threshold_at
        )

    @classmethod
    def between(cls, start: ArrayLike, goal: ArrayLike) -> "Curriculum":
        """Return contexts on the line from `start` to `goal`; nothing else has to be chosen.

        >>> import rollin
        >>> way = rollin.Curriculum.between(start=[0.0, 0.0], goal=[0.0, 8.0])
        >>> way.K, way.contexts[12].tolist(), way.rule
        (96, [0.0, 1.0], None)
        """
        corners = [np.ravel(_numbers(start)), np.ravel(_numbers(goal))]
        if corners[0].shape == corners[1].shape and (corners[0] == corners[1]).all():
            _refuse_goal(corners[0])
        return cls.along(corners)

    @property
    def K(self) -> int:
        """Number of advances; the final context is ω_K."""
        return len(self.contexts) - 1

    @property
    def kappas(self) -> tuple[float, ...]:
        """κ of every context."""
        if self.kappa == "position":
            return self.positions
        return tuple(k / self.K for k in range(self.K + 1))

    def progress(self, *, scratch: bool = False) -> Progress:
        """Return the start: context 0, or the final one if learned from scratch."""
        return Progress(self.K, self.K if scratch else 0, kappas=self.kappas)

    def threshold(self, k: int) -> float:
        """Return what the window's mean must exceed on context k; NaN without a rule."""
        return math.nan if self.rule is None else self.rule.threshold_at(self._argument(k))

    def _argument(self, k: int) -> float:
        """Return the argument of R on context k."""
        return self.positions[k] if self.threshold_at == "position" else k / self.K

    def mastered(self, k: int, window: Window) -> str | None:
        """Return the reason why context k is mastered, or None."""
        threshold = self.threshold(k)
        if not (window.full and window.mean > threshold):  # never without a rule
            return None
        what = "success rate" if isinstance(self.rule, SuccessRate) else "mean return"
        return f"{what} {window.mean:.6g} of the last {window.size} episodes > {threshold:g}"

    def changed(
        self,
        *,
        delta: float | None = None,
        start: Start | None = None,
        rule: EpisodeRule | None = None,
        episodes: int | None = None,
        kappa: KappaReading | None = None,
        threshold_at: ThresholdArgument | None = None,
    ) -> "Curriculum":
        """Return the same path with another step, start, rule, window or reading of κ."""
        made = replace(
            self,
            rule=rule or self.rule,
            episodes=episodes or self.episodes,
            kappa=kappa or self.kappa,
            threshold_at=threshold_at or self.threshold_at,
        )
        if delta is None and start is None:
            return made
        if made.path is None or made.delta is None:
            raise RollinError(
                "This curriculum is a list of contexts without a path between them: --delta and "
                "--start belong to a curriculum that was made with Curriculum.along."
            )
        return Curriculum.along(
            made.path,
            made.delta if delta is None else delta,
            made.rule,
            start=made.start if start is None else start,
            episodes=made.episodes,
            kappa=made.kappa,
            threshold_at=made.threshold_at,
        )


def polyline(corners: ArrayLike) -> Path:
    """Return ω(position) along straight lines between the corners (N, C), at constant speed."""
    points = _vectors(corners, "Corners of a path")
    if len(points) < 2:
        raise RollinError(f"A path needs at least two corners, got {len(points)}.")
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if not (np.isfinite(points).all() and 0 < lengths.sum() < math.inf):
        raise RollinError("A path needs finite corners that are not all the same point.")
    at = np.concatenate([[0.0], np.cumsum(lengths)]) / lengths.sum()

    low = points.min(0)
    high = points.max(0)
    digits = 12 - math.ceil(math.log10((high - low).max()))  # 5/12 of 24 m are 10 m, not 10 + 2e-15

    def at_position(position: float) -> NDArray[np.float64]:
        place = np.array([np.interp(position, at, column) for column in points.T])
        return np.minimum(np.maximum(np.round(place, digits), low), high)

    return at_position


def _refuse_goal(both: NDArray[np.float64]) -> NoReturn:
    raise RollinError(
        f"The goal of a curriculum must differ from its start, got {both.tolist()} for both: give "
        "an easier context as the start, or another as the goal."
    )


def _numbers(values: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise RollinError(f"A context must be a real vector: {error}.") from error


def _vectors(values: Any, what: str) -> NDArray[np.float64]:
    """Return vectors of one length as an array (N, C)."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise RollinError(f"{what} must be real vectors of one length each: {error}.") from error
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise RollinError(
            f"{what} must be real vectors, an array of shape (N, C), got shape {array.shape}."
        )
    return array
