"""A broker's REST API, as the commands ask it: JSON out, JSON back, errors raised."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tocsin.cli.render import say, show_json
from tocsin.client.requests import JSON_HEADERS, query
from tocsin.client.transport.connection import Connection

PAGE_MAX = 1_000
ITEMS_MAX = 1_000_000  # past this a list is for a program that pages by itself


class Rest(Connection):
    """A connection with the verbs of the API."""

    def get(self, path: str, **parameters: object) -> Any:
        """What is at an address."""
        return self.request("GET", path + query(**parameters)).value()

    def post(self, path: str, value: object = None) -> Any:
        """Make or do something."""
        return self._send("POST", path, value)

    def patch(self, path: str, value: object) -> Any:
        """Change something."""
        return self._send("PATCH", path, value)

    def delete(self, path: str) -> None:
        """Remove something."""
        self.request("DELETE", path).value()

    def _send(self, method: str, path: str, value: object) -> Any:
        if value is None:
            return self.request(method, path).value()
        body = json.dumps(value).encode()
        return self.request(method, path, body=body, headers=JSON_HEADERS).value()

    def pages(self, path: str, member: str, **parameters: object) -> Iterator[dict[str, Any]]:
        """Every item of a list that comes in pages."""
        after: object = None
        for _ in range(ITEMS_MAX // PAGE_MAX):
            page = self.get(path, limit=PAGE_MAX, after=after, **parameters)
            yield from page[member]
            after = page.get("next")
            if after is None or not page[member]:
                return


def remove(rest: Rest, collection: str, arguments: Namespace, done: str = "removed") -> int:
    """Remove the item that the arguments name, and say so; the exit code."""
    rest.delete(item(collection, arguments.id))
    if arguments.json:
        show_json({done: arguments.id})
    else:
        say(f"{done}: {arguments.id}")
    return 0


def item(collection: str, name: str) -> str:
    """The address of one item."""
    return f"/{collection}/{quote(name, safe='')}"
