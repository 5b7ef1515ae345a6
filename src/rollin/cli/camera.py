"""Films a run's environment: by its own pictures, or by ours of its outcomes if it gives none."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rollin.cli.film import Film
from rollin.errors import RollinError, foreign
from rollin.report.episodes import episodes_figure
from rollin.report.style import styled
from rollin.runs.engines.playable import Playable

DRAWN = 60  # pictures of an episode that we draw, at most

Array = NDArray[Any]


class Camera:
    """Films some contexts, every so many steps; hint: what to do if the env cannot be drawn.

    An env that was made without a render mode gives no pictures: its outcomes are drawn instead.
    """

    def __init__(self, trained: Playable, contexts: Sequence[int], every: int, hint: str) -> None:
        self.film = Film()
        self.every = every
        self.ours = getattr(trained.env.env, "render_mode", None) is None
        self._trained, self._contexts, self._hint = trained, contexts, hint
        self._failed: RollinError | None = None
        self._steps: Counter[int] = Counter()
        self._paths: dict[int, list[Array]] = {}

    def take(self, k: int, outcome: Array) -> None:
        """A picture, if this context is filmed and nothing has failed yet."""
        if k not in self._contexts or self._failed is not None:
            return
        if self.ours:
            self._paths.setdefault(k, []).append(outcome)
            return
        if self._steps[k] % self.every == 0:
            try:
                self.film.add(rendered(self._trained, self._hint))
            except RollinError as error:
                self._failed = error
        self._steps[k] += 1

    def developed(self) -> Film:
        """All pictures, or the error that kept them from being taken."""
        if self._failed is not None:
            raise self._failed
        for k, path in self._paths.items():
            self._draw(k, np.array(path))
        return self.film

    def _draw(self, k: int, path: Array) -> None:
        """The way so far, picture by picture, on the axes of the whole way."""
        whole = self._figure(k, path).axes[0]
        for end in np.unique(np.linspace(1, len(path), min(DRAWN, len(path))).round().astype(int)):
            figure = self._figure(k, path[:end])
            figure.axes[0].set(xlim=whole.get_xlim(), ylim=whole.get_ylim())
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            self.film.add(np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3]))

    def _figure(self, k: int, path: Array) -> Figure:
        trained = self._trained
        title = f"κ = {trained.kappas[k]:.3g}"
        with styled():
            return episodes_figure([(title, trained.contexts[k], [path])], trained.env.draw)


def rendered(trained: Playable, hint: str) -> NDArray[np.uint8]:
    """A picture of the environment as it stands."""
    try:
        picture = trained.env.env.render()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a renderer without a display may raise anything
        raise foreign("The environment cannot draw itself here:", error, f".{hint}") from error
    if not isinstance(picture, np.ndarray):
        raise RollinError(
            "The environment gives no pictures: its render() must return an array when it is "
            "made with render_mode='rgb_array'."
        )
    return picture
