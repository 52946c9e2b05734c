"""A run is found by its name, whatever that is."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from monitor.runs import activity_pairs, run_pairs
from served import served
from tocsin.drivers.http.rest.endpoint import NamedRoute
from tocsin.monitor.run_messages import is_valid_run_id

NAMES = ("r1", "r1/events", "r1/events/events", "a b/ü?#%2F", "/", "r1/compare/r2", "..", "é\u00a0")


async def _nothing(request: Request) -> Response:
    return Response()


SHOW = NamedRoute("/runs/{id:path}", _nothing, methods=["GET"])
EVENTS = NamedRoute("/runs/{id:path}/events", _nothing, methods=["GET"])


def asked(route: Route, path: str) -> str | None:
    raw = path.encode()
    decoded = unquote_to_bytes(raw).decode(errors="replace")
    scope = {"type": "http", "method": "GET", "path": decoded, "raw_path": raw}
    match, found = route.matches(scope)
    return found["path_params"]["id"] if match is Match.FULL else None


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(is_valid_run_id))
def test_every_name_that_is_quoted_is_the_name_that_is_asked_for(name: str) -> None:
    quoted = quote(name, safe="")

    assert asked(EVENTS, f"/runs/{quoted}") is None
    assert asked(SHOW, f"/runs/{quoted}") == name
    assert asked(EVENTS, f"/runs/{quoted}/events") == name


def test_a_slash_that_is_not_quoted_still_does_where_nothing_else_fits() -> None:
    assert asked(SHOW, "/runs/good/1") == "good/1"
    assert asked(EVENTS, "/runs/good/1/events") == "good/1"
    assert asked(SHOW, "/runs/good%2f1") == "good/1"


def test_runs_with_odd_names_are_listed_and_found_as_such() -> None:
    with served() as broker:
        pairs = [run_pairs("WorkflowStarted", n, run=name) for n, name in enumerate(NAMES)]
        pairs += [activity_pairs("a", "ActivityExecuting", 1, run=name) for name in NAMES]
        posted = [{"pairs": each} for each in pairs]
        assert broker.call("POST", "/blackboard/messages", posted)[0] == 202

        listed = broker.call("GET", "/runs")[1]["runs"]
        assert {run["id"] for run in listed} == set(NAMES)
        for name in NAMES:
            path = f"/runs/{quote(name, safe='')}"
            assert broker.call("GET", path)[1]["id"] == name
            assert len(broker.call("GET", f"{path}/events")[1]["events"]) == 2
            assert len(broker.call("GET", f"{path}/activities")[1]["activities"]) == 1
