"""Registration: a producer's entry in a directory, renewed while the producer lives."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from typing import Any, Final
from urllib.parse import quote

from tocsin.client.asking import JSON_HEADERS
from tocsin.client.gma.offers import Offer
from tocsin.client.gma.schedule import pause_s
from tocsin.client.transport.connection import Connection
from tocsin.errors import TocsinError

ANSWER_S_MAX: Final = 10.0
RENEW_AT: Final = 1 / 3  # of the lease: two renewals may fail
LEASE_S_MIN: Final = 10.0
LEASE_S_MAX: Final = 7 * 86_400.0

log = logging.getLogger("tocsin.gma")


def entry_events(offers: list[Offer]) -> list[dict[str, Any]]:
    """What is offered, as a directory lists it."""
    return [
        {
            "name": offer.name.local,
            "namespace": offer.name.namespace,
            "parameters": list(offer.parameters),
        }
        for offer in offers
    ]


class Registration:
    """A thread that writes the entry, again and again; what fails is told and tried again."""

    def __init__(
        self,
        directory: str | None,
        entry: Callable[[], dict[str, Any]],
        lease_s: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connection = Connection(directory, timeout_s=ANSWER_S_MAX)
        self._entry = entry
        self._lease_s = lease_s
        self._chance = chance
        self._changed = Condition()
        self._closed = False
        self._id: str | None = None
        self._tried = False
        self.error: str | None = None
        self._thread = Thread(target=self._run, name="tocsin-registration", daemon=True)

    def start(self, wait_s: float) -> None:
        """Begin; returns when the first attempt is over, for better or worse, or takes too long."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._tried, wait_s)

    def close(self) -> None:
        """Take the entry out of the directory, if that is soon done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(ANSWER_S_MAX)

    def _run(self) -> None:
        attempt = 0
        while not self._closed:
            attempt = 0 if self._register() else attempt + 1
            wait_s = pause_s(attempt, self._chance()) if attempt else self._lease_s * RENEW_AT
            with self._changed:
                self._tried = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed, wait_s)
        if self._id is not None:
            with suppress(TocsinError):
                self._connection.request("DELETE", f"/directory/{quote(self._id, safe='')}")
        self._connection.close()

    def _register(self) -> bool:
        try:
            body = json.dumps({**self._entry(), "lease": f"PT{self._lease_s:g}S"}).encode()
            answer = self._connection.request(
                "POST", "/directory", body=body, headers=JSON_HEADERS
            ).value()
        except TocsinError as error:
            if self.error is None:
                log.warning("could not register in the directory: %s", error)
            self.error = str(error)
            return False
        self._id = str(answer["id"]) if isinstance(answer, dict) and "id" in answer else None
        self.error = None
        return True
