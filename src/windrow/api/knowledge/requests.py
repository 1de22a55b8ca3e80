"""How requests to the knowledge API are read, and refused: what is wrong with a body is 422, as its
clients expect it, and said in `detail` as well."""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

import msgspec
from fastapi import Path, Query
from starlette.requests import Request

from windrow.api.bodies import read_as
from windrow.api.errors import ApiError

T = TypeVar("T")

MOST: Final = 100  # of a list, at once
SourceId = Annotated[str, Path(max_length=255)]
Limit = Annotated[int, Query(ge=1, le=MOST)]
Offset = Annotated[int, Query(ge=0, le=2**31)]


class Body(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A body of a request."""


async def read(request: Request, kind: type[T]) -> T:
    """The body of a request. Raises ApiError 422, or 400 for what is no JSON."""
    try:
        return await read_as(request, kind)
    except ApiError as error:
        if error.status == 400 and error.body["code"] == "BAD_REQUEST":
            raise unfit(str(error)) from error
        raise


def unfit(said: str) -> ApiError:
    return ApiError(422, "UNPROCESSABLE", said, detail={"error": said})


def missing(said: str) -> ApiError:
    return ApiError(404, "NOT_FOUND", said, detail={"error": said})
