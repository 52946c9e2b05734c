"""`/directory`: producers and consumers register what they offer, and are found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tocsin.access.session import Session
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, reads, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.errors import BadRegistration, BadRequest, BadSubscription
from tocsin.services.directory.directory import Directory
from tocsin.wire.api.members import read_object
from tocsin.wire.api.query import Query
from tocsin.wire.directory.distinguished import Suffix, read_suffix
from tocsin.wire.directory.entry import KINDS, Entry, Kind
from tocsin.wire.directory.ldap import (
    FORMS,
    SUFFIX_DEFAULT,
    Form,
    directory_records,
    schema_ldif,
)
from tocsin.wire.directory.listing import Wanted, check_filter
from tocsin.wire.directory.registration import (
    check_event_name,
    check_id,
    read_id,
    read_registration,
)
from tocsin.wire.directory.views import entry_info, page_info
from tocsin.wire.gma.names import EventName

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100
RECORDS_AT_ONCE: Final = 100  # of an export, before others get a turn
LDIF: Final = "text/ldif; charset=utf-8"

_WANTED: Final = ("kind", "event", "host", "filter")


def directory_routes(directory: Directory) -> list[Endpoint]:
    async def register(request: Request) -> Response:
        asked = read_object(await request.body())
        return await _registered(directory, session_in(request), asked, read_id(asked))

    async def replace(request: Request) -> Response:
        entry_id = request.path_params["id"]
        asked = read_object(await request.body())
        if not asked:
            return answer(entry_info(await directory.renew(session_in(request), entry_id)))
        if read_id(asked) not in (None, entry_id):
            raise BadRegistration(
                "the id in the body is not the one in the address",
                remedy="An entry keeps its id: leave it out.",
            )
        return await _registered(directory, session_in(request), asked, check_id(entry_id))

    async def show(request: Request) -> Response:
        entry = directory.get(session_in(request), request.path_params["id"])
        return answer(entry_info(entry))

    async def withdraw(request: Request) -> Response:
        await directory.withdraw(session_in(request), request.path_params["id"])
        return Response(status_code=204)

    async def index(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], (*_WANTED, "limit", "after"))
        limit = query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        after = query.text("after") or ""
        session = session_in(request)
        found = await directory.look_up(session, _wanted(query), after=after, limit=limit)
        return answer(page_info(found))

    async def export(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], (*_WANTED, "suffix", "schema"))
        form = cast(Form, query.choice("schema", FORMS[0], FORMS))
        suffix = read_suffix(query.text("suffix") or SUFFIX_DEFAULT)
        entries = (await directory.look_up(session_in(request), _wanted(query))).entries
        headers = {"cache-control": "no-store", "content-type": LDIF}
        return StreamingResponse(_file(entries, suffix, form), headers=headers)

    async def schema(request: Request) -> Response:
        return Response(schema_ldif(), headers={"content-type": LDIF})

    one = "/directory/{id}"
    return [
        Endpoint("GET", "/directory", index, BY_PORT),
        Endpoint("POST", "/directory", register, BY_PORT),
        Endpoint("GET", one, show, BY_PORT),
        Endpoint("PUT", one, replace, BY_PORT),
        Endpoint("DELETE", one, withdraw, BY_PORT),
        Endpoint("GET", "/directory.ldif", export, BY_PORT),
        Endpoint("GET", "/directory-schema.ldif", schema, reads("directory/*")),
    ]


async def _registered(
    directory: Directory, session: Session, asked: dict[str, object], entry_id: str | None
) -> Response:
    entry, is_new = await directory.register(session, read_registration(asked), entry_id)
    headers = {"location": f"/directory/{entry.id}"}
    return answer(entry_info(entry), 201 if is_new else 200, headers)


def _wanted(query: Query) -> Wanted:
    kind = query.text("kind")
    if kind is not None:
        kind = query.choice("kind", kind, KINDS)
    event = _event(query)
    # Without a namespace, any event of that name is meant.
    is_short = event is not None and query.text("event") == event.local
    return Wanted(
        kind=cast(Kind | None, kind),
        event=None if is_short else event,
        local_name=event.local if event is not None and is_short else None,
        host=query.text("host"),
        filter=check_filter(query.filter()),
    )


def _event(query: Query) -> EventName | None:
    text = query.text("event")
    if text is None:
        return None
    try:
        return check_event_name(text, where="event")
    except BadSubscription as bad:
        raise BadRequest(f"the query's {bad.problem}", remedy=bad.remedy) from None


async def _file(entries: list[Entry], suffix: Suffix, form: Form) -> AsyncIterator[str]:
    pieces: list[str] = []
    for piece in directory_records(entries, suffix, form):
        pieces.append(piece)
        if len(pieces) == RECORDS_AT_ONCE:
            yield "".join(pieces)
            pieces.clear()
            await asyncio.sleep(0)
    yield "".join(pieces)
