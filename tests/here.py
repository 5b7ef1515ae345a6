"""Jobs done in this process: for tests of what happens around them, without a worker's start."""

import time

from rollin.runs.spec import Job, JobEvent
from rollin.sweeps.queue import attempt


def hurried() -> float:
    """A clock for `run_jobs` on which a lost run hardly waits before it is begun again."""
    return 100 * time.monotonic()


class HereExecutor:
    """One job at a time, done when it is started."""

    def __init__(self, command: str = "") -> None:
        self.command = command
        self._news: list[JobEvent] = []

    def room(self, job: Job) -> bool:
        """Whether the news of the last one were heard."""
        return not self._news

    def start(self, job: Job) -> None:
        """Do it, from beginning to end."""

        def tell(status) -> None:
            self._news.append(JobEvent("progress", job, status))

        kind, status = attempt(job, self.command, tell, lambda: False)
        self._news.append(JobEvent(kind, job, status))

    def wait(self, seconds: float) -> list[JobEvent]:
        """All that has happened."""
        if not self._news:
            time.sleep(seconds)
        news, self._news = self._news, []
        return news

    def stop(self) -> list[JobEvent]:
        """Nothing runs between two calls."""
        return []
