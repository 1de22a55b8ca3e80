"""Every error Windrow raises, in one tree.

    WindrowError
    ├─ ConfigError
    │  └─ MissingExtra(extra)
    ├─ QuotaExceeded(left, wanted, until) a tenant has used what it may use for now
    ├─ RateLimited(key, retry_after) *    somebody else's limit, not one of ours
    ├─ WorkerBroken(service)              a part of a worker fails again and again, so it stopped
    ├─ MigrationFailed                    what is to be moved cannot be read, or must not be dropped
    ├─ DeliveryFailed(origin)             a webhook was not taken; transient or not
    ├─ IngestError(code)
    │  ├─ FetchError(code, url)           each says for itself whether it is transient
    │  │  ├─ FetchTimeout(url) *
    │  │  ├─ Blocked(url)                 may not be fetched from here; nothing was sent
    │  │  └─ ResourceGone(url, status)
    │  ├─ ScrapeFailed(code)              any of these, of a page: its message begins with the code
    │  ├─ InvalidOptions                  bad input; nothing was fetched
    │  ├─ BrowserMissing(what)            only a browser could do this, and there is none
    │  ├─ BrowserCrashed *
    │  ├─ ProviderError(provider, status) a service refuses, or does not answer; transient or not
    │  ├─ EnrichError                     a model does not answer, or not as asked
    │  ├─ ModelMissing                    only a model could do this, and none is set
    │  ├─ SourceNotFound(named)
    │  ├─ VideoNotFound(id)
    │  ├─ DocumentNotFound(named)
    │  ├─ FileGone(path)                  there is no such file any more
    │  ├─ FileRefused(path)               it may not be read
    │  ├─ FileUnavailable(path) *         it cannot be read just now
    │  ├─ UnsupportedFormat(content_type) there is no text to be had from it
    │  └─ ConversionError(content_type)   broken, encrypted or too much of it
    ├─ SearchError
    │  ├─ InvalidSearch                   bad input; nothing was looked for
    │  └─ IndexUnavailable *              it cannot be opened or does not answer
    │     ├─ IndexElsewhere(host, path)   it is in a folder of another machine
    │     └─ IndexLost(path) *            its folder was deleted
    ├─ EmbeddingError
    │  ├─ EmbedderUnavailable *           does not answer, or not to us; no fault of the texts
    │  └─ EmbeddingRefused(items)         these texts, by their places, it does not take
    └─ QueueError
       ├─ InvalidJob                      bad input; nothing was written
       │  ├─ InvalidOutcome               what a handler returned, or how a run was to end
       │  ├─ PayloadTooLarge
       │  ├─ ResultTooLarge
       │  ├─ PayloadMismatch(kind, wanted)   the handler takes another type
       │  └─ InvalidSchedule
       ├─ QueueFull(queue, depth, max_depth) *
       ├─ JobNotFound(ids)
       ├─ JobRacedOut(ids)
       ├─ WaitTimeout(ids) *
       ├─ DuplicateJob(unique, existing)
       ├─ IllegalTransition(job_id, state, wanted)
       ├─ LeaseLost(job_ids)
       ├─ RunEnded(job_ids)               the run has ended already, in another way
       ├─ NotPermitted                    it belongs to another tenant, or to all of them
       ├─ ResultMismatch(kind, wanted)    the handler returns another type now
       ├─ HandlerTimeout(seconds) *       the handler ran longer than it may
       ├─ ProcessDied(exit_code) *        the process of a handler ended without an answer
       ├─ GroupNotFound(group_id)
       ├─ GroupEnded(group_id)
       ├─ ScheduleNotFound(name)
       ├─ InvalidCursor
       ├─ EventsPruned(cursor, oldest)
       ├─ ArchiveFailed *                  nothing was removed
       └─ StoreError
          ├─ StoreUnavailable *           connection refused, dropped, timed out
          ├─ StoreConflict *              deadlock or serialisation failure
          ├─ StoreFull *                  disk or quota exhausted
          ├─ StoreReadOnly
          ├─ NotAllowed                   the database refuses it to this role or tenant
          ├─ Unsupported(capability)      this kind of store cannot do it; another can
          ├─ SchemaOutdated
          ├─ SchemaTooNew
          └─ SchemaTooOld

`__all__` lists the errors that handlers and callers of the queue meet; the others belong to
ingestion, search, migration and internals.

The docstring of a class is its default message; attributes carry the data. Errors marked * are
``transient``: the same call may succeed later.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import datetime
from typing import Any

__all__ = [
    "ConfigError",
    "DuplicateJob",
    "GroupEnded",
    "GroupNotFound",
    "IllegalTransition",
    "InvalidJob",
    "JobNotFound",
    "LeaseLost",
    "NotPermitted",
    "PayloadMismatch",
    "PayloadTooLarge",
    "QueueFull",
    "RateLimited",
    "ResultMismatch",
    "ResultTooLarge",
    "ScheduleNotFound",
    "StoreUnavailable",
    "WaitTimeout",
    "WindrowError",
]


class WindrowError(Exception):
    """Something went wrong in Windrow."""

    transient: bool = False
    retry_after: float | None = None
    hint: str = ""  # what helps, for a person; empty: the message says so itself

    def __init__(self, message: str | None = None) -> None:
        # An error of somebody's own may have no docstring: then it is its parent's.
        super().__init__(message or (inspect.getdoc(type(self)) or "").splitlines()[0])

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross processes; their constructors take data, of which the message is made.
        return _revive, (type(self), self.args), self.__dict__


class ConfigError(WindrowError):
    """The configuration is not valid."""


class MissingExtra(ConfigError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, why: str = "") -> None:
        self.extra = extra
        because = f" for {why}" if why else ""
        super().__init__(f"install the extra{because}: pip install 'windrow[{extra}]'")


class RateLimited(WindrowError):
    """A service said that it is asked too often.

    `key` is the limit key of that service, and `retry_after` the seconds it asked for, if it did.
    """

    hint = (
        "wait as long as it asks for, or set a limit for its key: `windrow limits set KEY "
        "--per-second N`"
    )
    transient = True

    def __init__(self, key: str, retry_after: float | None = None) -> None:
        self.key = key
        self.retry_after = retry_after
        wait = "" if retry_after is None else f", asks for {retry_after:g} s"
        super().__init__(f"{key} is asked too often{wait}")


class SearchError(WindrowError):
    """A search could not be done."""


class InvalidSearch(SearchError):
    """What is asked for is not valid."""

    hint = "`windrow search --help` lists what can be asked for"


class IndexUnavailable(SearchError):
    """The index cannot be opened or does not answer."""

    hint = "look whether the index is reachable and not open elsewhere: `windrow doctor`"
    transient = True


class WorkerBroken(WindrowError):
    """A part of the worker keeps failing, so the worker has stopped."""

    hint = "read the traceback in its log; its jobs are retried when their leases expire"

    def __init__(self, service: str, error: str) -> None:
        self.service = service
        super().__init__(f"the worker stopped because its {service} keeps failing: {error}")


class IndexElsewhere(IndexUnavailable):
    """The index is in a folder of another machine, where nobody here can read or write it; with
    `data_dir`, in another folder of this machine."""

    hint = (
        "with one index worker run `windrow worker web nuq knowledge video calls` on the other "
        "machines; `windrow db index --here --yes` moves the index to this one"
    )
    transient = False

    def __init__(self, host: str, path: str, data_dir: str = "") -> None:
        self.host = host
        self.path = path
        self.data_dir = data_dir
        if data_dir:
            self.hint = (
                f"set WINDROW_DATA_DIR={data_dir}, and WINDROW_DATABASE_URL as it was set there; "
                "`windrow db index --here --yes` moves the index to the folder in use"
            )
            super().__init__(
                f"the index of this database is the folder {path}, and this process uses another"
            )
            return
        super().__init__(
            f"the index of this database is the folder {path} on {host}, which this machine does "
            "not have. To share it, install the extension `vector` (pgvector) in Postgres or set "
            "WINDROW_QDRANT_URL on all machines; or let that machine alone index and search"
        )


class IndexLost(IndexUnavailable):
    """The folder of the index was deleted."""

    hint = "start `windrow worker` or `windrow serve`: it builds the index again from the documents"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"the index of this database was in the folder {path}, which is gone")


class MigrationFailed(WindrowError):
    """What is to be moved here cannot be read, or must not be dropped yet."""


class DeliveryFailed(WindrowError):
    """A webhook was not taken.

    Only the origin of its address is told: the rest may be a secret.
    """

    hint = "see whether its receiver answers, then send it after all: `windrow jobs retry ID`"

    def __init__(
        self, origin: str, why: str, *, transient: bool, retry_after: float | None = None
    ) -> None:
        self.origin = origin
        self.transient = transient
        self.retry_after = retry_after
        super().__init__(f"{origin}: {why}")


class IngestError(WindrowError):
    """The source could not be turned into a document.

    `code` names the reason for programs; the HTTP API shows it as it is.
    """

    code: str = "SCRAPE_FAILED"

    def __init__(self, message: str | None = None, *, code: str | None = None) -> None:
        if code is not None:
            self.code = code
        super().__init__(message)


class FetchError(IngestError):
    """A resource could not be fetched."""

    hint = "see whether the address opens elsewhere"

    def __init__(self, code: str, url: str, why: str, *, transient: bool | None = None) -> None:
        self.url = url
        if transient is not None:
            self.transient = transient
        super().__init__(f"{url}: {why}", code=code)


class FetchTimeout(FetchError):
    """A resource took too long."""

    hint = "give it more time: `--timeout 60s`, or `timeout` in the request"
    transient = True

    def __init__(self, url: str, why: str) -> None:
        super().__init__("SCRAPE_TIMEOUT", url, why)


class Blocked(FetchError):
    """This may not be fetched from here, so nothing was sent."""

    hint = (
        "if it is one of yours, allow it with WINDROW_ALLOW_HOSTS=HOST, or all private addresses "
        "with WINDROW_ALLOW_PRIVATE_NETWORKS=true"
    )

    def __init__(self, url: str, why: str, *, code: str = "SCRAPE_FORBIDDEN_TARGET") -> None:
        super().__init__(code, url, why)


class ResourceGone(FetchError):
    """The resource is not there any more."""

    hint = "nothing is to be had there any more: take it out of what is asked for"

    def __init__(self, url: str, status: int) -> None:
        self.status = status
        super().__init__("SCRAPE_GONE", url, f"is gone (status {status})")


class ScrapeFailed(IngestError):
    """A page could not be turned into a document.

    Of a failed job only the message is kept, so it begins with the code.
    """

    def __init__(self, cause: IngestError) -> None:
        self.transient = cause.transient
        self.retry_after = cause.retry_after
        super().__init__(f"{cause.code}: {cause}", code=cause.code)


class InvalidOptions(IngestError):
    """The options are not valid, so nothing was fetched."""

    hint = "`--help` of the command, or the reference of the endpoint, lists the options"
    code = "BAD_REQUEST"


class BrowserMissing(IngestError):
    """Only a browser could do this, and there is none."""

    code = "SCRAPE_BROWSER_MISSING"

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        super().__init__(
            f"{what} needs a browser, and {why}: pip install 'windrow[browser]', install Chromium, "
            "and say where it is with the setting chromium (WINDROW_CHROMIUM)"
        )


class BrowserCrashed(IngestError):
    """The browser ended before the page was done."""

    hint = (
        "it is tried again; if it stays so, give the machine more memory or ask for less of "
        "the page"
    )
    code = "SCRAPE_BROWSER_CRASHED"
    transient = True


class ProviderError(IngestError):
    """A service that does a part of the work refused, or did not answer.

    `status` is that of its answer, if there was one; `was_sent` says whether it may have been asked
    at all.
    """

    hint = "look at the provider's status and at the key in the settings"
    code = "PROVIDER_ERROR"

    def __init__(
        self,
        provider: str,
        why: str,
        *,
        status: int | None = None,
        transient: bool = False,
        retry_after: float | None = None,
        was_sent: bool = True,
    ) -> None:
        self.provider = provider
        self.was_sent = was_sent
        self.status = status
        self.transient = transient
        self.retry_after = retry_after
        super().__init__(f"{provider} {why}")


class EnrichError(IngestError):
    """A language model did not answer, or not as it was asked to."""

    hint = (
        "look at llm_url, llm_key and llm_model in the settings, and whether the endpoint answers"
    )
    code = "SCRAPE_LLM_ERROR"

    def __init__(
        self,
        message: str | None = None,
        *,
        transient: bool = False,
        retry_after: float | None = None,
    ) -> None:
        self.transient = transient
        self.retry_after = retry_after
        super().__init__(message)


class SourceNotFound(IngestError):
    """There is no such source."""

    hint = "`windrow sources list` shows what there is"
    code = "SOURCE_NOT_FOUND"

    def __init__(self, named: str, why: str = "there is none") -> None:
        self.named = named
        super().__init__(f"no source {named!r}: {why}")


class DocumentNotFound(IngestError):
    """There is no such document, or nothing of it to be read."""

    hint = "`windrow sources show SOURCE` counts what there is; it may have been removed since"
    code = "DOCUMENT_NOT_FOUND"

    def __init__(self, named: str, why: str = "there is none") -> None:
        self.named = named
        super().__init__(f"no document {named!r}: {why}")


class VideoNotFound(IngestError):
    """There is no such video."""

    hint = "`windrow video list` shows what there is"
    code = "VIDEO_NOT_FOUND"

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(f"no video {id!r}")


class FileGone(IngestError):
    """There is no such file or folder, or not any more."""

    hint = "see whether the path is right and still there"
    code = "FILE_GONE"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{_printable(path)} is not there")


class FileRefused(IngestError):
    """A file or folder may not be read."""

    hint = "see who may read it, and whether a link or a size is in the way"
    code = "FILE_REFUSED"

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{_printable(path)} cannot be read: {why}")


class FileUnavailable(IngestError):
    """A file or folder cannot be read just now: the disk, or this process, is in trouble."""

    hint = "see whether its disk answers, and how many files may be open (`ulimit -n`)"
    code = "FILE_UNAVAILABLE"
    transient = True

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{_printable(path)} cannot be read just now: {why}")


class ModelMissing(IngestError):
    """Only a language model could do this, and none is set."""

    hint = "set llm_url, llm_key and llm_model"
    code = "MODEL_NOT_CONFIGURED"


class UnsupportedFormat(IngestError):
    """There is no text to be had from this kind of file."""

    hint = "save it as text, HTML, PDF or an office format"
    code = "SCRAPE_UNSUPPORTED_FILE_ERROR"

    def __init__(self, content_type: str, why: str = "") -> None:
        self.content_type = content_type
        super().__init__(f"{content_type} is not a format that becomes text{why and f': {why}'}")


class ConversionError(IngestError):
    """The file cannot be read as what it says it is."""

    hint = "open the file and save it anew; one with a password has to be opened first"
    code = "SCRAPE_CONVERSION_ERROR"

    def __init__(self, content_type: str, why: str, *, code: str | None = None) -> None:
        self.content_type = content_type
        super().__init__(f"this {content_type} cannot be read: {why}", code=code)


class EmbeddingError(WindrowError):
    """Texts could not be turned into vectors."""

    hint = "look at embed_url, embed_key and embed_model in the settings"


class EmbedderUnavailable(EmbeddingError):
    """The embedder does not answer."""

    hint = "see whether the endpoint of embed_url answers; the texts wait meanwhile"
    transient = True


class EmbeddingRefused(EmbeddingError):
    """The embedder does not take these texts.

    `items` are their places among the texts that were handed in; the others are not to blame.
    """

    hint = "see what is special about these texts; the others are found all the same"

    def __init__(self, items: Sequence[int], why: str) -> None:
        self.items = tuple(items)
        self.why = why
        places = _shorten([str(item) for item in self.items])
        super().__init__(f"the embedder does not take text {places}: {why}")


class QueueError(WindrowError):
    """The queue refused or could not do what was asked."""


class InvalidJob(QueueError):
    """The job is not valid, so nothing was written."""

    hint = "nothing was written: change what the message names, and ask again"


class InvalidOutcome(InvalidJob):
    """The outcome of a run is not valid, so nothing was written."""

    hint = "return Done, Retry, Snooze, Fail or Cancel with the arguments that the message names"


class PayloadTooLarge(InvalidJob):
    """The payload is larger than the limit."""

    hint = "put the data elsewhere and its address into the payload, or raise max_payload_bytes"


class ResultTooLarge(InvalidJob):
    """The result is larger than the limit."""

    hint = "put the data elsewhere and its address into the result, or raise max_result_bytes"


class InvalidSchedule(InvalidJob):
    """The schedule is not valid, so nothing was written."""

    hint = "nothing was written: change what the message names, and ask again"


class PayloadMismatch(InvalidJob):
    """The payload does not fit what the handler takes."""

    hint = "change the payload (`windrow jobs edit ID`) or what the handler takes"

    def __init__(self, kind: str, wanted: str, why: str) -> None:
        self.kind = kind
        self.wanted = wanted
        super().__init__(f"the payload of this {kind!r} job is not a valid {wanted}: {why}")


class QuotaExceeded(WindrowError):
    """A tenant has used what it may use in this period, or would with this."""

    hint = "wait for the next period, or give the tenant more: `windrow keys quota TENANT CREDITS`"

    def __init__(self, left: int, wanted: int, until: datetime) -> None:
        self.left = left
        self.wanted = wanted
        self.until = until
        super().__init__(
            f"Insufficient credits to perform this request: it takes {wanted}, and {left} are left "
            f"until {until.isoformat()}"
        )


class QueueFull(QueueError):
    """The queue has as many waiting jobs as it takes, so nothing was written."""

    hint = (
        "wait until workers have made room, or raise the bound: `windrow queues set QUEUE "
        "--max-depth N`"
    )
    transient = True

    def __init__(self, queue: str, depth: int, max_depth: int, *, may_wait: bool = False) -> None:
        self.queue = queue
        self.depth = depth
        self.max_depth = max_depth
        self.may_wait = may_wait  # the queue is set to let callers wait for room
        super().__init__(
            f"queue {queue!r} is full: {depth} jobs wait in it, at most {max_depth} may"
        )


class JobNotFound(QueueError):
    """There is no such job."""

    hint = "`windrow jobs list` shows what there is; finished jobs are removed after a while"

    def __init__(self, *ids: str) -> None:
        self.ids = ids
        super().__init__(f"no such job: {_shorten(ids)}")


class JobRacedOut(QueueError):
    """Job raced out while waiting for it"""

    hint = "it was removed or moved while it was waited for: keep jobs longer, with `retention`"

    def __init__(self, *ids: str) -> None:
        self.ids = ids
        super().__init__(f"Job raced out while waiting for it: {_shorten(ids)}")


class WaitTimeout(QueueError):
    """The job had not ended when the time was up."""

    hint = "it goes on without you; `windrow doctor --job ID` says what it waits for"
    transient = True

    def __init__(self, *ids: str) -> None:
        self.ids = ids
        super().__init__(f"still not ended when the time was up: {_shorten(ids)}")


class DuplicateJob(QueueError):
    """A job with this unique key is already there."""

    hint = "take the job that there is, or say with `on_conflict` what is to happen"

    def __init__(self, unique: str, existing: str) -> None:
        self.unique = unique
        self.existing = existing
        super().__init__(
            f"there is a job {existing} already"
            if unique == existing
            else f"unique key {unique!r} is held by job {existing}"
        )


class IllegalTransition(QueueError):
    """The job's state does not allow this."""

    hint = "`windrow jobs show ID` says what can be done with it now"

    def __init__(self, job_id: str, state: str, wanted: str) -> None:
        self.job_id = job_id
        self.state = state
        self.wanted = wanted
        super().__init__(f"job {job_id} is {state}; it cannot be {wanted}")


class LeaseLost(QueueError):
    """The lease is no longer ours, so nothing was changed."""

    hint = "somebody else has the job now: stop, and leave it to them"

    def __init__(self, *job_ids: str) -> None:
        self.job_ids = job_ids
        super().__init__(f"lease lost, nothing was changed: {_shorten(job_ids)}")


class RunEnded(QueueError):
    """The run has ended already, in another way, so nothing was changed."""

    hint = "end each run once; the same end may be repeated"

    def __init__(self, *job_ids: str) -> None:
        self.job_ids = job_ids
        super().__init__(
            "the run has ended already with another outcome or result, nothing was changed: "
            f"{_shorten(job_ids)}"
        )


class NotPermitted(QueueError):
    """This belongs to another tenant, or to all of them, so nothing was changed."""

    hint = "ask with a key of that tenant, or of all tenants"


class ResultMismatch(QueueError):
    """The stored result is not of the type that the handler returns."""

    hint = "read `job.result_json`, or change what the handler returns"

    def __init__(self, kind: str, wanted: str, why: str) -> None:
        self.kind = kind
        self.wanted = wanted
        super().__init__(f"the result of this {kind!r} job is not a valid {wanted}: {why}")


class HandlerTimeout(QueueError):
    """The handler ran longer than it may."""

    hint = "give the handler more time (`timeout=`), or make less work of one job"
    transient = True

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"stopped after {seconds:g} seconds, the handler's timeout")


class ProcessDied(QueueError):
    """The process of a handler ended without an answer."""

    hint = "look for what ended it: memory, a signal, a library in C"
    transient = True

    def __init__(self, exit_code: int | None) -> None:
        self.exit_code = exit_code
        by_signal = exit_code is not None and exit_code < 0
        how = f"killed by signal {-(exit_code or 0)}" if by_signal else f"exit code {exit_code}"
        super().__init__(f"the handler's process died without an answer ({how})")


class GroupNotFound(QueueError):
    """There is no such group."""

    hint = "`windrow groups list` shows what there is; ended groups are removed after a while"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        super().__init__(f"no such group: {group_id}")


class GroupEnded(QueueError):
    """The group has ended and takes no more jobs."""

    hint = "make another group, or one that is kept open with `hold=True`"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        super().__init__(f"group {group_id} has ended and takes no more jobs")


class ScheduleNotFound(QueueError):
    """There is no such schedule."""

    hint = "`windrow schedules list` shows what there is"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"no such schedule: {name}")


class InvalidCursor(QueueError):
    """This is no place in the stream of events."""

    hint = "a cursor is what an event came with; 0 is the oldest that is kept"


class EventsPruned(QueueError):
    """Events after this cursor have been removed already."""

    hint = "go on from the cursor that is named, and look at the jobs for what was missed"

    def __init__(self, cursor: str, oldest: str) -> None:
        self.cursor = cursor
        self.oldest = oldest  # from here on everything is there
        super().__init__(
            f"events after cursor {cursor} have been removed; what is kept begins after {oldest}"
        )


class ArchiveFailed(QueueError):
    """The archive cannot be written, so nothing was removed."""

    hint = "make room in archive_dir, or let it be written to; jobs stay until then"
    transient = True


class StoreError(QueueError):
    """The database answered with an error."""


class StoreUnavailable(StoreError):
    """The database cannot be reached."""

    hint = "see whether the database runs and WINDROW_DATABASE_URL leads there"
    transient = True


class StoreConflict(StoreError):
    """Another transaction got in the way; try again."""

    hint = "ask again: workers do so by themselves"
    transient = True


class StoreFull(StoreError):
    """The database's disk is full."""

    hint = "make room on the database's disk; nothing was lost that was acknowledged"
    transient = True


class StoreReadOnly(StoreError):
    """The database can only be read."""

    hint = "see whether this is a standby, or a file that may only be read"


class NotAllowed(StoreError):
    """The database does not let this role, or this tenant, do that."""

    hint = "give the role what it needs: `windrow db rls status`"


class Unsupported(StoreError):
    """This kind of store cannot do that.

    `capability` is the one of `Capabilities` that it does not declare.
    """

    def __init__(self, capability: str, why: str) -> None:
        self.capability = capability
        super().__init__(f"{why} (capability {capability})")


class SchemaOutdated(StoreError):
    """The database has no Windrow tables, or older ones: run `windrow db migrate`."""

    def __init__(self, found: int, wanted: int) -> None:
        self.found = found
        self.wanted = wanted
        have = f"is at schema version {found}" if found else "has no Windrow tables yet"
        super().__init__(
            f"the database {have}, and this Windrow needs schema version {wanted}: "
            "run `windrow db migrate`"
        )


class SchemaTooNew(StoreError):
    """The database was made by a newer Windrow."""

    def __init__(self, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"the database is at schema version {found}, and this Windrow knows only those up to "
            f"{known}: "
            "upgrade Windrow"
        )


class SchemaTooOld(StoreError):
    """The database was made by a development version of Windrow and cannot be upgraded.

    `first` is the name of its first migration, which this Windrow does not have.
    """

    def __init__(self, found: int, first: str) -> None:
        self.found = found
        self.first = first
        super().__init__(
            f"the database is at schema version {found} of a development version of Windrow "
            f"(migration {first}), from which no upgrade leads here: start with a new database, "
            "that is, another file or another Postgres database in WINDROW_DATABASE_URL"
        )


def _revive(kind: type[WindrowError], args: tuple[Any, ...]) -> WindrowError:
    error = kind.__new__(kind)
    error.args = args
    return error


def _shorten(ids: Sequence[str], most: int = 5) -> str:
    """Ids for a message: the first few and how many more."""
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more


def _printable(path: str) -> str:
    """A path for a message: names on the disk need not be text."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
