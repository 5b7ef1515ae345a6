"""What a run of plain SAC leaves: its result.json, and what is read of its checkpoint."""

import msgspec

from rollin.runs.formats import Count, Seconds


class SACResult(msgspec.Struct, forbid_unknown_fields=True):
    """result.json of a run of plain SAC."""

    eval_return: float
    env_steps: Count
    episodes: Count
    updates: Count
    seconds: Seconds
    spec_hash: str
    versions: dict[str, str]
    sha256: dict[str, str] = {}


class LearnerSaved(msgspec.Struct):
    """What a record needs of a checkpoint's learner."""

    count: Count


class SACSaved(msgspec.Struct):
    """What a record needs of a checkpoint's values."""

    learner: LearnerSaved
    seconds: Seconds
