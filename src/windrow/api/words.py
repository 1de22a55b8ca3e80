"""What the parameters of endpoints and the codes of errors mean: said once, for the OpenAPI
document, from which `/docs` has it, and for docs/reference/."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

PARAMETERS: Final = {
    "X-Firecrawl-Signature": "HMAC-SHA256 of the body, with the webhook's secret",
    "after": "the last one of the page before; of events, the cursor to go on behind",
    "batch_id": "the batch",
    "crawl_id": "the crawl",
    "domain_filter": "only pages of this host",
    "error": "only with this in their error",
    "extract_id": "the extraction",
    "group": "only of this group",
    "group_id": "the group",
    "if-none-match": "the ETag of what is known already: answered with 304 if nothing has changed",
    "include_failed": "those that failed, too",
    "job": "only of this job",
    "job_id": "the job",
    "kind": "only of this kind",
    "knowledge_type": "only of this type",
    "last-event-id": "the cursor to go on behind, as browsers send it",
    "limit": "how many at the most",
    "name": "the queue",
    "offset": "how many to pass over",
    "page": "which page of the list, from 1 on",
    "page_id": "the page",
    "per_page": "how many on each page of the list",
    "progress_id": "the crawl or upload, by the id that it was answered with",
    "queue": "only of this queue",
    "scrape_id": "the page, by the id it was answered with",
    "search": "a part of the title or of the address",
    "section": "only pages under this heading",
    "session_id": "the id of a crawl, or of its session",
    "skip": "how many documents to pass over",
    "source_id": "the source",
    "state": "only in this state; may be said more than once",
    "tag": "only with this tag",
    "tenant": "only of this tenant, for a key of all of them",
    "type": "only events of this type; may be said more than once",
    "unique": "only with this unique key",
    "url": "the address",
    "wait": "answer when it has ended, or so many seconds later",
    "x-idempotency-key": "asked for again with the same key, it is begun once",
}

# The status, where it is always the same one and no table of errors has it; what happened.
CODES: Final[dict[str, tuple[int | None, str]]] = {
    "BAD_REQUEST": (400, "the request is not valid; `details` says where"),
    "BAD_REQUEST_INVALID_JSON": (400, "the body is no JSON"),
    "CONFLICT": (409, "it is in a state that does not allow this, or the key is taken"),
    "DOCUMENT_NOT_FOUND": (None, "there is no such document"),
    "FILE_GONE": (None, "the file is not there any more"),
    "FILE_REFUSED": (None, "the file may not be read"),
    "FILE_UNAVAILABLE": (None, "the file cannot be read just now"),
    "FILE_TOO_LARGE": (None, "the file is larger than what is read"),
    "FORBIDDEN": (
        403,
        "the key's role does not allow this, or no key is set and this is not local",
    ),
    "NOT_INSTALLED": (501, "the server lacks the extra that is named; its operator can install it"),
    "INDEX_UNAVAILABLE": (503, "the index does not answer; ask again later"),
    "INSUFFICIENT_CREDITS": (402, "the tenant's quota is used up, or this takes more than is left"),
    "LEASE_LOST": (409, "somebody else has the job now; nothing was changed"),
    "MAP_TIMEOUT": (408, "the addresses were not found in time"),
    "METHOD_NOT_ALLOWED": (405, "there is such a path, but not for this method"),
    "MODEL_NOT_CONFIGURED": (None, "this takes a language model, and none is set"),
    "NOT_FOUND": (404, "there is no such thing, or it is another tenant's"),
    "NOT_LISTENING": (503, "too many listen already; ask again later"),
    "PAYLOAD_TOO_LARGE": (413, "the body, payload or result is larger than the limit"),
    "PROVIDER_ERROR": (None, "a service that does a part of the work refused or did not answer"),
    "QUEUE_FULL": (429, "the queue has as many waiting jobs as it takes"),
    "RATE_LIMITED": (429, "this key has asked too often; `Retry-After` says how long to wait"),
    "REQUEST_TIMEOUT": (408, "the body did not come in time"),
    "SCRAPE_ACTION_ERROR": (None, "an action of the request could not be done on the page"),
    "SCRAPE_BAD_ENCODING": (None, "the body cannot be decoded as the server says it is coded"),
    "SCRAPE_BAD_RESPONSE": (None, "what the server answers is no HTTP"),
    "SCRAPE_BLOCKED_BY_ROBOTS": (None, "robots.txt forbids it"),
    "SCRAPE_BROWSER_CRASHED": (None, "the browser ended before the page was done"),
    "SCRAPE_BROWSER_MISSING": (None, "only a browser could do this, and there is none"),
    "SCRAPE_CONNECTION_REFUSED": (None, "nobody listens there"),
    "SCRAPE_CONNECTION_RESET": (None, "the connection was lost"),
    "SCRAPE_CONVERSION_ERROR": (None, "the file is broken, or not what it says it is"),
    "SCRAPE_DNS_RESOLUTION_ERROR": (None, "there is no such host; answered as clients expect it"),
    "SCRAPE_ENCRYPTED_FILE_ERROR": (None, "the file has a password"),
    "SCRAPE_FAILED": (None, "it could not be had, for a reason that the message gives"),
    "SCRAPE_FORBIDDEN_TARGET": (None, "a private address, which the settings do not allow"),
    "SCRAPE_GONE": (None, "404 or 410: it is not there"),
    "SCRAPE_INVALID_HEADER": (None, "a header of the request cannot be sent"),
    "SCRAPE_INVALID_URL": (None, "this is no address that can be fetched"),
    "SCRAPE_JOB_CANCELLED": (None, "it was cancelled before it was done"),
    "SCRAPE_LLM_ERROR": (None, "the language model did not answer, or not as it was asked to"),
    "SCRAPE_NO_CACHED_DATA": (None, "only a copy was asked for, and there is none that fits"),
    "SCRAPE_PENDING": (202, "it is not done yet; ask again"),
    "SCRAPE_RACED_REDIRECT_ERROR": (None, "another page of the crawl leads to the same address"),
    "SCRAPE_REDIRECT_LOOP": (None, "redirects lead in a circle"),
    "SCRAPE_REDIRECT_OUT_OF_SCOPE": (None, "it leads out of what the crawl was to stay in"),
    "SCRAPE_ROBOTS_UNREACHABLE": (None, "robots.txt cannot be read, so nothing is asked for"),
    "SCRAPE_SSL_ERROR": (None, "its certificate is not valid, or there is no TLS there"),
    "SCRAPE_TIMEOUT": (None, "it took longer than it may"),
    "SCRAPE_TOO_LARGE": (None, "the body is larger than what is read"),
    "SCRAPE_TOO_MANY_REDIRECTS": (None, "it leads on and on"),
    "SCRAPE_UNREACHABLE": (None, "there is no way to the host"),
    "SCRAPE_UNSUPPORTED_FILE_ERROR": (None, "there is no text to be had from this kind of file"),
    "SOURCE_NOT_FOUND": (None, "there is no such source"),
    "STORE_ERROR": (503, "the database cannot do it now; the server's log has more"),
    "UNAUTHORIZED": (401, "there is no such key, or the signature is wrong"),
    "UNKNOWN_ERROR": (500, "something that nobody foresaw; the server's log has more"),
    "UNPROCESSABLE": (422, "what was handed in cannot be worked with"),
    "VIDEO_NOT_FOUND": (None, "there is no such video"),
}


def say_what_parameters_mean(app: FastAPI) -> None:
    """Put the words into the document, whenever FastAPI makes it."""
    make = app.openapi

    def described() -> dict[str, Any]:
        document = make()
        for path in document["paths"].values():
            for operation in path.values():
                for parameter in operation.get("parameters", ()):
                    words = PARAMETERS.get(parameter["name"])
                    if words is not None:
                        parameter.setdefault("description", words)
        return document

    app.openapi = described  # type: ignore[method-assign]
