"""Queries and problems: what a URL asks, and how an error is told."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadFilter, BadRequest, Busy, TocsinError, catalogue
from tocsin.event.filter import EVERYTHING
from tocsin.wire.api.problem import problem_json, retry_after_s, title
from tocsin.wire.api.query import Query
from tocsin.wire.api.stream_request import read_stream_request

KNOWN = ("limit", "filter", "wait", "sort")


def test_parameters_are_read_and_have_defaults() -> None:
    query = Query.parse(b"limit=5&filter=&wait=2.5", KNOWN)

    assert query.number("limit", 100, least=1, most=10) == 5
    assert query.filter() == EVERYTHING
    assert query.seconds("wait", 0.0, most=60) == 2.5
    assert query.choice("sort", "created", ("created", "behind")) == "created"


@given(st.dictionaries(st.sampled_from(KNOWN), st.text()))
def test_what_was_written_into_a_url_is_read_from_it(given: dict[str, str]) -> None:
    query = Query.parse(urlencode(given, errors="surrogatepass").encode(), KNOWN)

    assert all(query.text(name) == (value or None) for name, value in given.items())


@given(st.binary(max_size=100))
def test_any_bytes_are_a_query_or_refused(raw: bytes) -> None:
    with suppress(BadRequest):
        Query.parse(raw, KNOWN)


def test_a_misspelt_parameter_is_told_the_right_one() -> None:
    with pytest.raises(BadRequest) as refused:
        Query.parse(b"limt=5", KNOWN)

    assert refused.value.remedy == "Did you mean limit?"


def test_a_number_outside_its_limits_is_refused_and_not_bent() -> None:
    query = Query.parse(b"limit=11", KNOWN)

    with pytest.raises(BadRequest, match="limit=11"):
        query.number("limit", 1, least=1, most=10)


def test_the_header_of_a_browser_that_resumes_wins_over_the_url() -> None:
    assert read_stream_request(b"after=3", "7").after == 7
    assert read_stream_request(b"after=3", None).after == 3
    assert read_stream_request(b"", None).after is None


@pytest.mark.parametrize("header", ["x", "-1", "9" * 5_000])
def test_a_place_to_resume_at_that_is_none_is_named_as_the_header_it_came_in(header) -> None:
    with pytest.raises(BadRequest, match="Last-Event-ID"):
        read_stream_request(b"after=3", header)


@pytest.mark.parametrize("kind", catalogue().values(), ids=catalogue())
def test_every_error_is_a_problem_with_its_code_and_status(kind: type[TocsinError]) -> None:
    reported = msgspec.json.decode(problem_json(kind("it \ud800 broke", remedy="mend it")))

    assert reported["code"] == kind.code
    assert reported["status"] == kind.http_status
    assert reported["detail"] == "it ? broke"
    assert reported["remedy"] == "mend it"
    assert reported["title"] == title(kind)


def test_a_bad_filter_points_at_the_character() -> None:
    error = BadFilter("found '>>'", remedy="mend it", text="load5 >> 5", position=6)

    reported = msgspec.json.decode(problem_json(error))

    assert reported["position"] == 6
    assert reported["pointed"] == "load5 >> 5\n      ^"


def test_only_where_waiting_helps_is_a_wait_proposed() -> None:
    assert retry_after_s(Busy("full", remedy="wait")) == 1
    assert retry_after_s(BadRequest("no", remedy="mend it")) is None
