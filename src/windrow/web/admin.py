"""Pipelines by stage, schedules, settings and API keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from starlette.responses import Response

from windrow.accounts import Accounts
from windrow.errors import ConfigError, InvalidSchedule, WindrowError
from windrow.redaction import redact_url
from windrow.services.keys import ROLES, make_key
from windrow.services.stages import count_stages
from windrow.settings import Settings
from windrow.web.pages import Look
from windrow.web.sessions import Forbidden


async def show_pipelines(look: Look) -> Response:
    return look.render("pipelines.html", flows=await count_stages(look.jobs))


async def show_schedules(look: Look) -> Response:
    schedules = [
        one for one in await look.queue.schedules() if look.viewer.tenant in (None, one.job.tenant)
    ]
    return look.render("schedules.html", schedules=schedules)


async def change_schedule(look: Look) -> Response:
    form = await look.form("admin")
    name = str(form.get("name", ""))
    known = {one.name: one for one in await look.queue.schedules()}
    if name not in known or look.viewer.tenant not in (None, known[name].job.tenant):
        raise InvalidSchedule(f"there is no schedule {name!r}")
    if form.get("do") == "pause":
        await look.queue.pause_schedule(name)
        return look.back("/ui/schedules", f"The schedule {name} is paused")
    await look.queue.resume_schedule(name)
    return look.back("/ui/schedules", f"The schedule {name} goes on")


async def show_settings(look: Look) -> Response:
    return await _settings_page(look)


async def change_keys(look: Look) -> Response:
    """Make a key or revoke one."""
    form = await look.form("admin")
    if look.viewer.tenant is not None:
        raise Forbidden("keys are made by admins of all tenants")
    name = str(form.get("name", "")).strip()
    if form.get("do") == "revoke":
        await Accounts(look.queue.database).api_keys.delete(name)
        look.request.app.state.keys.forget()
        return look.back("/ui/settings", f"the key {name} counts no longer")
    tenant = str(form.get("tenant", "")).strip()
    role = str(form.get("role", "write"))
    try:
        _check_first(look, tenant, role)
        key = await make_key(look.queue, name, tenant=tenant or None, role=role)
    except WindrowError as error:
        given = {"name": name, "tenant": tenant, "role": role}
        return await _settings_page(look, given, str(error))
    look.request.app.state.keys.forget()
    # On a page of its own: it is shown this once.
    return look.render("key.html", name=name, key=key, is_first=look.viewer.is_local)


def _check_first(look: Look, tenant: str, role: str) -> None:
    """With any other first key nobody could make or revoke keys here any more."""
    if look.viewer.is_local and (tenant or role != "admin"):
        raise ConfigError(
            "the first key must be an admin's of all tenants: from then on everybody needs a key, "
            "also on this machine, and only such a one can make others"
        )


async def _settings_page(
    look: Look, given: Mapping[str, str] | None = None, why: str = ""
) -> Response:
    """`given` is what was typed for a key, and `why` it could not be made."""
    settings: Settings = look.request.app.state.settings
    shown = []
    if look.viewer.tenant is None and look.viewer.may("admin"):
        shown = [
            (item.name, _shown(settings, item.name, item.repr), item.metadata["doc"])
            for item in fields(Settings)
        ]
    keys = await Accounts(look.queue.database).api_keys.all() if shown else []
    return look.render(
        "settings.html",
        status=400 if why else 200,
        settings=shown,
        keys=keys,
        roles=ROLES,
        given=given or {},
        why=why,
    )


def _shown(settings: Settings, name: str, is_open: bool) -> str:
    """Secrets, and passwords in addresses, are not."""
    value = getattr(settings, name)
    if not is_open:
        return "set" if value else "not set"
    return redact_url(value) if isinstance(value, str) and "://" in value else str(value)
