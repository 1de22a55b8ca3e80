"""`windrow video`: videos, from an address or a file to what is said in them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from windrow.cli.lazy import Noun
from windrow.cli.output import (
    INTERRUPTED,
    DatabaseOption,
    JsonOption,
    ask,
    give_up,
    load,
    plain,
    print_fields,
    print_json,
    print_table,
    run,
)
from windrow.settings import Settings

if TYPE_CHECKING:
    from windrow.queue.queue import Queue
    from windrow.services.video import VideoInfo

T = TypeVar("T")

app = Noun(help="Add videos and look at what is said in them.", no_args_is_help=True)


@app.command()
def add(
    what: Annotated[str, typer.Argument(metavar="URL|FILE", help="A video, or a recording.")],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Until it can be found?")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have a video transcribed, summarised and indexed: pending, scraping, enriching, done."""
    settings = load(database)
    from windrow.services.video import run_add_video

    tell = _Stages(is_shown=not quiet and not as_json)
    done = run(run_add_video(settings, what, tell, waits=wait))
    if as_json:
        print_json(video_fields(done.video) | {"is_interrupted": done.is_interrupted})
    else:
        print(f"{done.video.id}  {done.video.status}  {plain(done.video.title or done.video.url)}")
        if done.video.summary:
            print(plain(done.video.summary))
    if done.is_interrupted:
        print("Left as it is; a worker goes on with it.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    if done.video.status == "failed":
        raise give_up(plain(done.video.error or "failed without a reason"))


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="The id of its row.")],
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one video: where it is on its way, and what is said in it."""
    from windrow.services.video import get_video

    fields = video_fields(_ask(lambda queue: get_video(queue, id), database))
    if as_json:
        print_json(fields)
    else:
        print_fields(fields)


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(help="How many.")] = 50,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List videos, the newest first."""
    from windrow.services.video import list_videos

    found = _ask(lambda queue: list_videos(queue, limit), database)
    if as_json:
        print_json([video_fields(one) for one in found])
        return
    rows = [(one.id, one.status, one.title, one.url, one.error) for one in found]
    print_table(["id", "status", "title", "url", "error"], rows)


def video_fields(video: VideoInfo) -> dict[str, Any]:
    return {
        "id": video.id,
        "url": video.url,
        "status": video.status,
        "error": video.error,
        "title": video.title,
        "summary": video.summary,
        "transcript": video.transcript,
    }


class _Stages:
    """Each stage as it is entered, on stderr."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._last: str | None = None

    def __call__(self, video: VideoInfo) -> None:
        if self._is_shown and video.status != self._last:
            print(video.status, file=sys.stderr, flush=True)
            self._last = video.status


def _ask(work: Callable[[Queue], Coroutine[Any, Any, T]], database: str | None) -> T:
    from windrow.services.jobs import open_queue

    async def answer(settings: Settings) -> T:
        async with open_queue(settings, migrate=None) as queue:
            return await work(queue)

    return ask(answer, database)
