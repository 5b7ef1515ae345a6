"""Soft actor-critic: two learners with one contract, the replay that feeds them, relabelling."""

from typing import TYPE_CHECKING

from rollin.checks import shown
from rollin.errors import RollinError
from rollin.sac.config import LearnerName, SACConfig

if TYPE_CHECKING:
    from rollin.sac.learner import SACLearner
    from rollin.streams import Streams


def make_learner(
    name: LearnerName,
    observation_size: int,
    action_size: int,
    config: SACConfig,
    streams: "Streams",
) -> "SACLearner":
    """Return the learner of that name, with first parameters from the stream `init`.

    >>> import numpy as np
    >>> import rollin
    >>> config = rollin.SACConfig(hidden=(8, 8), batch=16)
    >>> learner = rollin.make_learner("cpu", 3, 1, config, rollin.Streams(seed=0))
    >>> learner.act(np.zeros(3)).shape
    (1,)
    >>> batch = np.random.default_rng(0).random((16, 9), np.float32)
    >>> info = learner.update(batch)
    >>> learner.count, info.temperature
    (1, 1.0)
    >>> learner.close()
    """
    from rollin.sac.learner import Layout  # not for the options, which import this package

    layout = Layout(observation_size, action_size, config.hidden)
    if name == "cpu":
        from rollin.sac.cpu.learner import CpuLearner as Kind
    elif name == "jax":
        if config.precision != "float32":
            raise RollinError(
                f"The learner jax computes in float32, got precision {config.precision}: choose "
                "precision float32, or the learner cpu."
            )
        from rollin.sac.jax import JaxLearner as Kind
    else:
        raise RollinError(f"The learner must be cpu or jax, got {shown(name)}.")
    try:
        return Kind(layout, config, streams)
    except MemoryError as error:
        raise RollinError(
            f"Networks of {config.hidden} with a batch of {config.batch} need more memory than "
            "is available: choose smaller ones."
        ) from error
