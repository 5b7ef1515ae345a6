"""`rollin export RUN`: the policy of a run alone, with a page that describes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from rollin.checks import MOST_STEPS, at_least
from rollin.cli.arguments import make_console, parse
from rollin.cli.evaluate import playable, row_of, some_contexts
from rollin.deep.evaluate import EVALUATION_SEED
from rollin.report.card import card
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine, spec_of
from rollin.runs.engines.playable import Playable
from rollin.runs.exported import check_free, write_policy
from rollin.runs.options import flat
from rollin.runs.spec import RunSpec

SAME = ("seed", "steps", "log_every", "eval_episodes", "keep_replay", "threads", "learner")
"""Options that the card tells elsewhere, or that do not make another policy."""


@dataclass(frozen=True)
class ExportOptions:
    """A directory with the actor of a run, to keep or to share: no critics, no replay, no code.

    rollin evaluate plays it, and rollin.Policy.load reads it.
    """

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The run directory; of a run that is not finished, the last checkpoint counts."""
    out: Path = Path("policy")
    """The directory to write."""
    episodes: int = 10
    """Deterministic episodes on each context, for the table on its page."""
    seed: int = EVALUATION_SEED
    """Seed of the first episode; the following ones count up from it."""
    trust: bool = False
    """Run the code that the run names as its task, module:factory, though you did not make it."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ExportOptions, arguments, "export")
    at_least(1, "--episodes", options.episodes, MOST_STEPS)
    at_least(0, "--seed", options.seed)
    run = RunDirectory.open(options.run)
    check_free(options.out)
    console = make_console(120)
    with playable(options.run, trust=options.trust) as trained:
        rows = []
        for k in some_contexts(trained):
            with console.status(f"context {k} of {trained.K}"):
                found = trained.evaluate(k, options.episodes, options.seed, lambda *_: None)
            rows.append(row_of(trained, k, found))
        write(run, trained, rows, options)
    console.print(f"Policy: {options.out}, step {trained.step:,}, context {trained.k} reached",
                  soft_wrap=True)  # fmt: skip
    return 0


def write(
    run: RunDirectory, trained: Playable, rows: list[dict[str, Any]], options: ExportOptions
) -> None:
    """The actor, its card and its file."""
    about = {
        "run": run.config,
        "step": trained.step,
        "k": trained.k,
        "curriculum": {
            "contexts": trained.contexts.tolist(),
            "kappas": trained.kappas,
            "thresholds": trained.thresholds,
        },
        "evaluation": rows,
        "episodes": options.episodes,
        "seed": options.seed,
    }
    changed = differing(spec_of(run))
    policy = trained.policy
    write_policy(options.out, policy, about, lambda made: card(made, policy, changed))


def differing(spec: RunSpec[Any]) -> dict[str, Any]:
    """Options that a run's task does not have by itself."""
    own = flat(engine(spec.config.engine).preset(spec.task))
    given = flat(spec.config)
    return {n: v for n, v in given.items() if n not in SAME and v != own.get(n)}
