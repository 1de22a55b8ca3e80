"""Documents of tenants: each reads and writes its own, by the database's word."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.conformance.test_documents import document
from tests.tenancy.conftest import Tenancy
from windrow import Queue
from windrow.catalog import Catalog
from windrow.catalog.contents import Written
from windrow.catalog.sources import SourceRow
from windrow.errors import NotAllowed
from windrow.ids import new_id


async def test_documents_of_another_tenant_are_neither_read_nor_written(tenancy: Tenancy) -> None:
    async with Queue.open(tenancy.url) as queue:
        acme, globex = (Catalog(queue.as_tenant(one).database) for one in ("acme", "globex"))
        row, content = document()
        await acme.collections.ensure("acme", "docs", "model", 4)
        await acme.sources.put([SourceRow("acme", "s1", "docs", "note", "n")])
        await acme.documents.put([row], [content])
        await Catalog(queue.database).contents.switch([Written(content.id, 1, "space")])

        assert [one.id for one in await acme.documents.find_named([content.id])] == [row.id]
        assert await globex.documents.find_named([content.id]) == []
        assert await globex.documents.get([row.id]) == []
        assert await globex.contents.get([content.id]) == []
        assert await globex.sources.page() == []
        assert await globex.documents.delete([row.id]) == 0
        assert await globex.sources.delete("acme", ["s1"]) == 0
        await globex.documents.put([replace(row, id=new_id(), uri="b")], [])
        assert [one.uri for one in await acme.documents.page("acme", "docs")] == ["a.md"]
        with pytest.raises(NotAllowed):
            await globex.sources.put([SourceRow("acme", "s2", "docs", "note", "n")])
        assert await acme.documents.delete([row.id]) == 1
