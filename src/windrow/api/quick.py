"""`Quick`: routes that read the plain parameters of an endpoint themselves.

FastAPI's own way to an endpoint takes about as long as finding the answer does. Most endpoints take
the request, who asks, and a few words and numbers: these are read here, by the fields FastAPI made
of the signature. Where anything is wrong with them it reads them once more and says so, so its
errors and its OpenAPI document are the same either way.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import NoneType
from typing import Any, Final, get_args
from uuid import UUID

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

Handle = Callable[[Request], Coroutine[Any, Any, Response]]

# A parameter is one of these, or None: nothing that is several values, or has a model.
PLAIN: Final = frozenset({str, int, float, UUID, NoneType})


class Quick(APIRoute):
    def get_route_handler(self) -> Handle:
        by_fastapi: Handle = super().get_route_handler()
        if not self.is_plain():
            return by_fastapi
        taken = self.dependant
        endpoint = self.endpoint
        request_name = taken.request_param_name
        callers = [(one.name or "", one.call) for one in taken.dependencies if one.call is not None]

        async def handle(request: Request) -> Response:
            values: dict[str, Any] = {}
            if not (
                _read(values, taken.path_params, request.path_params)
                and _read(values, taken.query_params, request.query_params)
                and _read(values, taken.header_params, request.headers)
            ):
                return await by_fastapi(request)
            for name, find_caller in callers:
                values[name] = await find_caller(request)
            if request_name is not None:
                values[request_name] = request
            response: Response = await endpoint(**values)
            return response

        return handle

    def is_plain(self) -> bool:
        """Whether the endpoint takes nothing but what is read here."""
        taken = self.dependant
        fields = [*taken.path_params, *taken.query_params, *taken.header_params]
        others = (
            taken.body_params,
            taken.cookie_params,
            taken.http_connection_param_name,
            taken.response_param_name,
            taken.background_tasks_param_name,
            taken.security_scopes_param_name,
        )
        return (
            not any(others)
            and all(hasattr(one.call, "role") for one in taken.dependencies)
            and all(_kinds(field.field_info.annotation) <= PLAIN for field in fields)
        )


def _kinds(annotation: Any) -> set[Any]:
    """The types that an annotation allows."""
    return set(get_args(annotation)) or {annotation}


def _read(values: dict[str, Any], fields: Iterable[Any], given: Mapping[str, str]) -> bool:
    """Put what is given into the values; whether it is as it must be."""
    for field in fields:
        text = given.get(field.alias)
        if text is not None:
            values[field.name], errors = field.validate(text)
            if errors:
                return False
        elif field.field_info.is_required():
            return False
        else:
            values[field.name] = field.default
    return True
