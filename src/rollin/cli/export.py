"""`rollin export RUN`: the policy of a run alone, with a page that describes it.

The page shows what the policy is, how it was made, its returns and how to use it. It is Markdown.
All that comes from a file stands in code, where no renderer interprets it.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from jinja2 import Environment, StrictUndefined

from rollin.checks import MOST_STEPS, at_least
from rollin.cli.console import make_console
from rollin.cli.evaluate import playable, row_of, some_contexts
from rollin.cli.options import Arg, parse
from rollin.deep.evaluate import EVALUATION_SEED
from rollin.policy import Float, Policy
from rollin.report.labels import NONE, SUCCESS, quantity_text, shown
from rollin.runs.curricula import Playable
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine, spec_of
from rollin.runs.exported import check_free, write_policy
from rollin.runs.files import PolicyFile
from rollin.runs.spec import flat

SAME = ("seed", "steps", "log_every", "eval_episodes", "keep_replay", "threads", "learner")
"""Options that the card shows elsewhere, or that do not change the policy."""


@dataclass(frozen=True)
class ExportOptions:
    """Export the actor of a run, to keep or to share: no critics, no replay, no code.

    rollin evaluate plays it, and rollin.Policy.load reads it.
    """

    run: Annotated[Path, Arg("RUN", positional=True)]
    """The run directory; of a run that is not finished, the last checkpoint counts."""
    out: Path = Path("policy")
    """The directory to write."""
    episodes: int = 10
    """Deterministic episodes on each context, for the table on its page."""
    seed: int = EVALUATION_SEED
    """Seed of the first episode; the following ones count up from it."""
    trust: bool = False
    """Run the code that the run names, module:factory, even if another user made the run."""


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
                result = trained.evaluate(k, options.episodes, options.seed, lambda *_: None)
            rows.append(row_of(trained, k, result))
        write(run, trained, rows, options)
    console.print(f"Policy: {options.out}, step {trained.step:,}, context {trained.k} reached",
                  soft_wrap=True)  # fmt: skip
    return 0


def write(
    run: RunDirectory, trained: Playable, rows: list[dict[str, Any]], options: ExportOptions
) -> None:
    """Write the actor, its card, which lists options that differ from the task's, and its file."""
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
    spec = spec_of(run)
    preset = flat(engine(spec.config.engine).preset(spec.task))
    changed = {
        name: value
        for name, value in flat(spec.config).items()
        if name not in SAME and value != preset.get(name)
    }
    policy = trained.policy
    write_policy(options.out, policy, about, lambda file: card(file, policy, changed))


# ------------------------------------------------------------------ the page


_MEAN = "_mean"
_KNOWN = ("k", "kappa", "context", "returns", "return_mean", "success", "threshold")


def card(about: PolicyFile, policy: Policy, options: Mapping[str, Any]) -> str:
    """The whole page. options: those of the run that differ from its task's own."""
    run = about.run
    provenance = {
        "command": run.command,
        "options that differ from the task's own": _listed(options, " = "),
        "hash of all options": run.spec_hash or "",
        "processor": run.processor,
        "versions": _listed(run.versions, " "),
        "study": ", ".join(filter(None, [run.family, _listed(run.labels, "=")])),
        "SHA-256 of `policy.safetensors`": about.sha256,
    }
    text = files("rollin.report").joinpath("templates/card.md.j2").read_text("utf-8")
    page = Environment(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    return page.from_string(text).render(
        about=about,
        policy=policy,
        code=code,
        method=_method(run.config),
        last=len(about.curriculum["contexts"]) - 1,
        bounds=_bounds,
        widths=[len(policy.layers[0]) - 1, *_widths(policy)],
        success=SUCCESS,
        table=_table(about.evaluation, run.engine),
        provenance=[(name, value) for name, value in provenance.items() if value],
    )


def _listed(values: Mapping[str, Any], between: str) -> str:
    """Names and values in a line."""
    return ", ".join(f"{name}{between}{value}" for name, value in values.items())


def code(text: Any) -> str:
    """Something from a file as code, whatever is in it."""
    plain = shown(str(text)).replace("|", "¦")  # which would end a table's cell
    fence = "`" * (1 + max(map(len, re.findall("`+", plain)), default=0))
    space = " " if plain.startswith("`") or plain.endswith("`") or not plain else ""
    return f"{fence}{space}{plain}{space}{fence}"


def _method(options: Mapping[str, Any]) -> str:
    """What trained it, of the methods that the paper compares; nothing of another engine."""
    algorithm = options.get("algorithm") or {}
    method = algorithm.get("method")
    if not method:
        return ""
    names = {
        "rollin": f"by ROLLIN with β = {code(algorithm.get('beta'))} ",
        "baseline": "by the baseline, which is the curriculum **without roll-in**, ",
        "scratch": "on the last context alone, without a curriculum, ",
    }
    return names.get(str(method), f"by the method {code(method)} ")


def _bounds(bound: Float) -> str:
    """A bound of all actions, as one number if it is one."""
    found = sorted({f"{value:g}" for value in bound})
    return found[0] if len(found) == 1 else ", ".join(f"{value:g}" for value in bound)


def _widths(policy: Policy) -> list[int]:
    """Outputs of each layer; of the last, means without deviations."""
    widths = [layer.shape[1] for layer in policy.layers]
    return [*widths[:-1], widths[-1] // 2]


def _table(rows: Sequence[Mapping[str, Any]], engine: str) -> str:
    measured = [name for name in (rows[0] if rows else ()) if name not in _KNOWN]
    titles = ["k", "κ", "context", "return", "± std", "worst", "success", "threshold"]
    titles += [quantity_text(name.removesuffix(_MEAN), engine) for name in measured]
    lines = [titles, ["---"] * len(titles)]
    for row in rows:
        returns = row["returns"]
        threshold = row["threshold"]
        lines.append(
            [
                str(row["k"]),
                f"{row['kappa']:.3f}",
                ", ".join(f"{x:.3g}" for x in row["context"]),
                f"{row['return_mean']:.2f}",
                f"{statistics.pstdev(returns):.2f}",
                f"{min(returns):.2f}",
                f"{row['success']:.0%}",
                NONE if threshold is None else f"> {threshold:g}",
                *(f"{row[name]:.3g}" for name in measured),
            ]
        )
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
