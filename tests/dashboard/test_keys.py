"""Keys made on the dashboard: shown once, and seen; and the first locks nobody out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.server import Server
from tests.dashboard.test_pages import TOKEN, log_in, token_of

KEY = re.compile(r"wr-[\w-]{40,}")


@pytest.fixture
def open_server(tmp_path: Path) -> Iterator[Server]:
    """One without keys, which serves its own machine."""
    with Server(tmp_path, WINDROW_DATA_DIR=str(tmp_path / "data")) as server:
        yield server


def test_the_first_key_is_an_admins_and_lets_its_maker_go_on(open_server: Server) -> None:
    with httpx.Client(base_url=open_server.url, follow_redirects=True, timeout=60) as local:
        page = local.get("/ui/settings").text
        assert "With the first key everybody needs one" in page
        assert "<select" not in page
        [token] = set(TOKEN.findall(page))
        for wrong in ({"role": "write"}, {}, {"role": "admin", "tenant": "acme"}):
            form = {"do": "make", "name": "first", "token": token} | wrong
            refused = local.post("/ui/settings", data=form)
            assert refused.status_code == 400
            assert "the first key must be an admin" in refused.text
            assert 'value="first"' in refused.text
        form = {"do": "make", "name": "first", "token": token, "role": "admin"}
        made = local.post("/ui/settings", data=form).text
        [key] = KEY.findall(made)
        assert made.index("<h1>The key first is made</h1>") < made.index(key)
        assert 'data-copy="key"' in made
        assert str(local.get("/").url).endswith("/ui/login")
    with log_in(open_server, key) as admin:
        form = {"do": "make", "name": "second", "role": "read", "token": token_of(admin)}
        assert KEY.search(admin.post("/ui/settings", data=form).text)
