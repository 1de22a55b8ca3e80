"""How far a crawl is, in one line that is drawn anew: pages, rate, failures, time left."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from windrow.services.attending import Pace
from windrow.services.web import Crawl


class ProgressLine:
    """On stderr, where people look; stdout is for what was asked for."""

    def __init__(self, *, is_shown: bool) -> None:
        self._pace = Pace()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.completed:g} of {task.total:g} pages"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[failed]}", style="red"),
            TextColumn("{task.fields[left]}", style="dim"),
            console=Console(stderr=True, highlight=False),
            transient=True,
            disable=not is_shown,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def show(self, crawl: Crawl) -> None:
        ended = crawl.completed + crawl.failed
        self._pace.note(time.monotonic(), ended)
        fields = describe(crawl, self._pace)
        total = max(ended + crawl.pending, 1)
        if self._task is None:
            self._task = self._progress.add_task("", total=total, **fields)
        self._progress.update(self._task, completed=ended, total=total, **fields)


def describe(crawl: Crawl, pace: Pace) -> dict[str, Any]:
    """The words beside the bar."""
    left = pace.seconds_left(crawl.pending)
    return {
        "rate": f"{pace.rate:.1f}/s",
        "failed": f"{crawl.failed} failed" if crawl.failed else "",
        "left": "" if left is None or not crawl.pending else f"{_clock(left)} left",
    }


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
