"""`web.extract`: what some pages say together, by a language model, in a shape that was asked for.

Each page is a step: a run that comes after a failure does not fetch again what is there.
"""

from __future__ import annotations

from typing import Any, Final

from windrow.errors import EnrichError, ScrapeFailed
from windrow.ingest.enrich.model_formats import MISSING
from windrow.ingest.options import ScrapeOptions
from windrow.pipelines.web.context import Web
from windrow.pipelines.web.paying import pay
from windrow.pipelines.web.payloads import ExtractPayload
from windrow.pipelines.web.scraping import scrape, scrape_failures
from windrow.queue.job import Job
from windrow.queue.outcome import Done

USUAL: Final = "Extract what the pages say."


async def extract(web: Web, job: Job, payload: ExtractPayload) -> Done:
    """The result is `{"data": …, "sources": […], "errors": {url: why}}`."""
    pages: dict[str, str] = {}
    errors: dict[str, str] = {}
    for url in payload.urls:
        page = await job.step(f"page {url}"[:255], _read, web, job, url, payload.scrape_options)
        if page["error"] is None:
            pages[url] = page["markdown"]
        elif payload.ignores_invalid:
            errors[url] = page["error"]
        else:
            raise EnrichError(page["error"])
    if not pages:
        raise EnrichError(f"none of the pages could be had: {next(iter(errors.values()))}")
    with scrape_failures():
        data = await _fill(web, payload, pages)
    await pay(web, job, payload.budget, len(pages))
    return Done({"data": data, "sources": list(pages), "errors": errors})


async def _read(web: Web, job: Job, url: str, options: ScrapeOptions) -> dict[str, Any]:
    try:
        scraped = await scrape(
            web, url, options, job_id=job.id, credentials=await web.credentials_of(job.tenant)
        )
    except ScrapeFailed as error:
        if error.transient:
            raise
        return {"error": str(error), "markdown": None}
    return {"error": None, "markdown": scraped.document.markdown or ""}


async def _fill(web: Web, payload: ExtractPayload, pages: dict[str, str]) -> Any:
    if web.model is None:
        raise EnrichError(f"no language model is set: {MISSING}")
    asked = [payload.system_prompt, payload.prompt or USUAL]
    text = "\n\n".join(f"# Page {url}\n\n{markdown}" for url, markdown in pages.items())
    wanted = "\n\n".join(part for part in asked if part)
    return await web.model.fill(text, payload.schema, wanted)
