"""Conditions and studies: three ways to the same ones, labels, layout, comparison, refusals."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollin
from rollin.cli.options import make, option_groups, read
from rollin.cli.sweep import SweepOptions, make_study, run_options
from rollin.errors import RollinError
from rollin.runs.engines import condition_key
from rollin.runs.records import MetricAt, condition_text, labels_from
from rollin.runs.spec import flat
from rollin.sweeps.condition import (
    Condition,
    block,
    differing,
    grid_from,
    reading,
    select,
    value_text,
)
from rollin.sweeps.study import Study, checked_study, directories, study_from

TASK = "point-umaze"
FILE = """
name = "mine"
task = "point-umaze"

[options]
steps = 20_000
hidden = [16, 16]

[grid]
beta = [0, 0.1]
delta = ["1/12", 0.125]
"""


def written(tmp_path: Path, text: str, name: str = "mine.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(make: Callable[[], object]) -> str:
    """The one sentence with which something is refused."""
    with pytest.raises(RollinError) as refused:
        make()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def from_command(*arguments: str) -> Study:
    """The study that `rollin sweep` makes of its arguments."""
    of_runs: dict[str, list[str] | bool] = {}
    options = make(SweepOptions, read(option_groups(SweepOptions), arguments, "sweep", "", of_runs))
    return make_study(options, run_options(of_runs))


# ------------------------------------------------------------------ conditions


def test_a_condition_is_a_task_with_options_for_any_seed_and_length() -> None:
    one = Condition({"beta": "0.1"}, TASK, {"beta": 0.1, "steps": 20_000})
    assert one.name == "beta=0.1"
    assert one.steps == 20_000
    spec = one.spec(7)
    assert (spec.task, spec.config.seed, spec.config.steps) == (TASK, 7, 20_000)
    assert spec.config.algorithm.beta == 0.1
    assert spec.config.sac.hidden == (32, 32)  # the task's preset
    assert one.spec(7, 0.5).config.steps == 10_000
    jax = one.spec(7, learner="jax", colour="red")  # what the engine does not have is left out
    assert jax.config.learner == "jax"
    assert one.membership("mine", 0.5).to_json() == {
        "family": "mine", "labels": {"beta": "0.1"}, "scale": 0.5, "key": one.key(0.5),
    }  # fmt: skip


def test_the_key_is_the_same_for_all_seeds_and_lengths_but_no_other_options() -> None:
    one = Condition({}, TASK, {"beta": 0.1})
    assert condition_key(one.spec(3)) == condition_key(one.spec(4)) == one.key()
    longer = Condition({}, TASK, {"beta": 0.1, "steps": 77_000, "log_every": 7, "threads": 2})
    assert longer.key() == one.key()
    assert Condition({}, TASK, {"beta": 0.2}).key() != one.key()
    plain = Condition({}, TASK, {"beta": 0.0})
    assert Condition({}, TASK, {"method": "baseline"}).key() == plain.key()
    assert Condition({}, TASK, {}, known_key="told").key() == "told"


# ------------------------------------------------------------------ three ways to the same


def test_a_block_a_grid_a_file_and_the_command_line_give_the_same(tmp_path) -> None:
    options = {"steps": 20_000, "hidden": [16, 16]}
    grid: dict[str, Any] = {"beta": [0, 0.1], "delta": ["1/12", 0.125]}
    ways = [
        block(TASK, grid, options),
        Study.grid("mine", TASK, options, **grid).conditions,
        study_from(written(tmp_path, FILE)).conditions,
        from_command(
            TASK, "--grid", "beta=0,0.1", "--grid", "delta=1/12,0.125", "--steps", "20000",
            "--hidden", "16", "16",
        ).conditions,
    ]  # fmt: skip
    assert [c.name for c in ways[0]] == [
        "beta=0,delta=1/12", "beta=0,delta=0.125", "beta=0.1,delta=1/12", "beta=0.1,delta=0.125",
    ]  # fmt: skip
    for way in ways[1:]:
        for one, other in zip(ways[0], way, strict=True):
            assert one.labels == other.labels
            assert one.spec(3, 0.5) == other.spec(3, 0.5)
            assert one.spec(3).hash == other.spec(3).hash
            assert one.key(0.5) == other.key(0.5)


@given(st.lists(st.floats(0, 0.99), min_size=1, max_size=3, unique=True), st.integers(300, 10**6))
def test_whatever_the_values_text_and_numbers_are_the_same(betas, steps) -> None:
    plain = block(TASK, {"beta": betas}, {"steps": steps})
    text = block(TASK, grid_from([f"beta={','.join(map(repr, betas))}"]), {"steps": str(steps)})
    assert [c.labels for c in plain] == [c.labels for c in text]
    assert [c.spec(0).hash for c in plain] == [c.spec(0).hash for c in text]


def test_blocks_of_a_file_add_to_what_it_has_for_all(tmp_path) -> None:
    text = """
        task = "point-umaze"
        title = "Two sizes"
        seeds = 3
        baseline = "beta=0"
        readings = ["kappa", "return_final@10_000"]
        rows = ["size"]
        [options]
        steps = 20_000
        [[block]]
        labels = { size = "small" }
        options = { hidden = [8, 8] }
        grid = { beta = [0, 0.1] }
        [[block]]
        labels = { size = "large" }
        options = { hidden = [64, 64], steps = 30_000 }
        grid = { beta = [0, 0.1] }
        [[block]]
        task = "four-rooms"
        labels = { size = "none", beta = "any" }
    """
    made = study_from(written(tmp_path, text, "sizes.toml"))
    assert (made.name, made.heading, made.seeds) == ("sizes", "Two sizes", 3)
    assert made.readings == (MetricAt("kappa"), MetricAt("return_final", 10_000))
    assert [c.name for c in made.conditions] == [
        "size=small,beta=0", "size=small,beta=0.1", "size=large,beta=0", "size=large,beta=0.1",
        "size=none,beta=any",
    ]  # fmt: skip
    assert [c.steps for c in made.conditions[:4]] == [20_000, 20_000, 30_000, 30_000]
    assert made.conditions[2].config.sac.hidden == (64, 64)
    assert made.conditions[4].config.engine == "tabular"
    assert made.down == ("size",)
    partner = made.partner(made.conditions[3])
    assert partner is made.conditions[2]


# ------------------------------------------------------------------ labels


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.0, "0"), (0.1, "0.1"), (1e-05, "1e-05"), (1 / 24, "1/24"), (0.125, "0.125"),
        (1 / 3, "1/3"), (2 / 3, "0.6666666666666666"), (0.1 + 0.2, "0.30000000000000004"),
        (True, "true"), (False, "false"), (None, "none"), ((32, 32), "32x32"), ([8], "8"),
        ("geometric", "geometric"), ("a=1,b", "a:1;b"), (20_000, "20000"), (1e6, "1e+06"),
    ],
)  # fmt: skip
def test_values_are_short_labels(value, text) -> None:
    assert value_text(value) == text


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.text()))
def test_a_value_as_a_label_keeps_the_label_readable_and_numbers_exact(value) -> None:
    text = value_text(value)
    assert labels_from(condition_text({"x": text, "y": "z"})) == {"x": text, "y": "z"}
    if isinstance(value, float):
        assert float(Fraction(text)) == value


def test_conditions_are_told_apart_by_the_labels_that_differ() -> None:
    made = block(TASK, {"beta": [0, 0.1]}, labels={"size": "fine"})
    assert [c.name for c in made] == ["size=fine,beta=0", "size=fine,beta=0.1"]
    assert differing(made) == ["beta"]
    jobs = Study("mine", tuple(made)).jobs(Path("out"), 2, 0.5)
    assert [job.name for job in jobs] == [
        "beta=0 seed=0", "beta=0.1 seed=0", "beta=0 seed=1", "beta=0.1 seed=1",
    ]  # fmt: skip
    assert jobs[1].out == Path("out/size=fine,beta=0.1/seed=0")
    assert jobs[1].of == made[1].membership("mine", 0.5)


def test_no_two_conditions_have_the_same_directory() -> None:
    names = ["a/b", "a:b", "a b", "A b", "x" * 300, "x" * 301, ".."]
    places = directories([Condition({"n": name}, TASK, {}) for name in names])
    assert len({place.casefold() for place in places}) == len(names)
    assert all(Path(place).name == place and len(place) < 150 for place in places)


# ------------------------------------------------------------------ layout and comparison


def test_the_last_label_lies_across_and_the_others_down() -> None:
    study = Study.grid("mine", TASK, batch=[16, 32], beta=[0, 0.1], window=[3, 5])
    assert study.across == ("window",)
    assert study.down == ("batch", "beta")
    one = study.only(study.conditions[:2])
    assert isinstance(one, Study)
    assert one.across == ("window",)
    assert one.down == ()
    assert Study("mine", study.conditions[:1]).across == ()


def test_method_and_beta_lie_across_together() -> None:
    methods = (("baseline", "0"), ("rollin", "1"), ("rollin", "2"))
    conditions = [
        Condition({"env": env, "method": method, "beta": beta}, env, {})
        for env in ("walker", "ant")
        for method, beta in methods
    ]
    study = Study("mine", tuple(conditions))
    assert study.across == ("method", "beta")
    assert study.down == ("env",)
    turned = Study("mine", tuple(conditions), rows=("method", "beta"), columns=("env",))
    assert (turned.down, turned.across) == (("method", "beta"), ("env",))


def test_everything_is_compared_with_the_baseline_that_shares_its_other_labels() -> None:
    study = Study.grid("mine", TASK, baseline="beta=0", window=[3, 5], beta=[0, 0.1, 0.2])
    by_name = {c.name: c for c in study.conditions}
    for window in (3, 5):
        base = by_name[f"window={window},beta=0"]
        assert study.is_baseline(base)
        assert study.partner(base) is None
        for beta in (0.1, 0.2):
            one = by_name[f"window={window},beta={beta}"]
            assert study.partner(one) is base
            assert not study.is_baseline(one)
    plain = Study.grid("mine", TASK, beta=[0, 0.1])
    assert not any(map(plain.partner, plain.conditions))


def test_only_what_is_to_be_compared_has_a_partner() -> None:
    labels = [("scratch", "0"), ("baseline", "0"), ("rollin", "0.1")]
    made = tuple(Condition({"method": m, "beta": b}, TASK, {}) for m, b in labels)
    study = Study("mine", made, baseline="method=baseline", compared="method=rollin")
    assert [study.partner(one) for one in made] == [None, None, made[1]]


def test_a_baseline_that_is_not_one_compares_nothing() -> None:
    """Two conditions fit: which of them is meant cannot be known."""
    study = Study.grid("mine", TASK, baseline="window=3", beta=[0, 0.1], window=[3, 5, 7])
    alike = Study("mine", study.conditions, baseline="window=3,window=5")
    assert study.partner(study.conditions[1]) is study.conditions[0]
    assert alike.partner(study.conditions[2]) is None


def test_a_family_is_shared_and_named_after_the_study_if_it_has_none() -> None:
    assert Study("mine", ()).shared == "mine"
    assert Study("mine", (), family="ours").shared == "ours"
    assert Study("mine", (), title="Mine").heading == "Mine"


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("grid", "options", "sentence"),
    [
        ({"bta": [0]}, {}, "point-umaze has no option bta. Did you mean beta?"),
        ({"beta": [0]}, {"stps": 3}, "point-umaze has no option stps. Did you mean steps?"),
        ({"reward": ["easy"]}, {}, "point-umaze has no option reward."),
        ({"seed": [0, 1]}, {}, "seed is the study's own: give the number of seeds instead."),
        ({"beta": [0]}, {"seed": 1}, "seed is the study's own: give the number of seeds instead."),
        ({"beta": [0]}, {"beta": 1}, "beta is in both the grid and the options: leave one out."),
        ({"beta": []}, {}, "The grid's beta must be a list of values, got []."),
        ({"beta": "0.1"}, {}, "The grid's beta must be a list of values, got '0.1'."),
        ({"beta": 0.1}, {}, "The grid's beta must be a list of values, got 0.1."),
        ({"beta": ["high"]}, {}, "beta must be a finite number, got 'high'."),
        ({"beta": [2]}, {}, "beta must lie in [0, 1), got 2.0"),
        ({"beta": [float("nan")]}, {}, "beta must be a finite number, got nan."),
        ({"steps": [10.5]}, {}, "steps must be a whole number, got 10.5."),
        ({"hidden": [[8, "x"]]}, {}, "hidden must be a sequence of int, got [8, 'x']."),
        ({"relabel": ["yes"]}, {}, "relabel must be True or False, got 'yes'."),
        ({"method": ["magic"]}, {}, "magic"),
    ],
)  # fmt: skip
def test_a_grid_that_cannot_be_meant_is_one_sentence(grid, options, sentence) -> None:
    assert sentence in refusal(lambda: block(TASK, grid, options))


def test_a_label_of_the_grid_and_an_unknown_task_are_refused() -> None:
    twice = refusal(lambda: block(TASK, {"beta": [0]}, labels={"beta": "none"}))
    assert "beta is in both the grid and the labels: leave one" in twice
    unknown = refusal(lambda: block("point-umase", {"beta": [0]}))
    assert "Unknown task 'point-umase'" in unknown
    assert "Did you mean point-umaze?" in unknown


def test_conditions_that_are_called_alike_or_are_the_same_runs_are_refused() -> None:
    twice = block(TASK, {"beta": [0, 0.0]})
    unnamed = [*block(TASK, {}), *block(TASK, {}, {"beta": 0.5})]
    same = [*block(TASK, {}, {}, {"as": "given"}), *block(TASK, {}, {"beta": 0.1}, {"as": "named"})]
    for conditions, sentence in (
        (twice, "Two conditions of mine are called beta=0: give them"),
        (unnamed, "Two conditions of mine are called nothing: give them"),
        (same, "as=named and as=given of mine are the same runs: "),
    ):
        assert refusal(lambda made=conditions: checked_study("mine", made)).startswith(sentence)
    lengths = block(TASK, {"steps": [20_000, 30_000]})  # which is another condition here
    assert len(checked_study("mine", lengths).conditions) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": ""}, "A study's name must be a plain word, got ''."),
        ({"name": "../x"}, "A study's name must be a plain word, got '../x'."),
        ({"name": ".hidden"}, "A study's name must be a plain word, got '.hidden'."),
        ({"conditions": []}, "The study mine has no conditions: give it a grid, or a block."),
        ({"seeds": 0}, "seeds must be at least 1, got 0."),
        ({"baseline": "bta=0"}, "baseline: there is no label 'bta' here, only beta. Did you mean"),
        ({"baseline": "beta=7"}, "baseline: beta is 0, 0.1 here, got '7'."),
        ({"baseline": "beta"}, "baseline must be name=value, or several of them separated by co"),
        ({"rows": ["btea"]}, "The study mine has no label 'btea'. Did you mean beta?"),
        ({"columns": ["x"]}, "The study mine has no label 'x'."),
        (
            {"conditions": block(TASK, {}, {}, {"size": "a,b"})},
            "Labels of mine must be words without commas or =, got 'a,b'.",
        ),
    ],
)
def test_a_study_that_cannot_be_meant_is_one_sentence(changes, sentence) -> None:
    given = {"name": "mine", "conditions": block(TASK, {"beta": [0, 0.1]}), **changes}
    assert sentence in refusal(lambda: checked_study(**given))


@pytest.mark.parametrize(
    "text", ["", "@5", "kappa@", "kappa@x", "kappa@-5", "kappa@0", "kappa@1.5"]
)
def test_a_reading_that_cannot_be_meant_is_told(text) -> None:
    assert "A reading must be a quantity, or quantity@step such as" in refusal(
        lambda: reading(text)
    )
    assert reading("kappa") == MetricAt("kappa", None)
    assert reading("return_final@500_000") == MetricAt("return_final", 500_000)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (FILE.replace("[options]", "[option]"), "unknown entry 'option': expected name, title"),
        (FILE.replace("[options]", "[option]"), "Did you mean options?"),
        (FILE.replace("name =", "nam ="), "unknown entry 'nam'"),
        ("task = 'four-rooms'\n[[block]]\ngird = {}", "unknown entry 'gird'"),
        (FILE.replace("beta", "bta"), "point-umaze has no option bta. Did you mean beta?"),
        (FILE.replace("0.1]", "2]"), "beta must lie in [0, 1), got 2.0"),
        (FILE.replace('"point-umaze"', "3"), "expected `str | null`, got `int`"),
        (FILE.replace("[0, 0.1]", "0.1"), "expected `array`, got `float`"),
        (FILE + 'seed = [1, 2]', "seed is the study's own"),
        (FILE.replace("steps", "beta"), "beta is in both the grid and the options"),
        (FILE.replace('task = "point-umaze"', ""), 'a block needs a task: task = "point-umaze".'),
        ('task = "four-rooms"\nreadings = ["kappa@x"]', "A reading must be a quantity"),
        ('name = "a/b"\n' + 'task = "four-rooms"', "A study's name must be a plain word"),
        ("task = ", "is not valid TOML"),
        (f"name = {'[' * 10_000}", "nested more than 64 levels deep"),
        ("block = 3", "mine.toml"),
        ("block = [3]", "mine.toml"),
    ],
)  # fmt: skip
def test_a_study_file_with_a_mistake_is_one_sentence_with_its_name(
    tmp_path, text, sentence
) -> None:
    path = written(tmp_path, text)
    refused = refusal(lambda: study_from(path))
    assert sentence in refused
    assert str(path) in refused


def test_a_study_file_that_is_not_there_or_no_text_is_refused(tmp_path) -> None:
    assert "nowhere.toml" in refusal(lambda: study_from(tmp_path / "nowhere.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    assert "bytes.toml is not valid TOML" in refusal(lambda: study_from(tmp_path / "bytes.toml"))


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["beta"], "--grid must be name=value,value, such as beta=0,0.1, got 'beta'."),
        (["beta="], "--grid must be name=value,value"),
        (["=1"], "--grid must be name=value,value"),
        (["beta=0", "beta=1"], "--grid beta is given twice: give all values at once."),
    ],
)
def test_a_grid_as_text_that_cannot_be_meant_is_told(texts, sentence) -> None:
    assert sentence in refusal(lambda: grid_from(texts))


def test_values_with_commas_of_their_own_stand_in_brackets() -> None:
    assert grid_from(["hidden=[8, 8],[16]", "log-every=5"]) == {
        "hidden": [[8, 8], [16]], "log_every": [5],
    }  # fmt: skip
    made = block(TASK, grid_from(["contexts=[[0, 0], [1, 1]]"]), {"threshold": 1})
    assert made[0].config.contexts == "[[0, 0], [1, 1]]"


def test_a_filter_takes_numbers_however_they_are_written() -> None:
    made = block(TASK, {"delta": ["1/12", "1/24"]})
    assert [c.name for c in select(made, "delta=2/24")] == ["delta=1/12"]


def test_options_of_a_condition_that_has_gone_bad_are_told_with_its_name() -> None:
    odd = Condition({"size": "odd"}, TASK, {"btea": 1})
    assert refusal(lambda: odd.config).startswith("size=odd: There is no option btea")


def test_the_public_name_is_this_study() -> None:
    assert rollin.Study is Study
    assert flat(Study.grid("mine", TASK, beta=[0.5]).conditions[0].config)["beta"] == 0.5
