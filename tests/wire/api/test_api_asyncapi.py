"""/asyncapi.json: what tools for events need to know, with every reference leading somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tocsin.wire.api.openapi.asyncapi import asynchronous


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            if name == "$ref":
                yield member
            else:
                yield from references(member)
    elif isinstance(value, list):
        for member in value:
            yield from references(member)


def test_every_reference_leads_to_something_in_the_document() -> None:
    document = asynchronous("127.0.0.1:8400")

    found = list(references(document))

    assert found
    for reference in found:
        place: Any = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_it_says_where_events_come_in_and_go_out() -> None:
    document = asynchronous("127.0.0.1:8400")
    ways = {
        (operation["action"], operation["channel"]["$ref"].rpartition("/")[2])
        for operation in document["operations"].values()
    }

    assert ways == {
        ("receive", "events"),
        ("send", "stream"),
        ("send", "socket"),
        ("receive", "socket"),
        ("send", "webhook"),
    }
    assert document["servers"]["http"]["host"] == "127.0.0.1:8400"
