"""The policies that come with the checkout: whole, small, playable, and as their cards say."""

from pathlib import Path

import pytest

from rollin.cli.export import card
from rollin.runs.engines import engine, spec_from
from rollin.runs.exported import CARD, ExportedPolicy

POLICIES = sorted(path.parent for path in Path(__file__).parents[1].glob("policies/*/policy.json"))
MOST = 1_000_000  # bytes of one


def test_there_are_some() -> None:
    assert "point-umaze" in {path.name for path in POLICIES}


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.name)
def test_a_policy_is_whole_small_and_described(path: Path) -> None:
    found = ExportedPolicy.open(path)
    assert sum(file.stat().st_size for file in path.iterdir()) < MOST
    told = (path / CARD).read_text(encoding="utf-8")
    # the card is that of these numbers; which options differ depends on the presets of its time
    made = card(found.about, found.policy, {}).splitlines()
    assert [line for line in made if line not in told.splitlines()] == []


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.name)
def test_a_policy_plays_as_its_card_says(path: Path) -> None:
    """Another CPU or MuJoCo may round otherwise, and a fall come sooner: a good part will do."""
    found = ExportedPolicy.open(path)
    run = found.config
    trained = engine(run.engine).playable(found)
    try:
        row = next(row for row in found.about.evaluation if row["k"] == found.about.k)
        again = trained.evaluate(found.about.k, 2, found.about.seed, lambda *_: None)
    finally:
        trained.env.close()
    assert min(again.returns) > 0.5 * min(row["returns"])
    assert spec_from(run.engine, run.task, run.config).hash == run.spec_hash
