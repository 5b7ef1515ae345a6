"""The page beside an exported policy: what it is, how it was made, what it earns, how to use it.

Markdown. All that comes from a file stands in code, where it means nothing to whoever renders it.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rollin.policy import Float, Policy
from rollin.report.words import NONE, SUCCESS, quantity_text, shown
from rollin.runs.formats import PolicyFile

_MEAN = "_mean"
_KNOWN = ("k", "kappa", "context", "returns", "return_mean", "success", "threshold")


def card(about: PolicyFile, policy: Policy, options: Mapping[str, Any]) -> str:
    """The whole page. options: those of the run that differ from its task's own."""
    run, last = about.run, len(about.curriculum["contexts"]) - 1
    task, seed = code(run.task), run.config.get("seed")
    parts = [
        f"# A policy for {task}",
        f"Trained {_method(run.config)}for {about.step:,} steps with seed {seed}. Training had "
        f"come to context {about.k} of {last}{_beyond(about.k, last)}. This is one run: another "
        "seed may end elsewhere. The software is rollin, an independent implementation of ROLLIN "
        "(arXiv 2212.12809).",
        f"- **Observation**: {policy.observation_size} numbers; **context**: "
        f"{policy.contexts.shape[1]}; **action**: {len(policy.low)}, within "
        f"{code(_range(policy.low))} and {code(_range(policy.high))}.",
        "- **Network**: "
        + " → ".join(str(size) for size in (len(policy.layers[0]) - 1, *_widths(policy)))
        + ", in float32, the actor alone: no critics, no optimiser, no replay.",
        "## What it earns",
        f"{about.episodes} deterministic episodes on each context, first states by seeds from "
        f"{about.seed} on. {SUCCESS}",
        _table(about.evaluation),
        "## Use it",
        "In the directory of this page:",
        "```\nrollin evaluate .                      # the table above\n"
        "rollin evaluate . --video film.gif     # and a film\n```",
        '```python\nimport rollin\n\npolicy = rollin.Policy.load(".")\n'
        "action = policy.act(observation, context)\n```",
        "No code comes with it, and none is run by loading it.",
        "## How it was made",
        "\n".join(_provenance(about, options)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def code(text: Any) -> str:
    """Something from a file as code, whatever is in it."""
    plain = shown(str(text)).replace("|", "¦")  # which would end a table's cell
    fence = "`" * (1 + max(map(len, re.findall("`+", plain)), default=0))
    space = " " if plain.startswith("`") or plain.endswith("`") or not plain else ""
    return f"{fence}{space}{plain}{space}{fence}"


def _method(options: Mapping[str, Any]) -> str:
    """What trained it, of the methods that the paper compares; nothing of another engine."""
    algorithm = options.get("algorithm")
    method, beta = (algorithm.get(name) for name in ("method", "beta")) if algorithm else (None, "")
    names = {
        "rollin": f"by ROLLIN with β = {code(beta)} ",
        "baseline": "by the baseline, which is the curriculum **without roll-in**, ",
        "scratch": "on the last context alone, without a curriculum, ",
    }
    return names.get(str(method), f"by the method {code(method)} " if method else "")


def _beyond(k: int, last: int) -> str:
    return "" if k == last else "; it was not trained on those after it"


def _range(bound: Float) -> str:
    """A bound of all actions, as one number if it is one."""
    found = sorted({f"{value:g}" for value in bound})
    return found[0] if len(found) == 1 else ", ".join(f"{value:g}" for value in bound)


def _widths(policy: Policy) -> list[int]:
    """Outputs of each layer; of the last, means without deviations."""
    widths = [layer.shape[1] for layer in policy.layers]
    return [*widths[:-1], widths[-1] // 2]


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    measured = [name for name in (rows[0] if rows else ()) if name not in _KNOWN]
    titles = ["k", "κ", "context", "return", "± std", "worst", "success", "threshold"]
    titles += [quantity_text(name.removesuffix(_MEAN)) for name in measured]
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


def _provenance(about: PolicyFile, options: Mapping[str, Any]) -> list[str]:
    run = about.run
    told = ", ".join(f"{name} = {value}" for name, value in options.items())
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    rows = {
        "command": run.command,
        "options that differ from the task's own": told,
        "hash of all options": run.spec_hash or "",
        "processor": run.processor,
        "versions": versions,
        "study": ", ".join([run.family, *(f"{n}={v}" for n, v in run.labels.items())]),
        "SHA-256 of `policy.safetensors`": about.sha256,
    }
    return [f"- {name}: {code(value)}" for name, value in rows.items() if value]
