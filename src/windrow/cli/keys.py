"""`windrow keys`: who may use the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.accounts.usage import QuotaRow
from windrow.cli.lazy import Noun
from windrow.cli.output import (
    DatabaseOption,
    JsonOption,
    YesOption,
    age,
    ask,
    give_up,
    print_json,
    print_preview,
    print_table,
)
from windrow.services.keys import create_key, list_keys, revoke_key
from windrow.services.quotas import list_quotas, set_quota

PerOption = Annotated[str, typer.Option("--per", help="day or month, by UTC.")]

KeyName = Annotated[str, typer.Argument(help="What the key is called.")]

app = Noun(help="Make, list and revoke keys of the HTTP API.", no_args_is_help=True)


@app.command()
def create(
    name: KeyName,
    tenant: Annotated[str | None, typer.Option(help="Whose it is. Default: all tenants.")] = None,
    role: Annotated[str, typer.Option(help="read, write or admin.")] = "write",
    quota: Annotated[
        int | None,
        typer.Option(help="Credits its tenant may use: one a page. Default: as it was."),
    ] = None,
    per: PerOption = "month",
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key and print it, this once: only its hash is kept."""
    key = ask(create_key, database, name, tenant=tenant, role=role, quota=quota, per=per)
    if as_json:
        print_json({"name": name, "tenant": tenant, "role": role, "key": key})
    else:
        print(key)


@app.command("list")
def list_(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """List the keys that were made: whose they are, not what they are."""
    found = ask(list_keys, database)
    quotas = ask(list_quotas, database)
    if as_json:
        shown = ("name", "tenant", "role", "created_at")
        print_json(
            [
                {name: getattr(info, name) for name in shown}
                | {"quota": _told(quotas.get(info.tenant or "")) or None}
                for info in found
            ]
        )
        return
    print_table(
        ["name", "tenant", "role", "quota", "created#"],
        [
            (
                info.name,
                info.tenant or "*",
                info.role,
                _told(quotas.get(info.tenant or "")),
                age(info.created_at),
            )
            for info in found
        ],
    )


@app.command()
def quota(
    tenant: Annotated[str, typer.Argument(help="Whose quota it is.")],
    credits: Annotated[int | None, typer.Argument(help="How many in each period.")] = None,
    per: PerOption = "month",
    is_lifted: Annotated[bool, typer.Option("--none", help="As many as it likes.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change what a tenant may use, a credit for each page; servers that run notice within
    seconds. What it has used in the period stays counted."""
    if is_lifted == (credits is not None):
        raise typer.BadParameter("say how many credits, or --none")
    was_there = ask(set_quota, database, tenant, credits, per)
    if as_json:
        told = {"tenant": tenant, "quota": credits, "per": None if is_lifted else per}
        print_json(told if credits is not None else {**told, "was_there": was_there})
    elif credits is not None:
        print(f"{tenant} may use {credits} credits each {per}")
    else:
        print(f"{tenant} may use what it likes" if was_there else f"{tenant} has no quota")


@app.command()
def revoke(
    name: KeyName,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Revoke a key. Running servers refuse it within seconds."""
    if yes:
        was_there = ask(revoke_key, database, name)
    else:
        was_there = any(one.name == name for one in ask(list_keys, database))
    if not yes and was_there:
        print_preview(f"revoke {name}", {"name": name, "was_there": True}, as_json)
    elif as_json:
        print_json({"is_done": yes, "name": name, "was_there": was_there})
    elif was_there:
        print(f"revoked {name}")
    if not was_there:
        hint = "`windrow keys list` shows what there is"
        raise give_up(f"there is no key {name}", hint=hint)


def _told(quota: QuotaRow | None) -> str:
    return "" if quota is None else f"{quota.credits}/{quota.per}"
