"""`windrow keys`: who may use the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.cli.output import DatabaseOption, JsonOption, age, ask, print_json, print_table
from windrow.services.keys import create_key, list_keys, revoke_key

app = typer.Typer(help="Make, list and revoke keys of the HTTP API.", no_args_is_help=True)


@app.command()
def create(
    name: str,
    tenant: Annotated[str | None, typer.Option(help="Whose it is. Default: all tenants.")] = None,
    role: Annotated[str, typer.Option(help="read, write or admin.")] = "write",
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key and print it, this once: only its hash is kept."""
    key = ask(create_key, database, name, tenant=tenant, role=role)
    if as_json:
        print_json({"name": name, "tenant": tenant, "role": role, "key": key})
    else:
        print(key)


@app.command("list")
def list_(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """List the keys that were made: whose they are, not what they are."""
    found = ask(list_keys, database)
    if as_json:
        shown = ("name", "tenant", "role", "created_at")
        print_json([{name: getattr(info, name) for name in shown} for info in found])
        return
    print_table(
        ["name", "tenant", "role", "created#"],
        [(info.name, info.tenant or "*", info.role, age(info.created_at)) for info in found],
    )


@app.command()
def revoke(name: str, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Let a key count no longer; servers that run notice within seconds."""
    was_there = ask(revoke_key, database, name)
    if as_json:
        print_json({"name": name, "was_there": was_there})
    else:
        print(f"revoked {name}" if was_there else f"there is no key {name}")
    if not was_there:
        raise typer.Exit(1)
