"""Short ways to ask the knowledge API."""

from __future__ import annotations

import time
from typing import Any, Self

import httpx

SECONDS = 60


class Asking:
    """Somebody with a key."""

    def __init__(self, url: str, key: str | None) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.client = httpx.Client(base_url=url, headers=headers, timeout=SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def get(self, path: str, expected: int = 200, **params: Any) -> Any:
        return self._said(self.client.get(path, params=params), expected)

    def post(self, path: str, body: Any = None, expected: int = 200, **more: Any) -> Any:
        return self._said(self.client.post(path, json=body, **more), expected)

    def put(self, path: str, body: Any, expected: int = 200) -> Any:
        return self._said(self.client.put(path, json=body), expected)

    def delete(self, path: str, expected: int = 200) -> Any:
        return self._said(self.client.delete(path), expected)

    def crawl(self, url: str, **options: Any) -> tuple[str, str]:
        """Begin; the ids of the operation and the source."""
        said = self.post("/api/knowledge-items/crawl", {"url": url, **options})
        return said["progressId"], said["source_id"]

    def follow(self, progress_id: str) -> list[dict[str, Any]]:
        """Every different answer until the end, asked for as a user interface does."""
        seen: list[dict[str, Any]] = []
        headers: dict[str, str] = {}
        give_up_at = time.monotonic() + SECONDS
        while time.monotonic() < give_up_at:
            answer = self.client.get(f"/api/crawl-progress/{progress_id}", headers=headers)
            if answer.status_code != 304:
                assert answer.status_code == 200, answer.text
                seen.append(answer.json())
            headers = {"If-None-Match": answer.headers["ETag"]}
            if answer.headers["X-Poll-Interval"] == "0":
                return seen
            time.sleep(0.02)
        raise AssertionError(f"it does not end: {seen[-1]}")

    def add(self, url: str, **options: Any) -> str:
        """Have a site crawled and wait until it can be found; its source."""
        progress_id, source = self.crawl(url, **options)
        end = self.follow(progress_id)[-1]
        assert end["status"] == "completed", end
        return source

    def _said(self, answer: httpx.Response, expected: int) -> Any:
        assert answer.status_code == expected, answer.text
        return answer.json() if answer.content else None
