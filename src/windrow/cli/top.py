"""`windrow top`: the queue at a glance, live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from windrow.cli.output import (
    MISUSED,
    DatabaseOption,
    JsonOption,
    age,
    ask,
    give_up,
    make_console,
    parse_duration,
    print_json,
    table_lines,
)
from windrow.cli.terminal import Keys, pressed_keys
from windrow.errors import WindrowError
from windrow.queue.job import JobState
from windrow.redaction import redact_url
from windrow.services.jobs import open_queue
from windrow.services.overview import Overview, OwnPlace, Place, Watch
from windrow.settings import Settings

OpenPlace = Callable[[Settings], AbstractAsyncContextManager[tuple[str, Place]]]

INTERVAL_SECONDS = 1.0
SHORTEST_INTERVAL = 0.1
HELP = "q quit   ↑ ↓ choose a queue   p pause or resume it"


@dataclass(slots=True)
class Screen:
    """What is shown, and which queue is chosen."""

    seen: Overview
    chosen: int = 0
    problem: str | None = None  # why what is shown is old

    @property
    def chosen_queue(self) -> str | None:
        names = [info.name for info in self.seen.queues]
        return names[min(self.chosen, len(names) - 1)] if names else None

    def move(self, step: int) -> None:
        self.chosen = min(max(0, self.chosen + step), max(0, len(self.seen.queues) - 1))


def top(
    once: Annotated[bool, typer.Option("--once", help="Print it once and end.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(parser=parse_duration, metavar="TIME", help="How often to look. Default: 1s."),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Look at a server and not at a database."),
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(help="The key for it. Better: WINDROW_SERVER_KEY.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch queues, throughput, workers and limits. --json prints it once."""
    seconds = INTERVAL_SECONDS if interval is None else interval
    if seconds < SHORTEST_INTERVAL:
        raise give_up(f"--interval is at least {SHORTEST_INTERVAL} s", MISUSED)
    if server and database:
        raise give_up("--server or --database, not both", MISUSED)
    place = partial(_place, server, api_key, database)
    if as_json:
        print_json(overview_fields(ask(_look, database, place)))
    elif once:
        console = make_console()
        for line in frame(Screen(ask(_look, database, place)), "", console.width):
            console.print(line, no_wrap=True, overflow="ignore", crop=False)
    else:
        with suppress(KeyboardInterrupt):
            ask(_watch, database, place, seconds)


@asynccontextmanager
async def _place(
    server: str | None, key: str | None, database: str | None, settings: Settings
) -> AsyncIterator[tuple[str, Place]]:
    """What is looked at, and its name: what was named, else what the settings name."""
    url = server or ("" if database else settings.server_url)
    if url:
        from windrow.services.distant import open_server  # with aiohttp, which most do not need

        async with open_server(url, key or settings.server_key) as opened:
            yield opened.url, opened
    else:
        async with open_queue(settings) as queue:
            yield redact_url(settings.database_url), OwnPlace(queue)


async def _look(settings: Settings, place: OpenPlace) -> Overview:
    async with place(settings) as (_, found):
        return await Watch(found).look()


async def _watch(settings: Settings, place: OpenPlace, seconds: float) -> None:
    """Show it until somebody presses q. What goes away is waited for."""
    console = make_console()
    async with place(settings) as (title, found):
        watch = Watch(found)
        screen = Screen(await watch.look())
        with (
            pressed_keys() as keys,
            Live(console=console, screen=True, auto_refresh=False) as live,
        ):
            while True:
                lines = [*frame(screen, title, console.width), Text(), Text(HELP, "dim")]
                live.update(Group(*lines), refresh=True)
                try:
                    if await _obey(keys, screen, watch, seconds):
                        return
                    screen.seen = await watch.look()
                    screen.problem = None
                except WindrowError as error:
                    screen.problem = str(error)


async def _obey(keys: Keys, screen: Screen, watch: Watch, seconds: float) -> bool:
    """Do what a key says, or nothing for so many seconds; whether to end."""
    try:
        key = await asyncio.wait_for(keys.get(), seconds)
    except TimeoutError:
        return False
    match key:
        case "q":
            return True
        case "up" | "k":
            screen.move(-1)
        case "down" | "j":
            screen.move(1)
        case "p" if screen.chosen_queue is not None:
            await watch.toggle(screen.chosen_queue)
    return False


def frame(screen: Screen, title: str, width: int) -> Iterator[Text]:
    """The lines of one screen, none wider than this."""
    seen = screen.seen
    line = Text("  ".join(part for part in ("windrow", title, f"{seen.at:%H:%M:%S} UTC") if part))
    line.truncate(width, overflow="ellipsis")
    yield line
    yield from _totals(seen)
    if screen.problem is not None:
        problem = Text(f"what you see is old: {screen.problem}", "bold red")
        problem.truncate(width, overflow="ellipsis")
        yield problem
    for lines in (_queues(screen, width), _workers(seen, width), _limits(seen, width)):
        yield Text()
        yield from lines


def _totals(seen: Overview) -> Iterator[Text]:
    oldest = min(
        (info.oldest_ready_at for info in seen.queues if info.oldest_ready_at), default=None
    )
    busy = sum(worker.running for worker in seen.workers)
    places = sum(worker.concurrency for worker in seen.workers)
    yield Text(
        f"{seen.rate.now:.1f} jobs/s now, {seen.rate.mean:.1f} on average; "
        f"oldest ready {age(oldest)}; {busy} of {places} places in use"
    )


def _queues(screen: Screen, width: int) -> Iterator[Text]:
    queues = screen.seen.queues
    if not queues:
        yield Text("no queue has jobs")
        return
    states = [state for state in JobState if any(info.counts.get(state) for info in queues)]
    rows = [
        [
            ">" if info.name == screen.chosen_queue else "",
            info.name,
            "paused" if info.is_paused else "",
            *(short(info.counts.get(state, 0)) for state in states),
            f"{screen.seen.rates[info.name].now:.1f}",
            age(info.oldest_ready_at),
        ]
        for info in queues
    ]
    columns = ["", "queue", "", *(f"{state}#" for state in states), "per s#", "oldest#"]
    yield from _table(columns, rows, width)


def _workers(seen: Overview, width: int) -> Iterator[Text]:
    """Those that are alive, and those that only show by what they run."""
    kinds: dict[str, dict[str, int]] = {}
    for job in seen.running:
        of_worker = kinds.setdefault(job.worker or "?", {})
        of_worker[job.kind] = of_worker.get(job.kind, 0) + 1
    known = {worker.name for worker in seen.workers}
    rows: list[list[object]] = [
        [
            worker.name,
            "all" if worker.queues is None else ", ".join(worker.queues),
            f"{worker.running}/{worker.concurrency}",
            age(worker.started_at),
            _spelled(kinds.get(worker.name, {})),
        ]
        for worker in seen.workers
    ]
    rows += [
        [name, "-", sum(runs.values()), "-", _spelled(runs)]
        for name, runs in sorted(kinds.items())
        if name not in known
    ]
    if rows:
        yield from _table(["worker", "queues", "running#", "up#", "kinds"], rows, width)
    elif not seen.sees_all:
        yield Text("workers are shown to a key of all tenants", "dim")
    else:
        yield Text("no worker is alive", "bold red" if seen.count(JobState.READY) else "")


def _limits(seen: Overview, width: int) -> Iterator[Text]:
    if seen.limits:
        rows = [
            [
                one.key,
                one.in_use,
                one.ready,
                one.active,
                one.per_second,
                age(one.parked_until) if one.parked_until else "",
            ]
            for one in seen.limits
        ]
        yield from _table(
            ["limit", "in use#", "ready#", "active#", "per second#", "parked#"], rows, width
        )


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> Iterator[Text]:
    return map(Text.from_ansi, table_lines(columns, rows, width, is_coloured=True))


def _spelled(kinds: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))


def short(count: int) -> str:
    """A number in at most five characters."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 10 * size or (count >= size and size > 1000):
            whole = count / size
            return f"{whole:.1f}{unit}" if whole < 100 else f"{whole:.0f}{unit}"
    return str(count)


def overview_fields(seen: Overview) -> dict[str, Any]:
    """An overview for JSON; rates take more than one look."""
    return {
        "at": seen.at,
        "queues": seen.queues,
        "workers": seen.workers,
        "running": seen.running,
        "limits": seen.limits,
    }
