"""Forms that are sent with something wrong in them come back as they were typed."""

from __future__ import annotations

from html import unescape

import httpx

from tests.dashboard.conftest import Shown
from tests.dashboard.test_pages import admin, token_of

__all__ = ["admin"]


def test_an_upload_in_part_says_what_was_taken_in_and_what_was_refused(
    admin: httpx.Client,
) -> None:
    files = [
        ("files", ("good.md", b"# Tedders\n\nThey turn hay.")),
        ("files", ("empty.txt", b"")),
        ("files", ("b.bin", bytes(range(256)) * 9)),
    ]
    form = {"do": "files", "token": token_of(admin), "tags": "hay, dry"}
    answer = admin.post("/ui/add", data=form, files=files)
    assert (answer.status_code, "1 taken in, 2 refused:" in answer.text) == (200, True)
    assert "empty.txt: there is no text in it" in answer.text
    assert 'value="hay, dry"' in answer.text
    assert "good.md" in admin.get("/ui/sources").text

    answer = admin.post("/ui/add", data=form, files=files[:1])
    assert "1 file is being taken in" in answer.text


def test_a_form_with_a_mistake_keeps_what_was_typed(admin: httpx.Client) -> None:
    token = token_of(admin)
    form = {"do": "site", "url": "ftp://hay", "limit": "7", "collection": "barn", "token": token}
    answer = admin.post("/ui/add", data=form)
    assert answer.status_code == 400
    for kept in ("begin with http://", 'value="ftp://hay"', 'value="7"', 'value="barn"'):
        assert kept in answer.text
    form = {"do": "note", "text": "  ", "tags": "<hay>", "token": token}
    answer = admin.post("/ui/add", data=form)
    assert "the note is empty" in answer.text
    assert answer.text.count('value="&lt;hay&gt;"') == 1  # the other forms are as they were


def test_a_payload_with_a_mistake_stays_in_its_form(admin: httpx.Client, shown: Shown) -> None:
    form = {"do": "edit", "token": token_of(admin), "payload": '\n{"n": 5,}', "priority": "3"}
    answer = admin.post(f"/ui/jobs/{shown.failed[1]}", data=form)
    assert answer.status_code == 400
    assert "no JSON" in answer.text
    assert '>\n\n{"n": 5,}</textarea>' in unescape(answer.text)  # the first line end is HTML's
    assert 'name="priority" value="3"' in answer.text


def test_pages_of_errors_lead_back_to_where_one_was(admin: httpx.Client) -> None:
    here = f"{admin.base_url}/ui/jobs?state=failed"
    missing = admin.get("/ui/jobs/nonsense", headers={"Referer": here})
    assert '<a href="/ui/jobs?state=failed">Back</a>' in missing.text
    for other in ("https://example.org/x", f"{admin.base_url}//example.org"):
        stranger = admin.get("/ui/jobs/nonsense", headers={"Referer": other})
        assert '<a href="/">Back</a>' in stranger.text
