"""The items of the unified queue: eight types, eighteen pairs of a type and an operation, what each
carries, and under which key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

import msgspec

from windrow.errors import InvalidJob
from windrow.queue.job import NewJob, Priority
from windrow.queue.policy import unique_key

QUEUE: Final = "unified_queue"  # where the dialect of this name puts its rows too

FILE: Final = "file.ingest"  # a kind that whoever takes items takes

ItemType = Literal[
    "content", "file", "folder", "project", "library", "delete_tenant", "delete_document", "rename"
]
Operation = Literal["ingest", "update", "delete", "scan"]

OPERATIONS: Final[Mapping[ItemType, tuple[Operation, ...]]] = {
    "content": ("ingest", "update", "delete"),
    "file": ("ingest", "update", "delete"),
    "folder": ("ingest", "delete", "scan"),
    "project": ("ingest", "delete", "scan"),
    "library": ("ingest", "update", "delete"),
    "delete_tenant": ("delete",),
    "delete_document": ("delete",),
    "rename": ("update",),
}
PRIORITIES: Final[Mapping[ItemType, int]] = {
    "content": Priority.NOTE,
    "file": Priority.NORMAL,
    "folder": Priority.SCAN,
    "project": Priority.SCAN,
    "library": Priority.LIBRARY,
    "delete_tenant": Priority.COMMAND,
    "delete_document": Priority.COMMAND,
    "rename": Priority.ACTIVE_PROJECT,
}
MAX_ATTEMPTS: Final = 4  # three retries


class _Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    source: str | None = None  # the id of the source it belongs to, if that is known


class ContentPayload(_Payload, frozen=True, kw_only=True):
    content: str
    source_type: str = "scratchbook"
    main_tag: str | None = None
    full_tag: str | None = None
    tags: tuple[str, ...] = ()  # more of them
    title: str | None = None
    document_id: str | None = None  # of an update or deletion: the note as it was


class FilePayload(_Payload, frozen=True, kw_only=True):
    file_path: str
    file_type: str | None = None
    file_hash: str | None = None
    size_bytes: int | None = None


class FolderPayload(_Payload, frozen=True, kw_only=True):
    """What is not said of a folder that is known is as it was said before."""

    folder_path: str
    recursive: bool | None = None
    recursive_depth: int | None = None
    patterns: tuple[str, ...] | None = None
    ignore_patterns: tuple[str, ...] | None = None


class ProjectPayload(_Payload, frozen=True, kw_only=True):
    project_root: str
    git_remote: str | None = None
    project_type: str | None = None


class LibraryPayload(_Payload, frozen=True, kw_only=True):
    """Documentation at an address, in a folder, or, with neither, of an installed distribution."""

    library_name: str
    library_version: str = ""
    source_url: str | None = None


class DeleteTenantPayload(_Payload, frozen=True, kw_only=True):
    tenant_id_to_delete: str
    reason: str | None = None


class DeleteDocumentPayload(_Payload, frozen=True, kw_only=True):
    document_id: str  # or its path
    point_ids: tuple[str, ...] = ()


class RenamePayload(_Payload, frozen=True, kw_only=True):
    old_path: str
    new_path: str
    is_folder: bool = False


ItemPayload = (
    ContentPayload
    | FilePayload
    | FolderPayload
    | ProjectPayload
    | LibraryPayload
    | DeleteTenantPayload
    | DeleteDocumentPayload
    | RenamePayload
)
PAYLOADS: Final[Mapping[ItemType, type[ItemPayload]]] = {
    "content": ContentPayload,
    "file": FilePayload,
    "folder": FolderPayload,
    "project": ProjectPayload,
    "library": LibraryPayload,
    "delete_tenant": DeleteTenantPayload,
    "delete_document": DeleteDocumentPayload,
    "rename": RenamePayload,
}
# What tells one thing from another; its hash is the last part of the key.
_IDENTIFIERS: Final[Mapping[ItemType, Callable[[Any], str]]] = {
    "content": lambda payload: payload.content,
    "file": lambda payload: payload.file_path,
    "folder": lambda payload: payload.folder_path,
    "project": lambda payload: payload.project_root,
    "library": lambda payload: f"{payload.library_name}:{payload.library_version}",
    "delete_tenant": lambda payload: payload.tenant_id_to_delete,
    "delete_document": lambda payload: payload.document_id,
    "rename": lambda payload: f"{payload.old_path}:{payload.new_path}",
}
# Paths: "/absolute", or "file:" as names that are no text are written.
_PATHS: Final[Mapping[ItemType, tuple[str, ...]]] = {
    "file": ("file_path",),
    "folder": ("folder_path",),
    "project": ("project_root",),
    "rename": ("old_path", "new_path"),
}


def kind_of(item_type: str, op: str) -> str:
    """The kind of an item's job. Raises InvalidJob for a pair that there is not."""
    allowed = OPERATIONS.get(cast(ItemType, item_type))
    if allowed is None:
        known = ", ".join(OPERATIONS)
        raise InvalidJob(f"there is no item type {item_type!r}; there are: {known}")
    if op not in allowed:
        raise InvalidJob(f"{item_type} cannot be {op!r}: it takes {', '.join(allowed)}")
    return f"{item_type}.{op}"


def read_payload(item_type: ItemType, payload: Mapping[str, Any] | ItemPayload) -> ItemPayload:
    """A payload of an item. Raises InvalidJob, which names the field."""
    given = msgspec.to_builtins(payload) if isinstance(payload, msgspec.Struct) else payload
    try:
        read: ItemPayload = msgspec.convert(given, PAYLOADS[item_type])
    except msgspec.ValidationError as error:
        raise InvalidJob(f"this is no payload of {item_type}: {error}") from None
    for name in _PATHS.get(item_type, ()):
        path = getattr(read, name)
        if not path.startswith(("/", "file:/")):
            raise InvalidJob(f"{name} of {item_type} must be an absolute path, not {path!r}")
    return read


def item_key(item_type: ItemType, collection: str, payload: ItemPayload) -> str:
    """`file:docs:0123456789abcdef`: one thing of a type, in a collection. A file in two sources is
    a thing of each: an item that names its source takes the place of none of another's."""
    identifier = _IDENTIFIERS[item_type](payload)
    if payload.source is not None:
        identifier = f"{payload.source}:{identifier}"
    return unique_key(item_type, collection, identifier)


def new_item(
    item_type: ItemType,
    op: Operation,
    collection: str,
    payload: Mapping[str, Any] | ItemPayload,
    *,
    tenant: str | None = None,
    branch: str = "",
    priority: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    delay: float | None = None,
    tags: tuple[str, ...] = (),
) -> NewJob:
    """An item to be enqueued. Raises InvalidJob, and then nothing is."""
    kind = kind_of(item_type, op)
    read = read_payload(item_type, payload)
    if not collection:
        raise InvalidJob("an item needs a collection")
    chosen = PRIORITIES[item_type] if priority is None else priority
    if not Priority.BULK <= chosen <= Priority.NOW:
        raise InvalidJob(f"the priority of an item is 0 to 10, not {chosen}")
    headers: dict[str, Any] = {"collection": collection}
    if branch:
        headers["branch"] = branch
    if metadata:
        headers["metadata"] = msgspec.json.encode(metadata).decode()
    return NewJob(
        kind,
        msgspec.to_builtins(read),
        queue=QUEUE,
        priority=chosen,
        unique=item_key(item_type, collection, read),
        on_conflict="follow",
        tenant=tenant,
        headers=headers,
        tags=tags or ((f"source:{read.source}",) if read.source else ()),
        max_attempts=MAX_ATTEMPTS,
        delay=delay,
    )
