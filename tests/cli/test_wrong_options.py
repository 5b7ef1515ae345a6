"""Plausible mistakes in a command: one sentence that leads on, and exit code 2."""

import gymnasium
import pytest

from rollin.cli import main


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["train", "Pendulum-v1", "--beta", "0.1"],
            "Pendulum-v1 has no --beta: its runs are plain SAC without a curriculum, and that "
            "option belongs to policy gradients on a contextual MDP or policy gradients until the "
            "last context is solved or ROLLIN with two SAC agents on a contextual environment. "
            "rollin train Pendulum-v1 --help lists what there is.",
        ),
        (
            ["train", "four-rooms", "--adaptive"],
            "four-rooms has no --adaptive: its runs are policy",
        ),
        (["train", "hopper", "--mu=rho"], "hopper has no --mu: its runs are ROLLIN with two"),
        (["train", "hopper", "--no-literal-walls"], "rollin train hopper --help lists what"),
        (
            ["train", "Pendulum-v1", "--stpes", "3"],
            "Did you mean --steps? rollin train Pendulum-v1",
        ),
        (
            ["train", "dead-end", "--hidden", "8,8"],
            "spaces between them are expected, such as 32 32",
        ),
        (
            ["theory", "point-umaze"],
            "point-umaze is not a tabular task: expected four-rooms, a FILE",
        ),
        (
            ["train", "FetchReach-v99"],
            "install the extra robotics and put rollin.GoalContext around",
        ),
        (["train", "Nope-v5"], "Environment `Nope` doesn't exist. Did you mean Hopper-v5?\n"),
        (
            ["train", "hopper", "--method", "baseline", "--beta=0.1"],
            "--method baseline never rolls in, so that --beta 0.1 would do nothing: leave out one",
        ),
    ],
)
def test_a_plausible_mistake_is_one_sentence_that_leads_on(words, sentence, capsys, tmp_path):
    assert main([*words, *(["--out", str(tmp_path / "a")] if words[0] == "train" else [])]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert told.count("Did you mean") <= 1
    assert not (tmp_path / "a").exists()


def test_what_exists_and_cannot_be_made_is_not_suggested(capsys, tmp_path, monkeypatch):
    def broken(name):
        raise gymnasium.error.DependencyNotInstalled("Box2D is not installed")

    monkeypatch.setattr(gymnasium, "make", broken)
    assert main(["train", "LunarLander-v3", "--out", str(tmp_path / "a")]) == 2
    told = capsys.readouterr().err
    words = (
        "rollin: LunarLander-v3 cannot be made: DependencyNotInstalled: Box2D is not installed ("
    )
    assert told.startswith(words)  # with the place, because `broken` is not Gymnasium's
    assert "Did you mean" not in told
