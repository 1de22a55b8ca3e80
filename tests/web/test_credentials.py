"""Pages behind a login: what a tenant has is shown to its sites, and to no others."""

from __future__ import annotations

from pathlib import Path

from tests.web.crawling import LOOPBACK
from tests.web.site import Site
from windrow import Queue, Worker
from windrow.accounts import Accounts
from windrow.accounts.credentials import CredentialRow
from windrow.ingest.fetch.credentials import Credential
from windrow.ingest.fetch.sealer import Sealer
from windrow.pipelines.web.credentials import Vault
from windrow.pipelines.web.handlers import web_handlers
from windrow.services import web
from windrow.settings import Settings


async def test_pages_of_a_tenant_are_fetched_with_its_credentials(
    queue: Queue, site: Site, tmp_path: Path
) -> None:
    settings = Settings(data_dir=str(tmp_path))
    credential = Credential(site.url, headers={"X-Api-Key": "hush"})
    sealed = Sealer(settings).seal("docs", "acme", credential)
    row = CredentialRow("docs", "acme", credential.origin, credential.holds, sealed)
    await Accounts(queue.database).credentials.put(row)
    for path in ("/theirs", "/nobodys", "/crawled", "/mapped"):
        site.page(path)
    site.sitemap("/sitemap.xml", ["/crawled"])
    site.text("/llms.txt", "# Docs")
    await web.start_scrape(queue, f"{site.url}/theirs", tenant="acme")
    await web.start_crawl(queue, f"{site.url}/crawled", tenant="acme")
    await web.start_map(queue, f"{site.url}/mapped", tenant="acme")
    await web.start_scrape(queue, f"{site.url}/nobodys")
    async with web_handlers(queue, guard=LOOPBACK, vault=Vault(queue, settings)) as handlers:
        await Worker(queue, handlers).run(until_idle=True)
    sent = {
        path: {name.lower(): value for name, value in site.headers[path].items()}
        for path in site.headers
    }
    shown = {"/theirs", "/crawled", "/mapped", "/robots.txt", "/sitemap.xml", "/llms.txt"}
    assert {path for path in sent if sent[path].get("x-api-key") == "hush"} >= shown
    assert "x-api-key" not in sent["/nobodys"]
