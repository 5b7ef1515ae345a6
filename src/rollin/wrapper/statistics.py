"""Running means and variances of observations, frozen: what a guide knew of them in its time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
WHOLE = ""  # key of observations that are no Dict


class Statistics:
    """What Stable-Baselines3's `VecNormalize` makes of observations, frozen."""

    def __init__(self, moments: Mapping[str, tuple[Any, Any]], epsilon: float, clip: float) -> None:
        self.moments = {key: (np.array(m), np.array(v)) for key, (m, v) in moments.items()}
        self.epsilon, self.clip = float(epsilon), float(clip)

    @classmethod
    def of(cls, normaliser: Any) -> "Statistics | None":
        """A copy of the statistics of a `VecNormalize`; None if observations are as they are."""
        if normaliser is None or not normaliser.norm_obs:
            return None
        rms: Any = normaliser.obs_rms
        parts = rms if isinstance(rms, dict) else {WHOLE: rms}
        moments = {key: (part.mean, part.var) for key, part in parts.items()}
        return cls(moments, normaliser.epsilon, normaliser.clip_obs)

    def __call__(self, observation: Any) -> Any:
        """A normalised observation."""
        if not isinstance(observation, Mapping):
            return self._normalised(WHOLE, observation)
        return {
            key: self._normalised(key, part) if key in self.moments else part
            for key, part in observation.items()
        }

    def _normalised(self, key: str, part: Any) -> Any:
        mean, var = self.moments[key]
        scaled = (part - mean) / np.sqrt(var + self.epsilon)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)

    def tensors(self) -> Arrays:
        """Everything, by name."""
        found = {"epsilon": np.array(self.epsilon), "clip": np.array(self.clip)}
        for key, (mean, var) in self.moments.items():
            found |= {f"mean.{key}": mean, f"var.{key}": var}
        return found

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Any]) -> "Statistics | None":
        """From what `tensors` gave; None if that is empty."""
        if not tensors:
            return None
        keys = [name.removeprefix("mean.") for name in tensors if name.startswith("mean.")]
        moments = {key: (tensors[f"mean.{key}"], tensors[f"var.{key}"]) for key in keys}
        return cls(moments, float(tensors["epsilon"]), float(tensors["clip"]))
