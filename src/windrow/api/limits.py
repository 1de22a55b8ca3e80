"""Bodies that are too large are refused, whether their length is told before or not."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windrow.api.answers import answer

MAX_BODY: Final = 10 * 1024 * 1024
MAX_UPLOAD: Final = 50 * 1024 * 1024  # of files, which are not kept in memory while they come
UPLOADS: Final = ("/documents/upload", "/api/documents/upload")


class TooLarge(Exception):
    """More came than is taken."""


class BodyLimit:
    def __init__(self, app: ASGIApp, most: int = MAX_BODY) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = MAX_UPLOAD if scope["path"] in UPLOADS else self._most
        if _length(scope) > most:
            await self._refuse(most, scope, receive, send)
            return
        seen = 0
        has_begun = False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except TooLarge:
            if has_begun:
                raise
            await self._refuse(most, scope, receive, send)

    async def _refuse(self, most: int, scope: Scope, receive: Receive, send: Send) -> None:
        said = f"the body is larger than {most} bytes"
        body = {"success": False, "code": "PAYLOAD_TOO_LARGE", "error": said}
        await answer(body, 413, headers={"Connection": "close"})(scope, receive, send)


def _length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
