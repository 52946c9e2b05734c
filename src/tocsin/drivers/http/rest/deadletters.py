"""`/deadletters`: what was given up, and another try."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.access.session import Session
from tocsin.broker.delivery.deadletter import DeadLetter, from_record
from tocsin.broker.log import StoreReader
from tocsin.broker.port import BrokerPort
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.drivers.http.rest.views import dead_letter_info
from tocsin.errors import NoSuchDeadLetter
from tocsin.wire.api.query import Query
from tocsin.wire.api.views import DeadLettersPage, RedriveResult

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100
PAGE: Final = 200
SCANNED_MAX: Final = 10_000  # letters that one call looks at for those of one subscription


def dead_letter_routes(port: BrokerPort) -> list[Endpoint]:
    async def index(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("limit", "after", "subscription"))
        limit = query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        after, subscription = query.text("after") or "", query.text("subscription")
        letters, reached = await port.read(
            session_in(request),
            "deadletter/*",
            lambda log: _scan(log, after, limit, subscription),
        )
        return answer(DeadLettersPage([dead_letter_info(each) for each in letters], reached))

    async def show(request: Request) -> Response:
        letter = await _find(port, session_in(request), request.path_params["id"])
        return answer(dead_letter_info(letter))

    async def delete(request: Request) -> Response:
        session = session_in(request)
        letter = await _find(port, session, request.path_params["id"])
        await port.drop_dead_letter(session, letter.id)
        return Response(status_code=204)

    async def redrive(request: Request) -> Response:
        session = session_in(request)
        letter = await _find(port, session, request.path_params["id"])
        redriven = await port.redrive(session, letter)
        return answer(RedriveResult(redriven.dead_letter.id))

    one = "/deadletters/{id}"
    return [
        Endpoint("GET", "/deadletters", index, BY_PORT),
        Endpoint("GET", one, show, BY_PORT),
        Endpoint("DELETE", one, delete, BY_PORT),
        Endpoint("POST", f"{one}/redrive", redrive, BY_PORT),
    ]


async def _find(port: BrokerPort, session: Session, letter_id: str) -> DeadLetter:
    resource = f"deadletter/{letter_id}"
    record = await port.read(session, resource, lambda log: log.dead_letter(letter_id))
    if record is None:
        raise NoSuchDeadLetter(
            f"there is no dead letter {letter_id[:64]!r}",
            remedy="It was redriven or dropped, or never was: GET /deadletters lists them.",
        )
    return from_record(record)


def _scan(
    log: StoreReader, after: str, limit: int, subscription: str | None
) -> tuple[list[DeadLetter], str | None]:
    """Letters by id, of one subscription or of all, and from where to go on."""
    found: list[DeadLetter] = []
    reached: str | None = after
    scanned = 0
    while reached is not None and len(found) < limit and scanned < SCANNED_MAX:
        page = log.dead_letters(reached, PAGE)
        scanned += len(page.letters)
        for letter_id, record in page.letters.items():
            letter = from_record(record)
            if subscription is None or letter.subscription == subscription:
                found.append(letter)
                if len(found) == limit:
                    return found, letter_id
        reached = page.next
    return found, reached
