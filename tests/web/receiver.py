"""A receiver of webhooks for tests: it keeps what came, and answers as it is told to."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

SECRET = "a long secret"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "webhooks.md"


def _from_guide() -> Callable[[bytes, str | None, str], bool]:
    """How a receiver is told to check a signature."""
    found: dict[str, Any] = {}
    [code] = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    exec(code, found)  # noqa: S102 - our own guide
    is_ours: Callable[[bytes, str | None, str], bool] = found["is_ours"]
    return is_ours


is_ours = _from_guide()


@dataclass(frozen=True)
class Call:
    """One request that came."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self.raw)
        return decoded

    @property
    def is_signed(self) -> bool:
        return is_ours(self.raw, self.headers.get("x-firecrawl-signature"), SECRET)


class Receiver:
    """`answers[path]` are the statuses of the next answers, then it is 200; a status of 0 keeps the
    other side waiting until the end."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answers: dict[str, deque[int]] = defaultdict(deque)
        self.headers: dict[str, str] = {}
        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def types(self) -> list[str]:
        return [call.body["type"] for call in self.calls]

    def of_type(self, name: str) -> list[Call]:
        return [call for call in list(self.calls) if call.body["type"] == name]

    def wait_for(self, look: Callable[[], Any], seconds: float = 60) -> Any:
        give_up_at = time.monotonic() + seconds
        while not (found := look()):
            assert time.monotonic() < give_up_at, self.types
            time.sleep(0.02)
        return found

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.calls.append(Call(self.path, headers, raw))
                answers = receiver.answers[self.path]
                status = answers.popleft() if answers else 200
                if not status:
                    receiver._ended.wait()
                    return
                self.send_response(status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                receiver.calls.append(Call(self.path, {}, b'{"type": "GET"}'))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing: the calls are kept."""

        return Handler
