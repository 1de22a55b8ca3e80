"""Who may use a server and how much: API keys, credentials, quotas and usage."""

from __future__ import annotations

from windrow.accounts.accounts import Accounts

__all__ = ["Accounts"]
