"""The first line of a page, steps to mastery, and who solves the last context."""

from dataclasses import replace

import numpy as np

from rollin.analysis.collect import group
from rollin.analysis.findings import mastered_at, steps_to_mastery
from rollin.analysis.results import StudyResults, results_of, solved_by
from rollin.report.labels import label_text
from rollin.report.sections import verdict
from rollin.runs.engines import condition_key, engine
from rollin.runs.records import Costs, Curve, MetricAt, Record, Switch
from rollin.runs.spec import RunSpec, configured, flat

STEPS = 1000


def run(seed: int, method: str, entered: list[int], completed: int | None = None) -> Record:
    """A walk over four contexts that entered 1, 2, … at these steps."""
    k = len(entered)
    switches = (Switch(0, 0, {}), *(Switch(i, step, {}) for i, step in enumerate(entered, 1)))
    return Record(
        task="mine", engine="rollin", seed=seed, steps=STEPS, step=STEPS, finished=True,
        costs=Costs(1.0), curve=Curve(np.array([float(STEPS)]), {"kappa": np.array([k / 3])}),
        spec_hash=f"{method}{seed}", key=method, k=k, K=3, switches=switches, completed=completed,
        options={"method": "rollin", "beta": 0.0 if method == "baseline" else 0.1},
    )  # fmt: skip


def study(records: list[Record]) -> StudyResults:
    (found,) = results_of(group(records, []), [])
    return found


def test_the_verdict_is_of_rollin_against_the_baseline_with_its_interval() -> None:
    base = [run(seed, "baseline", [100]) for seed in range(5)]
    rolled = [run(seed, "rollin", [100, 200, 300], 900 if seed else None) for seed in range(5)]
    assert verdict(study([*base, *rolled])) == (
        "ROLLIN β = 0.1 does better than the baseline: κ 1.000 ± 0.000 against 0.333 ± 0.000. A "
        "seed does better than one of the baseline with probability 1.00 (95 % interval 1.00 – "
        "1.00). Runs that mastered the final context: 4 of 5 with ROLLIN β = 0.1, 0 of 5 with the "
        "baseline."
    )
    few = verdict(study([*base[:2], *rolled[:2]]))
    assert "has a larger mean than the baseline" in few
    assert "2 seeds decide nothing: compare at least 5 of each condition." in few
    assert "ties with the baseline" in verdict(study([*base, *_as_rollin(base)]))
    assert "does worse than the baseline" in verdict(
        study([*(replace(r, options={**r.options, "beta": 0.0}, key="baseline") for r in rolled),
               *_as_rollin(base)])
    )  # fmt: skip


def _as_rollin(records: list[Record]) -> list[Record]:
    changed = {"method": "rollin", "beta": 0.1}
    return [replace(r, options=changed, key="rollin", spec_hash=f"x{r.seed}") for r in records]


def test_runs_without_a_baseline_say_so() -> None:
    told = verdict(study([run(0, "rollin", [100, 200])]))
    assert told == (
        "κ = 0.667 (1 seed). No run mastered the final context. There is no baseline (β = 0) "
        "beside it to compare with."
    )


def test_a_walk_that_jumps_has_mastered_where_it_went_on_from() -> None:
    steps = ((0, 0), (8, 100), (4, 200), (8, 300), (10, 400))  # to 8, back to 4, on to 8 and 10
    jumper = replace(
        run(0, "rollin", []), k=10, K=12, switches=tuple(Switch(k, at, {}) for k, at in steps)
    )
    assert [mastered_at(jumper, contexts) for contexts in (1, 2, 5, 6, 9, 10)] == [
        100, 300, 300, 400, 400, None
    ]  # fmt: skip


def test_steps_to_mastery_are_medians_over_the_seeds_that_came_there() -> None:
    runs = [run(0, "rollin", [100, 200, 300], 700), run(1, "rollin", [300, 500]),
            run(2, "rollin", [])]  # fmt: skip
    assert [mastered_at(runs[0], contexts) for contexts in (1, 2, 3, 4)] == [100, 200, 300, 700]
    assert [mastered_at(runs[1], contexts) for contexts in (2, 3, 4)] == [500, None, None]
    (found,) = steps_to_mastery(study(runs))
    assert found.n == 3
    assert found.shares == [(2, 200.0), (2, 350.0), (1, 300.0), (1, 700.0)]


def test_a_run_solves_the_last_context_when_it_is_mastered_and_not_when_it_is_entered() -> None:
    entered, solved = run(0, "rollin", [1, 2, 3]), run(1, "rollin", [1, 2, 3], 600)
    assert solved_by([entered, solved]) == (1, 2)
    assert solved_by([entered, solved], 599) == (0, 2)
    tabular = replace(entered, engine="tabular", curve=_curve(0.6))
    assert solved_by([tabular]) == (1, 1)  # which tells no step, but its success rate
    assert solved_by([replace(tabular, curve=_curve(0.5))]) == (0, 1)
    assert solved_by([replace(tabular, options={"threshold": 0.7})]) == (0, 1)
    assert solved_by([replace(entered, k=None, K=None, switches=())]) is None


def _curve(success: float) -> Curve:
    return Curve(
        np.array([float(STEPS)]), {"kappa": np.array([1.0]), "success": np.array([success])}
    )


def costly(seed: int, beta: float, steps: float) -> Record:
    """A run whose quantity is a cost."""
    curve = Curve(np.array([float(STEPS)]), {"steps_to_solve": np.array([steps])})
    made = replace(run(seed, f"{beta}", []), curve=curve, engine="until-solved", K=None, k=None)
    return replace(made, options={"beta": beta}, switches=(), key=f"{beta}", completed=None)


def cost_study(seeds: int, base: float, ours: float) -> StudyResults:
    records = [
        costly(seed, beta, steps + seed)
        for seed in range(seeds)
        for beta, steps in ((0.0, base), (0.5, ours))
    ]
    (found,) = results_of(group(records, []), [])
    told = replace(found.study, readings=(MetricAt("steps_to_solve"),), baseline="beta=0")
    return StudyResults(told, found.scale, found.runs, found.own)


def test_of_a_cost_less_is_better() -> None:
    told = verdict(cost_study(6, base=100, ours=900))
    assert told.startswith("β = 0.5 does worse than the baseline")
    assert "with probability 0.00" in told
    told = verdict(cost_study(6, base=900, ours=100))
    assert told.startswith("β = 0.5 does better than the baseline")
    assert "has a smaller mean than" in verdict(cost_study(2, base=900, ours=100))
    found = cost_study(6, base=900, ours=100)
    ours = next(r for r in found.results if r.condition.labels["beta"] == "0.5")
    assert found.beats_baseline(ours)
    alone = StudyResults(replace(found.study, baseline=""), found.scale, found.runs, found.own)
    assert verdict(alone).startswith("β = 0.5 has the smallest mean gradient steps until solved")


def of_point_umaze(seed: int, entered: list[int], **options: object) -> Record:
    """A run as `rollin train point-umaze` with some options leaves it."""
    task = "point-umaze"
    config = configured(engine("rollin").preset(task), options)
    key = condition_key(RunSpec(task, config))
    made = run(seed, key, entered, entered[2] + 1 if len(entered) == 3 else None)
    return replace(made, task=task, options=flat(config), key=key)


def names(records: list[Record]) -> list[str]:
    return [label_text(condition.labels) for condition in study(records).runs]


def test_a_tie_has_no_winner() -> None:
    """As the README's commands leave it: two runs, both with κ = 1."""
    both = [of_point_umaze(0, [1, 2, 3], beta=0.1), of_point_umaze(0, [1, 2, 3], adaptive=True)]
    assert verdict(study(both)) == (
        "β = 0.1 and adaptive tie: κ = 1.000 (1 seed each). One seed decides nothing: compare at "
        "least 5 of each condition. Runs that mastered the final context: 1 of 1 with β = 0.1, "
        "1 of 1 with adaptive."
    )
    four = [of_point_umaze(0, [1], window=window) for window in (3, 4, 5, 6)]
    assert verdict(study(four)).startswith("All 4 conditions tie: κ = 0.333 (1 seed each).")
    third = of_point_umaze(0, [1], relabel=True)
    assert verdict(study([*both, third])).startswith(
        "β = 0.1 and adaptive tie: κ = 1.000, the best of all conditions (1 seed each)."
    )


def test_a_lead_within_the_noise_is_no_win() -> None:
    far, near = [1, 2, 3], [1]
    one = [of_point_umaze(0, far, beta=0.1), of_point_umaze(0, near, adaptive=True)]
    told = verdict(study(one))
    assert told.startswith("β = 0.1 has the largest mean κ: 1.000; adaptive follows with 0.333")
    assert "One seed decides nothing" in told
    mixed = [of_point_umaze(s, far if s else near, beta=0.1) for s in range(6)]
    mixed += [of_point_umaze(s, far if s > 1 else near, adaptive=True) for s in range(6)]
    assert "The difference is within the noise of the seeds." in verdict(study(mixed))
    clear = [of_point_umaze(s, far, beta=0.1) for s in range(6)]
    clear += [of_point_umaze(s, near, adaptive=True) for s in range(6)]
    assert "noise" not in verdict(study(clear))
    assert "nothing" not in verdict(study(clear))


def test_runs_are_named_by_what_was_typed() -> None:
    plain, adaptive = of_point_umaze(0, [1], beta=0.1), of_point_umaze(0, [1], adaptive=True)
    assert names([plain, adaptive]) == ["β = 0.1", "adaptive"]
    weaker = of_point_umaze(0, [1], adaptive=True, better=0.0)
    assert names([plain, adaptive, weaker]) == ["β = 0.1", "adaptive", "adaptive, better = 0"]
    gap = of_point_umaze(0, [1], rule="gap")
    wide = of_point_umaze(0, [1], hidden=[64, 64], relabel=True)
    assert names([plain, gap, wide]) == ["β = 0.1", "rule = gap", "relabel, hidden = 64x64"]
    base = of_point_umaze(0, [1], adaptive=True, beta=0.0)
    assert names([plain, adaptive, base]) == [
        "ROLLIN β = 0.1", "ROLLIN β = 0.1, adaptive", "baseline, adaptive"
    ]  # fmt: skip


def test_runs_whose_options_are_all_the_tasks_own_are_called_so() -> None:
    assert label_text({"options": "defaults"}) == "defaults"
    assert label_text({"relabel": "false", "adaptive": "true"}) == "no relabel, adaptive"


def test_of_several_steps_the_last_is_told_with_its_step() -> None:
    """Behind half-way, and ahead at the end."""
    records = [run(seed, "baseline", [100]) for seed in range(6)]
    records += [run(seed, "rollin", [600, 700, 800]) for seed in range(6)]
    (found,) = results_of(group(records, []), [])
    readings = (MetricAt("kappa", 500), MetricAt("kappa", 1000))
    told = StudyResults(replace(found.study, readings=readings), found.scale, found.runs, found.own)
    assert verdict(told).startswith(
        "ROLLIN β = 0.1 does better than the baseline: κ at 1k steps 1.000 ± 0.000 against"
    )
