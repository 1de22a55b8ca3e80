"""What all pages share: templates, who looks, the headers that keep strangers out.

`/ui/events` tells open pages that something has happened. What it was they ask for themselves; what
happens within a second is told as one.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from windrow import __version__
from windrow.api.errors import ApiError
from windrow.errors import WindrowError
from windrow.queue.job import Job
from windrow.queue.queue import Queue
from windrow.redaction import redact_json
from windrow.services.broadcasting import Beat, Broadcast, TooManyListeners, Wanted
from windrow.services.keys import Role
from windrow.services.tenant_queue import TenantQueue
from windrow.web.sessions import NOTE, Forbidden, NotLoggedIn, Sessions, Viewer

STATIC: Final = Path(__file__).parent / "static"
_CODE: Final = re.compile(r"`([^`]+)`")
_ID: Final = re.compile(
    r"\b([Gg]roup )?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b(?![^<]*</code>)"
)
BRIEF: Final = 120  # characters of a payload in a list
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PLACES: Final = {
    "/": "Overview",
    "/ui/jobs": "Jobs",
    "/ui/failed": "Failed",
    "/ui/runs": "Crawls",
    "/ui/add": "Add",
    "/ui/search": "Search",
    "/ui/sources": "Sources",
    "/ui/pipelines": "Pipelines",
    "/ui/schedules": "Schedules",
    "/ui/settings": "Settings",
}

Page = Callable[["Look"], Awaitable[Response]]

BEAT_SECONDS: Final = 15.0
REST_SECONDS: Final = 1.0


class Look:
    """One request of somebody who may look."""

    def __init__(self, request: Request, viewer: Viewer) -> None:
        self.request = request
        self.viewer = viewer
        self.queue: Queue = request.app.state.queue
        self.jobs = TenantQueue(self.queue, viewer.tenant, is_admin=viewer.may("admin"))

    @property
    def query(self) -> Mapping[str, str]:
        return {name: value for name, value in self.request.query_params.items() if value.strip()}

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        page = ENVIRONMENT.get_template(template).render(
            viewer=self.viewer,
            places=self._places(),
            query=dict(self.query),
            said=self._note(),
            version=__version__,
            **values,
        )
        answer = HTMLResponse(page, status, HEADERS)
        if self._has_note:
            answer.delete_cookie(NOTE)
        return answer

    def _places(self) -> list[tuple[str, str, str]]:
        """Where the navigation leads: path, name, and whether somebody is there ("page") or below
        it ("true")."""
        here = self.request.url.path.replace("/ui/documents/", "/ui/sources/")
        hidden = set()
        if not self.viewer.may("write"):
            hidden.add("/ui/add")
        if not self.viewer.may("admin") or self.viewer.tenant is not None:
            hidden.add("/ui/settings")
        return [
            (path, name, "page" if here == path else "true" if here.startswith(f"{path}/") else "")
            for path, name in PLACES.items()
            if path not in hidden
        ]

    @property
    def _has_note(self) -> bool:
        """A page that asks for itself again leaves the note to the one it is for."""
        return NOTE in self.request.cookies and "x-live" not in self.request.headers

    def _note(self) -> str:
        if not self._has_note:
            return ""
        return self._sessions.read_note(self.viewer, self.request.cookies[NOTE])

    @property
    def _sessions(self) -> Sessions:
        sessions: Sessions = self.request.app.state.sessions
        return sessions

    async def form(self, role: Role) -> FormData:
        """What a form sent. Raises Forbidden."""
        self.viewer.require(role)
        form = await self.request.form(max_files=200, max_fields=200)
        token = form.get("token", "")
        if not isinstance(token, str) or not _are_same(token, self.viewer.token):
            raise Forbidden("the form has expired: go back, load the page again and repeat it")
        return form

    def back(self, to: str, said: str = "") -> Response:
        """Go to a page after something was done, which says so once."""
        answer = RedirectResponse(to, 303)
        if said:
            note = self._sessions.write_note(self.viewer, said[:300])
            set_cookie(self.request, answer, NOTE, note, seconds=60)
        return answer

    @property
    def came_from(self) -> str:
        """The page of ours that led here, or the first one."""
        parts = urlsplit(self.request.headers.get("referer", ""))
        is_ours = parts.netloc == self.request.url.netloc and parts.path.startswith("/")
        if not is_ours or parts.path.startswith("//"):  # which would be the address of another
            return "/"
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def fail(self, status: int, title: str, why: str) -> Response:
        back = self.came_from
        return self.render("error.html", status=status, title=title, why=why, back=back)


def set_cookie(request: Request, answer: Response, name: str, value: str, *, seconds: int) -> None:
    """Kept from scripts and from other sites."""
    is_secure = request.url.scheme == "https"
    answer.set_cookie(
        name, value, max_age=seconds, httponly=True, samesite="strict", secure=is_secure
    )


def _are_same(given: str, wanted: str) -> bool:
    # As bytes: as texts only those of ASCII can be compared.
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())


def page(show: Page) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint from a page: it is asked who looks, and errors become pages too."""

    async def endpoint(request: Request) -> Response:
        sessions: Sessions = request.app.state.sessions
        try:
            look = Look(request, await sessions.view(request))
        except NotLoggedIn:
            return RedirectResponse(_login_path(request), 303)
        except ApiError as error:
            return HTMLResponse(_plain(str(error)), error.status, HEADERS)
        try:
            return await show(look)
        except Forbidden as error:
            return look.fail(403, "Not allowed", str(error))
        except ApiError as error:
            return look.fail(error.status, "Oops", str(error))
        except WindrowError as error:
            status = 404 if type(error).__name__.endswith("NotFound") else 400
            title = "Not found" if status == 404 else "That did not work"
            return look.fail(status, title, str(error))

    return endpoint


def _login_path(request: Request) -> str:
    """With the page that is wanted, which is shown then."""
    wanted: str = request.scope.get("raw_path", b"/").decode("ascii", "replace")
    if request.url.query:
        wanted += f"?{request.url.query}"
    is_page = request.method == "GET" and wanted not in ("/", "/ui/events")
    return f"/ui/login?{urlencode({'next': wanted})}" if is_page else "/ui/login"


def _plain(text: str) -> str:
    return ENVIRONMENT.get_template("plain.html").render(text=text)


def _ago(moment: datetime | None) -> str:
    """`3 min ago`, `in 2 h`."""
    if moment is None:
        return ""
    seconds = (datetime.now(UTC) - moment).total_seconds()
    text = _span(abs(seconds))
    return "now" if abs(seconds) < 1 else f"{text} ago" if seconds > 0 else f"in {text}"


def _span(seconds: float | timedelta | None) -> str:
    if seconds is None:
        return ""
    total = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if total >= size * 2:
            return f"{total / size:.0f} {name}"
    if total < 1:
        return f"{total * 1000:.0f} ms"
    return f"{total:.0f} s" if total >= 10 else f"{total:.1f} s"


def _time(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _count(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ")


def counted(number: int, one: str, more: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{_count(number)} {one if number == 1 else more}"


def _size(number: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def _told(text: str, capital: bool = True) -> Markup:
    """A sentence of ours: names and commands as code, jobs and groups as links. What strangers
    wrote in it stays text."""
    begun = text[:1].upper() + text[1:] if capital else text
    shown = _CODE.sub(r"<code>\1</code>", str(escape(begun)))
    return Markup(_ID.sub(_link, shown))  # noqa: S704


def _link(found: re.Match[str]) -> str:
    page = "runs" if found[1] else "jobs"
    return f'{found[1] or ""}<a href="/ui/{page}/{found[2]}">{found[2]}</a>'


def _json(value: Any) -> str:
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    return text if len(text) <= 100_000 else text[:100_000] + "\n…"


def shown_payload(job: Job) -> str:
    """A payload as it may be shown, in one line."""
    text = redact_json(job.payload_json)
    return text if isinstance(text, str) else text.decode()


def _brief(job: Job) -> str:
    text = shown_payload(job)
    return text if len(text) <= BRIEF else text[:BRIEF] + "…"


def _make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("windrow.web"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": _ago,
        "span": _span,
        "time": _time,
        "count": _count,
        "counted": counted,
        "size": _size,
        "told": _told,
        "json": _json,
        "brief": _brief,
    }
    return environment


ENVIRONMENT: Final = _make_environment()


def load_templates() -> None:
    """Make the code of all templates, so that who opens a page first need not wait for it."""
    for name in ENVIRONMENT.list_templates():
        ENVIRONMENT.get_template(name)


async def follow(look: Look) -> Response:
    broadcast: Broadcast = look.request.app.state.broadcast
    stream = tell(broadcast, Wanted(tenant=look.viewer.tenant))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def tell(
    broadcast: Broadcast, wanted: Wanted, *, rest: float = REST_SECONDS
) -> AsyncIterator[bytes]:
    """Also of what happens while it rests, when it has rested. When it begins to listen, it tells
    of whatever may have happened before."""
    happened = asyncio.Event()
    listening = asyncio.create_task(_listen(broadcast, wanted, happened))
    try:
        yield b"retry: 3000\n\n"
        while not listening.done():
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    await happened.wait()
            except TimeoutError:
                yield b": beat\n\n"
                continue
            happened.clear()
            yield b"event: change\ndata: \n\n"
            await asyncio.sleep(rest)
    finally:
        listening.cancel()


async def _listen(broadcast: Broadcast, wanted: Wanted, happened: asyncio.Event) -> None:
    try:
        # With too many listeners, or when the server stops, it ends: the page asks again later.
        with suppress(TooManyListeners):
            async with aclosing(broadcast.listen(wanted, None, beat=BEAT_SECONDS)) as events:
                await anext(events)  # a beat: from now on
                happened.set()
                async for one in events:
                    if not isinstance(one, Beat):
                        happened.set()
    finally:
        happened.set()
