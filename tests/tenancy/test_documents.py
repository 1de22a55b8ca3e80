"""Documents of tenants: each reads and writes its own, by the database's word."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.conformance.test_documents import document
from tests.tenancy.conftest import Tenancy
from windrow import Queue
from windrow.errors import NotAllowed
from windrow.ids import new_id
from windrow.queue.documents import SourceRow, Written


async def test_documents_of_another_tenant_are_neither_read_nor_written(tenancy: Tenancy) -> None:
    async with Queue.open(tenancy.url) as queue:
        acme, globex = queue.as_tenant("acme").store, queue.as_tenant("globex").store
        row, content = document()
        await acme.ensure_collection("acme", "docs", "model", 4)
        await acme.put_sources([SourceRow("acme", "s1", "docs", "note", "n")])
        await acme.put_documents([row], [content])
        await queue.store.switch_contents([Written(content.id, 1, "space")])

        assert [one.id for one in await acme.find_named([content.id])] == [row.id]
        assert await globex.find_named([content.id]) == []
        assert await globex.get_documents([row.id]) == []
        assert await globex.get_contents([content.id]) == []
        assert await globex.list_sources() == []
        assert await globex.delete_documents([row.id]) == 0
        assert await globex.delete_sources("acme", ["s1"]) == 0
        await globex.put_documents([replace(row, id=new_id(), uri="b")], [])
        assert [one.uri for one in await acme.list_documents("acme", "docs")] == ["a.md"]
        with pytest.raises(NotAllowed):
            await globex.put_sources([SourceRow("acme", "s2", "docs", "note", "n")])
        assert await acme.delete_documents([row.id]) == 1
