"""Mistakes in a command: one sentence with the cause and the fix, exit code 2, nothing written."""

import shlex

import gymnasium
import pytest

from rollin.cli import main

MISTAKES = {
    # commands, words and values
    "trian": "Did you mean train?",
    "train": "rollin train needs a task, for example `rollin train point-umaze`.",
    "report": "rollin report needs DIR …: run directories, sweeps, or",
    "list runs more": "Unexpected argument 'more'.",
    "list --all=yes": "--all takes no value, got yes.",
    "train four-rooms --colour red": "Unknown option --colour. rollin train four-rooms --help",
    "train four-rooms --gama 0.9": "Unknown option --gama. Did you mean --gamma?",
    "train Pendulum-v1 --stpes 3": "Did you mean --steps? rollin train Pendulum-v1",
    "train hopper --no-literal-walls": "rollin train hopper --help lists all options.",
    "train four-rooms --reward medium": "--reward must be one of easy, hard, got 'medium'.",
    "train four-rooms --beta": "--beta needs a value: --beta FLOAT.",
    "train four-rooms --beta one": "--beta must be a number or a fraction such as 1/24, got 'one'.",
    "train four-rooms --beta 1/0": "--beta must be a number or a fraction such as 1/24, got '1/0'.",
    "train four-rooms --steps 2.5": "--steps must be a whole number, got '2.5'.",
    "train four-rooms --steps 2e-1": "--steps must be a whole number, got '2e-1'.",
    "train four-rooms --steps many": "--steps must be a whole number, got 'many'.",
    "train four-rooms --steps 1e999999999": "--steps must be a whole number, got '1e999999999'.",
    "train dead-end --hidden 8,8": "must be numbers with spaces between them, such as 32 32, got",
    # tasks and runs
    "train five-rooms --steps 1": "Unknown task 'five-rooms'. Did you mean four-rooms? Expected",
    "train --steps 1 five-rooms": "Unknown task 'five-rooms'. Did you mean four-rooms? Expected",
    "train --steps 1": "rollin train needs a task, for example",
    "train Nope-v5": "Environment `Nope` doesn't exist. Did you mean Hopper-v5?\n",
    "train FetchReach-v99": "install the extra robotics and put rollin.GoalContext around",
    "theory point-umaze": "point-umaze is not a tabular task: expected four-rooms, a FILE",
    "theory x.npz --reward hard": "belong to four-rooms",
    "theory /nowhere/mdp.npz": "could not be read",
    "resume .": ". is not a run directory: it has no config.json.",
    "resume sweep": "sweep is a sweep: repeat its command to resume.",
    "evaluate nothing": "No such directory: nothing.",
    "list /nowhere": "/nowhere is not a directory",
    "report /nowhere": "/nowhere is not a directory",
    # options of another kind of task, and such that do nothing
    "train Pendulum-v1 --beta 0.1": (
        "--beta does not apply to Pendulum-v1 (plain SAC). For tabular policy gradients use "
        "four-rooms or a FILE.npz; for ROLLIN use hopper or module:factory."
    ),
    "train four-rooms --adaptive": (
        "--adaptive does not apply to four-rooms (tabular policy gradients). For ROLLIN use"
    ),
    "train hopper --mu=rho": "--mu does not apply to hopper (ROLLIN). For tabular",
    "train hopper --method baseline --beta=0.1": (
        "--method baseline never rolls in, so that --beta 0.1 would do nothing: leave out one"
    ),
    # bounds
    "train four-rooms --beta 1": "beta must lie in [0, 1), got 1.0",
    "train four-rooms --beta -0.5": "beta must lie in [0, 1)",
    "train four-rooms --alpha 0": "alpha must be greater than 0",
    "train four-rooms --threshold 0.6 --epsilon 1": "give one",
    "train four-rooms --epsilon 0": "epsilon must be greater than 0",
    "train four-rooms --gamma 1": "--gamma must lie in [0, 1)",
    "train four-rooms --phase1-steps -1": "--phase1-steps must be at least 0",
    "theory four-rooms --gamma 1": "gamma must lie in [0, 1)",
    "theory four-rooms --beta 0": "needs beta in (0, 1)",
    "theory four-rooms --smooth-rho 2": "must lie in [0, 1]",
    "theory four-rooms --alpha 1e-308": "overflows",
    "demo --seeds 0": "--seeds must be at least 1",
    "watch": "rollin watch needs DIR …: run directories, sweeps, or directories with runs below",
    "watch nowhere": "nowhere is not a directory.",
    "watch . --port 70000": "--port must be from 0 to 65535, got 70000.",
    "watch . --every 0": "--every must be from 0.5 to 3600 s, got 0.",
    "watch . --every nan": "--every must be a number or a fraction such as 1/24, got",
    # tables of the paper
    "reproduce": "Which table? rollin reproduce --list shows their names.",
    "reproduce four-rom": "Did you mean four-rooms?",
    "reproduce four-rooms --only rewad=hard": "Did you mean reward?",
    "reproduce four-rooms --only reward=hrad": "Did you mean hard?",
    "reproduce four-rooms --scale 0.1 --steps 9": "give one of them",
    "reproduce four-rooms --scale 0": "--scale must be a finite number greater than 0, got 0.0.",
    "reproduce antmaze-vanilla --scale 0.00001": "too few to train on",
    "reproduce four-rooms --seeds 0": "--seeds must be at least 1",
    "reproduce four-rooms --jobs 0": "--jobs must be at least 1, got 0.",
    "reproduce four-rooms --retries -1": "--retries must be at least 0, got -1.",
    "reproduce four-rooms --address auto": "--address belongs to --backend ray.",
    "reproduce four-rooms --storage fetch": "--storage belongs to --backend ray.",
    "reproduce four-rooms --gpus -3": "--gpus must be a finite number greater than 0",
    "reproduce --list --scale nan": "--scale must be a number or a fraction",
    "reproduce velocity-summary --only beta=1e99999999": "beta is 0, 0.1 here, got",
    "reproduce four-rooms --measure": "--measure belongs to --list.",
    "reproduce --list --only beta=0": "--only belongs to one table: name it",
    "reproduce goal-path --list": "goal-path has no runs: leave out --list",
    "reproduce four-rooms --until 0": "--until must be at least 1, got 0.",
    "reproduce goal-path --jobs 2": "--jobs does not apply to goal-path",
    "reproduce four-rooms --out /": "/ exists and is not a sweep",
    # sweeps; GRID is a grid of β
    "sweep": "rollin sweep needs TASK: a task, as in rollin train; a study in a FILE.toml",
    "sweep point-umaze": "A sweep needs a grid of options: --grid beta=0,0.1, or a",
    "sweep point-umase GRID": "Unknown task 'point-umase'. Did you mean point-umaze?",
    "sweep point-umaze --grid bta=0,1": "has no option bta. Did you mean beta?",
    "sweep point-umaze --grid beta=0,2": "beta must lie in [0, 1), got 2.0",
    "sweep point-umaze --grid steps=many": "steps must be a whole number",
    "sweep point-umaze GRID --stps 5": "no option stps. Did you mean steps?",
    "sweep point-umaze GRID --beta 0.3": "in both the grid and the options",
    "sweep point-umaze GRID GRID": "--grid beta is given twice",
    "sweep point-umaze --grid seed=0,1": "seed is the study's own",
    "sweep point-umaze --grid beta=0,0.0": "are called beta=0",
    "sweep point-umaze GRID --baseline beta=9": "--baseline: beta is 0, 0.4",
    "sweep point-umaze GRID --against bta=0": "Did you mean beta?",
    "sweep point-umaze GRID --metrics kappa@x": "A reading must be a quan",
    "sweep point-umaze GRID --scale 0": "--scale must be a finite number",
    "sweep point-umaze GRID --scale 1e-9": "too few to train on",
    "sweep point-umaze GRID --seeds 0": "--seeds must be at least 1, got 0.",
    "sweep point-umaze GRID --jobs 0": "--jobs must be at least 1, got 0.",
    "sweep point-umaze GRID --until 0": "--until must be at least 1, got 0.",
    "sweep point-umaze GRID --address auto": "--address belongs to --backend ray",
    "sweep point-umaze GRID --name a/b": "A study's name must be a plain word",
    "sweep nowhere:STUDY": "nowhere:STUDY cannot be loaded",
    "sweep tests.toys:STUDY": "tests.toys:STUDY cannot be loaded",
    "sweep nowhere.toml": "nowhere.toml",
    "sweep own.toml --trust --grid beta=0": "of its own: leave out --grid",
    "sweep own.toml --trust --steps 9": "of its own: leave out --steps.",
    "sweep typo.toml": "unknown entry 'gird': expected",
    "sweep point-umaze GRID --out full": "full exists and is not a sweep",
    # comparisons of a curriculum with its control
    "compare": "rollin compare needs TASK: a contextual environment, as in rollin train.",
    "compare point-umase": "Unknown task 'point-umase'. Did you mean point-umaze?",
    "compare Pendulum-v1": "Pendulum-v1 (plain SAC) has no curriculum to compare: give a",
    "compare four-rooms": "with β = 0 by rollin sweep four-rooms --grid beta=0,0.5",
    "compare point-umaze --against moon": "--against must be one of scratch, baseline, uniform",
    "compare point-umaze --method scratch": "--method scratch is the control of rollin compare",
    "compare point-umaze --beta 0 --against baseline": "is its own control, baseline: change",
    "compare point-umaze --method baseline --beta 0.1": "would do nothing: leave out one",
    "compare point-umaze --teacher uniform --against uniform": "is its own control, uniform",
    "compare point-umaze --grid beta=0,0.1": "point-umaze has no option grid.",
    "compare point-umaze --seed 3": "seed is the study's own: give the number of seeds",
    "compare point-umaze --adaptive --threshold 3": "--rule early-gap needs no threshold",
    "compare point-umaze --seeds 0": "--seeds must be at least 1, got 0.",
    "compare point-umaze --first-seed -1": "--first-seed must be at least 0, got -1.",
    "compare point-umaze --scale 0": "--scale must be a finite number",
    "compare point-umaze --scale 1e-9": "too few to train on",
    "compare point-umaze --jobs 0": "--jobs must be at least 1, got 0.",
    "compare tests.toys:no_curriculum": "The environment has no curriculum of its own",
    "compare point-umaze --out full": "full exists and is not a sweep",
}
STUDY = 'task = "tests.toys:Line"\n[grid]\nbeta = [0, 0.4]\n'


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_sentence_and_exit_code_2(command, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(STUDY)
    (tmp_path / "typo.toml").write_text(STUDY.replace("grid", "gird"))
    for place in ("full/thesis.txt", "sweep/sweep.json"):
        (tmp_path / place).parent.mkdir()
        (tmp_path / place).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    assert main(shlex.split(command.replace("GRID", "--grid beta=0,0.4"))) == 2
    error = capsys.readouterr().err
    assert MISTAKES[command] in error
    assert error.startswith("rollin: ")
    assert error.count("\n") == 1
    assert error.count("Did you mean") <= 1
    assert sorted(tmp_path.rglob("*")) == before


def test_what_exists_and_cannot_be_made_is_not_suggested(capsys, tmp_path, monkeypatch) -> None:
    def broken(name):
        raise gymnasium.error.DependencyNotInstalled("Box2D is not installed")

    monkeypatch.setattr(gymnasium, "make", broken)
    assert main(["train", "LunarLander-v3", "--out", str(tmp_path / "a")]) == 2
    error = capsys.readouterr().err
    # with the place, because `broken` is not Gymnasium's
    assert error.startswith(
        "rollin: LunarLander-v3 cannot be made: DependencyNotInstalled: Box2D is not installed ("
    )
    assert "Did you mean" not in error
