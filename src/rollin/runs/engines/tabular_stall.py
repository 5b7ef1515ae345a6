"""Why a tabular run does not advance, in words, and what to do about it."""

from rollin.curriculum.rules import AdvanceRule, SuccessRate
from rollin.curriculum.step_gap import StepGap
from rollin.tabular import soft
from rollin.tabular.mdp import Array, TabularTask


def stall(rule: AdvanceRule, task: TabularTask, mu: Array, horizon: int) -> str | None:
    """Why the rule is not met under a context that starts from μ; None if it can still be."""
    if isinstance(rule, SuccessRate):
        most = soft.most_success(task, horizon)
        largest = max(float(law @ most) for law in (mu, task.mdp.rho))
        if largest > rule.threshold:
            return None
        return (
            f"--threshold {rule.threshold:g} cannot be exceeded under context {task.k}: within "
            f"{horizon} steps no policy succeeds there with a probability above {largest:.3g}. "
            "Give a smaller --threshold or a longer --horizon."
        )
    if not isinstance(rule, StepGap):
        return None
    if rule.flat:
        return (
            f"--rule gap saw the same success rate in all {rule.n:,} steps under context {task.k}, "
            "and has nothing to decide by: an easier context before it or a larger β may help."
        )
    if not rule.stuck:
        return None
    return (
        f"--rule gap was not met in {rule.n:,} steps under context {task.k}: the success rate "
        f"began at {rule.base:.3g}, and its best, {rule.best:.3g}, has not risen for "
        f"{rule.n - rule.risen_at:,} steps. If that is good enough, give a --threshold below it "
        "without --rule gap."
    )
