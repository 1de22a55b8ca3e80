"""The accounts of one database, by the kinds of things in them."""

from __future__ import annotations

from windrow.accounts.api_keys import ApiKeys, RevokedSessions
from windrow.accounts.credentials import SealedCredentials
from windrow.accounts.usage import Quotas, UsageLedger
from windrow.db.database import Database


class Accounts:
    def __init__(self, database: Database) -> None:
        self.api_keys = ApiKeys(database)
        self.sessions = RevokedSessions(database)
        self.credentials = SealedCredentials(database)
        self.quotas = Quotas(database)
        self.usage = UsageLedger(database)
