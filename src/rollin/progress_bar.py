"""What `rollin.train` shows while it runs: lines for mastered contexts, and a progress bar."""

from collections.abc import Callable
from typing import Any, Self

OnEvent = Callable[[Any], None]
EVERY = 100  # steps between two updates of the bar


class Display:
    """Prints and draws the steps of a run; quiet by default.

    on_event: the user's own function, called first. verbose: 1 prints a line for every mastered
    context. bar: show steps, time and the current context.
    """

    def __init__(self, on_event: OnEvent | None, verbose: int = 0, *, bar: bool = False) -> None:
        self._inner, self._verbose, self._bar = on_event, verbose, bar
        self._progress: Any = None
        self._task: Any = None
        self._K, self._completed = 0, False
        self.on_event = self._take if verbose or bar else on_event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, steps: int, K: int) -> None:
        """Start to draw; steps: of the whole run; K: index of the final context."""
        if not (self._verbose or self._bar):
            return
        from rich import progress  # only where somebody looks

        self._K = K
        self._progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            disable=not self._bar,
        )
        self._task = self._progress.add_task(self._label(0), total=steps)
        self._progress.start()

    def _label(self, k: int) -> str:
        return f"context {k}/{self._K}"

    def _take(self, event: Any) -> None:
        if self._inner is not None:
            self._inner(event)
        if self._verbose and event.mastered and not self._completed:
            self._completed = event.k == self._K  # every later episode there shows it again
            line = f"step {event.step:,}, {self._label(event.k)}: {event.mastered}"
            self._progress.console.print(line, soft_wrap=True, markup=False, highlight=False)
        last = event.step == self._progress.tasks[self._task].total
        if event.step % EVERY == 0 or event.episode is not None or last:
            self._progress.update(
                self._task, completed=event.step, description=self._label(event.k)
            )
