"""`windrow credentials`: what sites must be shown to let one in. Values are asked for, or read from
standard input: what stands on a command line is seen by everybody on the machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from windrow.accounts.credentials import CredentialInfo
from windrow.cli.lazy import Noun
from windrow.cli.output import (
    MISUSED,
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
from windrow.services.credentials import add_credential, list_credentials, remove_credential

app = Noun(help="Add, list and remove credentials of sites.", no_args_is_help=True)

TenantOption = Annotated[str | None, typer.Option(help="Whose it is. Default: nobody's.")]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What it is called.")],
    origin: Annotated[str, typer.Option(help="Where it is sent to, as https://docs.example.")],
    header: Annotated[list[str] | None, typer.Option(help="The name of a header.")] = None,
    cookie: Annotated[list[str] | None, typer.Option(help="The name of a cookie.")] = None,
    user: Annotated[str | None, typer.Option(help="The user of a password.")] = None,
    tenant: TenantOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep a credential, in the place of one of the same name.

    The values are asked for; or read from standard input, one a line: of the headers, of the
    cookies, then the password.
    """
    headers, cookies = header or [], cookie or []
    wanted = [f"header {one}" for one in headers] + [f"cookie {one}" for one in cookies]
    values = read_values([*wanted, *([] if user is None else ["password"])])
    info = ask(
        add_credential,
        database,
        name,
        origin,
        headers=dict(zip(headers, values, strict=False)),
        cookies=dict(zip(cookies, values[len(headers) :], strict=False)),
        user=user,
        password="" if user is None else values[-1],
        tenant=tenant,
    )
    if as_json:
        print_json(credential_fields(info))
    else:
        print(f"added {info.name} for {info.origin}: {', '.join(info.holds)}")


@app.command("list")
def list_(
    tenant: TenantOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """List credentials: where each is sent to and what is in it, but no values."""
    found = ask(list_credentials, database, tenant)
    if as_json:
        print_json([credential_fields(info) for info in found])
        return
    print_table(
        ["name", "origin", "holds", "changed#"],
        [(info.name, info.origin, ", ".join(info.holds), age(info.changed_at)) for info in found],
    )


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="What it is called.")],
    tenant: TenantOption = None,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a credential."""
    if yes:
        was_there = ask(remove_credential, database, name, tenant)
    else:
        was_there = any(one.name == name for one in ask(list_credentials, database, tenant))
    if not yes and was_there:
        print_preview(f"remove {name}", {"name": name, "was_there": True}, as_json)
    elif as_json:
        print_json({"is_done": yes, "name": name, "was_there": was_there})
    elif was_there:
        print(f"removed {name}")
    if not was_there:
        raise give_up(
            f"there is no credential {name}", hint="`windrow credentials list` shows what there is"
        )


def read_values(wanted: Sequence[str]) -> list[str]:
    """A value for each of these, from a person or from a program."""
    if not wanted:
        raise give_up("say what is in it: --header, --cookie or --user", MISUSED)
    if sys.stdin.isatty():
        return [typer.prompt(f"The value of {what}", hide_input=True) for what in wanted]
    lines = sys.stdin.read().splitlines()
    if len(lines) != len(wanted):
        raise give_up(
            f"standard input has {len(lines)} lines; one is needed for each of: "
            f"{', '.join(wanted)}",
            MISUSED,
        )
    return lines


def credential_fields(info: CredentialInfo) -> dict[str, Any]:
    """A credential for JSON, without what is sealed."""
    shown = ("name", "tenant", "origin", "holds", "changed_at")
    return {name: getattr(info, name) for name in shown}
