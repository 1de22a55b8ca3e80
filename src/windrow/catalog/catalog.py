"""The catalog of one database, by the kinds of things in it."""

from __future__ import annotations

from windrow.catalog.calls import CallCatalog
from windrow.catalog.contents import ContentCatalog
from windrow.catalog.documents import DocumentCatalog
from windrow.catalog.pages import PageCache
from windrow.catalog.sources import CollectionCatalog, SourceCatalog
from windrow.catalog.writer import DocumentWriter
from windrow.db.database import Database


class Catalog:
    def __init__(self, database: Database) -> None:
        self.collections = CollectionCatalog(database)
        self.sources = SourceCatalog(database)
        self.documents = DocumentCatalog(database)
        self.writer = DocumentWriter(self.documents)
        self.contents = ContentCatalog(database)
        self.pages = PageCache(database)
        self.calls = CallCatalog(database)
