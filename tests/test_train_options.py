"""The typed options of `rollin.train` are those of the dataclasses."""

from inspect import signature
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from docs.options import PLACE, written

import rollin
from rollin.api import DIRECTORY_OPTIONS, OWN_NAMES
from rollin.runs.engines.agent import AgentConfig
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.spec import flat, option_names
from rollin.train_options import PrepareOptions, TrainOptions

NAMES = {*option_names(RollinConfig), *RollinConfig.short_forms}
NAMED = {"beta", "steps", "seed"}


def test_the_module_is_as_written() -> None:
    assert PLACE.read_text("utf-8") == written(), "run python -m docs.options"


def test_every_option_has_its_place() -> None:
    assert set(get_type_hints(TrainOptions)) == NAMES - NAMED
    assert set(get_type_hints(PrepareOptions)) == NAMES - DIRECTORY_OPTIONS
    assert set(option_names(AgentConfig)) <= NAMES | {"agent"}
    own = {
        name
        for name, one in signature(rollin.train).parameters.items()
        if one.kind != one.VAR_KEYWORD
    }
    assert own == NAMED | set(OWN_NAMES)


def fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is not None and isinstance(value, tuple):
        inner = [part for part in (hint, *get_args(hint)) if "Sequence" in str(get_origin(part))]
        return bool(inner) and all(fits(part, get_args(inner[0])[0]) for part in value)
    if get_args(hint):
        return any(fits(value, part) for part in get_args(hint))
    return type(value) is hint or (hint is float and type(value) is int)


@pytest.mark.parametrize("config", [RollinConfig(), AgentConfig()], ids=["rollin", "agent"])
def test_the_defaults_are_of_the_types(config: Any) -> None:
    hints = get_type_hints(TrainOptions) | get_type_hints(PrepareOptions)
    wrong = [n for n, value in flat(config).items() if n != "agent" and not fits(value, hints[n])]
    assert wrong == []


def test_words_and_lists_are_those_that_are_taken() -> None:
    hints = get_type_hints(TrainOptions)
    assert set(get_args(hints["method"])) == {"rollin", "baseline", "scratch", "fresh"}
    assert set(get_args(hints["prefix"])) == {"replay", "hidden", "shown"}  # of both kinds of runs
    assert fits((8, 8), hints["hidden"])
    assert not fits("8", hints["hidden"])
    assert not fits("no", hints["rule"])
    assert fits(None, hints["rule"])
