"""With an index in the same Postgres there is no owner: every worker writes, everybody searches."""

from __future__ import annotations

from pathlib import Path

from tests.indexing.helpers import Library
from windrow.queue.queue import Queue
from windrow.search.request import SearchRequest
from windrow.services.indexing import find_home
from windrow.services.owning import open_index_handlers
from windrow.services.searching import Searching, search
from windrow.settings import Settings
from windrow.worker.worker import Worker


async def test_postgres_with_the_extension_is_the_home_of_its_index(
    vector_database: str, tmp_path: Path
) -> None:
    settings = Settings(database_url=vector_database, data_dir=str(tmp_path / "data"))
    assert await find_home(settings) == "pgvector"
    async with Queue.open(vector_database, migrate=True) as queue:
        library = Library(queue, None)  # type: ignore[arg-type]
        await library.put("hay.md", "A windrow is a row of cut hay.")
        await library.put("cat.md", "Cats sleep most of the day.")
        async with (
            open_index_handlers(settings, queue) as handlers,
            open_index_handlers(settings, queue) as others,
        ):
            assert handlers
            assert others
            await Worker(queue, handlers, maintain=False).run(until_idle=True)

        answer = await search(settings, SearchRequest(query="cut hay", limit=1))
        assert [one.uri for one in answer.results] == ["hay.md"]
        async with Searching(settings, queue) as searching:
            answer = await searching.search(SearchRequest(query="cats", mode="keyword"))
            assert [one.uri for one in answer.results] == ["cat.md"]
    assert not (tmp_path / "data").exists(), "nothing is kept in a folder"


async def test_a_qdrant_server_that_is_named_comes_first(vector_database: str) -> None:
    named = Settings(database_url=vector_database, qdrant_url="http://127.0.0.1:6333")
    assert await find_home(named) == "qdrant"
    assert await find_home(Settings(database_url="sqlite:///jobs.db")) == "edge"
