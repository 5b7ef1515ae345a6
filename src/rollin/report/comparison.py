"""The verdict of a comparison in one or two sentences."""

from typing import NamedTuple

from rollin.analysis.comparison import (
    LEVEL,
    RETURN,
    Comparison,
    Difference,
    solved_seeds,
)
from rollin.analysis.results import StudyResults
from rollin.report.labels import p_text, quantity_text, too_few_text


class Words(NamedTuple):
    """What a control tests, how the control is called, and what to do if that does not help."""

    subject: str
    control: str
    advice: str


WORDS = {
    "scratch": Words("The curriculum", "from scratch", "Leave the curriculum out."),
    "baseline": Words("Roll-in", "without roll-in", "Leave roll-in out (--method baseline)."),
    "uniform": Words(
        "The order of contexts", "with contexts drawn uniformly", "Use --teacher uniform."
    ),
}
"""By the method of the control."""


def comparison_text(found: Comparison, results: StudyResults) -> str:
    """What the seeds show, with the test behind it."""
    method = found.control.condition.labels.get("method", "")
    words = WORDS.get(method, Words("The first condition", "with the control", ""))
    subject, control, advice = words
    numbers = _numbers(found, results, control)
    seeds = _seeds(found)
    match found.outcome:
        case "few":
            return f"{too_few_text(min(found.seeds))} So far: {numbers}."
        case "helps":
            return f"{subject} helps: {numbers} over {seeds} ({_test(found.end)})."
        case "hurts":
            return f"{subject} hurts: {numbers} over {seeds} ({_test(found.end)}). {advice}".strip()
        case "open":
            test = f"{_test(found.end)}, not below {LEVEL:g}"
            return f"No difference shown: {numbers} over {seeds} ({test}).{_more(found.end)}"
        case "nothing":
            return (
                f"No difference shown: {numbers} over {seeds}. No seed succeeds on either side: "
                "give more --steps rather than more seeds."
            )
        case _:
            return _both_solve(found, words)


def _both_solve(found: Comparison, words: Words) -> str:
    """Which side solves the final context sooner."""
    steps = found.steps
    assert steps is not None
    ours, control = steps.middles
    solved = [f"{solved_seeds(r)} of {len(r.values)}" for r in (found.ours, found.control)]
    numbers = (
        f"both solve the final context ({solved[0]} and {solved[1]} seeds), in a median of "
        f"{ours:,.0f} steps against {control:,.0f} {words.control}"
    )
    if found.outcome == "faster":
        return f"{words.subject} helps: {numbers} ({_test(steps)})."
    if found.outcome == "slower":
        return f"{words.subject} costs steps: {numbers} ({_test(steps)}). {words.advice}".strip()
    return f"No difference shown: {numbers} ({_test(steps)}, not below {LEVEL:g}).{_more(steps)}"


def _numbers(found: Comparison, results: StudyResults, control: str) -> str:
    """What both sides are judged by, and their means or medians."""
    what = quantity_text(found.reading.quantity, results.engine)
    what, digits = (f"median {what}", 3) if found.reading == RETURN else (what, 2)
    ours, other = found.end.middles
    return f"{what} {ours:,.{digits}f} against {other:,.{digits}f} {control}"


def _seeds(found: Comparison) -> str:
    ours, control = found.seeds
    return f"{ours} seeds" if ours == control else f"{ours} and {control} seeds"


def _test(difference: Difference) -> str:
    exact = "exact " if difference.exact else ""
    of = " of ranks" if difference.ranked else ""
    return f"{exact}permutation test{of}, {p_text(difference.p)}"


def _more(difference: Difference) -> str:
    """A sentence about how many seeds would decide what these leave open."""
    ahead = difference.more_seeds()
    if not ahead:
        return ""
    seeds, decides = list(ahead.items())[-1]
    how = "decide" if decides else "do not decide either"
    return f" If further seeds come out like these, {seeds} of each {how}."
