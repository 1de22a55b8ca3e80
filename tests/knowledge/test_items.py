"""What items are: the pairs, the payloads, the keys and the priorities of the seed document."""

from __future__ import annotations

import hashlib
from itertools import product
from typing import Any

import pytest

from windrow.errors import InvalidJob
from windrow.pipelines.knowledge.context import Knowledge
from windrow.pipelines.knowledge.handlers import IN_BATCHES, ONE_BY_ONE, knowledge_handlers
from windrow.pipelines.knowledge.items import OPERATIONS, PAYLOADS, kind_of, new_item

EXAMPLES: dict[str, tuple[dict[str, Any], str]] = {
    "content": ({"content": "text", "source_type": "mcp", "main_tag": "a"}, "text"),
    "file": ({"file_path": "/a/b.py", "file_type": "code", "size_bytes": 3}, "/a/b.py"),
    "folder": ({"folder_path": "/a", "recursive": True, "patterns": ["*.py"]}, "/a"),
    "project": ({"project_root": "/p", "git_remote": "https://h/x"}, "/p"),
    "library": ({"library_name": "q", "library_version": "1.15.0"}, "q:1.15.0"),
    "delete_tenant": ({"tenant_id_to_delete": "t", "reason": "user_request"}, "t"),
    "delete_document": ({"document_id": "d", "point_ids": ["p"]}, "d"),
    "rename": ({"old_path": "/o", "new_path": "/n", "is_folder": False}, "/o:/n"),
}


def test_u2_there_are_eighteen_pairs_and_each_has_a_handler() -> None:
    pairs = {(item_type, op) for item_type, ops in OPERATIONS.items() for op in ops}

    assert len(pairs) == 18
    assert {*ONE_BY_ONE, *IN_BATCHES} == pairs


def test_u2_other_pairs_are_refused() -> None:
    operations = ("ingest", "update", "delete", "scan")
    refused = [
        (item_type, op)
        for item_type, op in product(OPERATIONS, operations)
        if op not in OPERATIONS[item_type]
    ]
    assert len(refused) == 14
    for item_type, op in refused:
        with pytest.raises(InvalidJob, match=f"{item_type} cannot be '{op}'"):
            kind_of(item_type, op)
    with pytest.raises(InvalidJob, match="no item type 'url'"):
        kind_of("url", "ingest")


@pytest.mark.parametrize("item_type", list(PAYLOADS))
def test_u4_keys_are_made_as_the_document_says(item_type: Any) -> None:
    payload, identifier = EXAMPLES[item_type]
    op = OPERATIONS[item_type][0]

    item = new_item(item_type, op, "docs", payload)

    digest = hashlib.sha256(identifier.encode()).hexdigest()[:16]
    assert item.unique == f"{item_type}:docs:{digest}"
    assert (item.kind, item.on_conflict) == (f"{item_type}.{op}", "follow")
    assert item.headers == {"collection": "docs"}
    assert (item.lease, item.max_attempts) == (None, 4)


@pytest.mark.parametrize(
    ("item_type", "payload", "complaint"),
    [
        ("file", {}, "file_path"),
        ("file", {"file_path": 3}, r"\$\.file_path"),
        ("file", {"file_path": "relative.py"}, "file_path of file must be an absolute path"),
        ("folder", {"folder_path": "/a", "patterns": "*.py"}, r"\$\.patterns"),
        ("folder", {"folder_path": "/a", "recursive_depth": "ten"}, r"\$\.recursive_depth"),
        ("rename", {"old_path": "/a"}, "new_path"),
        ("content", {"content": None}, r"\$\.content"),
        ("library", {"library_version": "1"}, "library_name"),
    ],
)
def test_u3_payload_that_does_not_fit_is_refused_by_its_field(
    item_type: Any, payload: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidJob, match=complaint):
        new_item(item_type, OPERATIONS[item_type][0], "docs", payload)


def test_u5_priorities_are_those_of_the_table() -> None:
    chosen = {
        item_type: new_item(item_type, ops[0], "docs", EXAMPLES[item_type][0]).priority
        for item_type, ops in OPERATIONS.items()
    }
    assert chosen["content"] == 8
    assert chosen["file"] == 5
    assert chosen["folder"] == 3
    assert chosen["library"] == 1
    for priority in (-1, 11):
        with pytest.raises(InvalidJob, match="0 to 10"):
            new_item("file", "ingest", "docs", EXAMPLES["file"][0], priority=priority)
    with pytest.raises(InvalidJob, match="needs a collection"):
        new_item("file", "ingest", "", EXAMPLES["file"][0])


def test_u6_leases_are_the_workers_unless_set_per_type(queue: Any) -> None:
    handlers = knowledge_handlers(Knowledge(queue), leases={"folder": 900})

    leases = {one.kind: one.lease for one in handlers}
    assert leases["file.ingest"] == leases["rename.update"] is None
    assert leases["folder.scan"] == leases["folder.ingest"] == 900
    assert len(handlers) == 21  # those of refreshes, sessions and what is handed in too


def test_items_of_two_sources_have_two_keys() -> None:
    payload = EXAMPLES["file"][0]
    keys = {
        new_item("file", "ingest", "docs", {**payload, **source}).unique
        for source in ({}, {"source": "a"}, {"source": "b"})
    }
    assert len(keys) == 3
