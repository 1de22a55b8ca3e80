"""The catalog of one database, by the kinds of things in it."""

from __future__ import annotations

from windrow.catalog.calls import Calls
from windrow.catalog.contents import Contents
from windrow.catalog.documents import Documents
from windrow.catalog.pages import Pages
from windrow.catalog.sources import Collections, Sources
from windrow.db.database import Database


class Catalog:
    def __init__(self, database: Database) -> None:
        self.collections = Collections(database)
        self.sources = Sources(database)
        self.documents = Documents(database)
        self.contents = Contents(database)
        self.pages = Pages(database)
        self.calls = Calls(database)
