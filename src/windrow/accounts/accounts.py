"""The accounts of one database, by the kinds of things in them."""

from __future__ import annotations

from windrow.accounts.api_keys import ApiKeys, Sessions
from windrow.accounts.credentials import Credentials
from windrow.accounts.usage import Quotas, Usage
from windrow.db.database import Database


class Accounts:
    def __init__(self, database: Database) -> None:
        self.api_keys = ApiKeys(database)
        self.sessions = Sessions(database)
        self.credentials = Credentials(database)
        self.quotas = Quotas(database)
        self.usage = Usage(database)
