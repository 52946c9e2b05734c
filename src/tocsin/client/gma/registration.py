"""Registration: a producer's entry in a directory, renewed while the producer lives."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, Final

from tocsin.client.directory import Directory
from tocsin.client.gma.offers import Offer
from tocsin.client.gma.peer_errors import one_line
from tocsin.client.gma.schedule import pause_s
from tocsin.client.transport.address import Address
from tocsin.errors import BrokerRefused, NoSuchEntry, TocsinError
from tocsin.event.value import Scalar

ANSWER_S_MAX: Final = 10.0
WITHDRAW_S_MAX: Final = 2.0
RENEW_AT: Final = 1 / 3  # of the lease: two renewals may fail
LEASE_S_MIN: Final = 10.0
LEASE_S_MAX: Final = 7 * 86_400.0
REFUSED_S: Final = 300.0  # before a directory that refused the entry is asked again

_NOT_NOW: Final = (408, 425, 429)  # refusals that say nothing about the entry

log = logging.getLogger("tocsin.gma")


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """The entry of a producer in the directory."""

    name: str
    address: str | None  # None: those who read the directory could not use it
    host: str
    events: list[dict[str, Any]]
    attributes: Mapping[str, Scalar]


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
    """A thread that writes the entry and renews it; a failure is logged and tried again."""

    def __init__(
        self,
        directory: Address,
        entry: Callable[[], DirectoryEntry],
        lease_s: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._where = directory
        self._directory = Directory(directory, timeout_s=ANSWER_S_MAX)
        self._entry = entry
        self._lease_s = lease_s
        self._chance = chance
        self._changed = Condition()
        self._closed = False
        self._tried = False
        self._attempt = 0
        self._id: str | None = None
        self._written: DirectoryEntry | None = None
        self.error: str | None = None
        self._thread = Thread(target=self._run, name="tocsin-registration", daemon=True)

    def start(self, wait_s: float) -> None:
        """Begin; returns when the first attempt is over, for better or worse, or takes too long."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._tried or self._closed, wait_s)

    def close(self) -> None:
        """Take the entry out of the directory, as soon as that can be done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def join(self, timeout_s: float) -> None:
        """Wait for that so long. What is not taken out ends with its lease."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closed:
            wait_s = self._write_or_retry()
            with self._changed:
                self._tried = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed, wait_s)
        self._directory.close()
        self._withdraw()

    def _write_or_retry(self) -> float:
        """Do what is to be done now; how long there is nothing more to do."""
        try:
            self._write()
        except Exception as error:
            # Whatever it is: the producer lives on, and so does the attempt to have it found.
            self._log_failure(error)
            self._attempt += 1
            if _is_final(error):
                return REFUSED_S
            return min(pause_s(self._attempt, self._chance()), self._lease_s * RENEW_AT)
        self._attempt = 0
        self.error = None
        return self._lease_s * RENEW_AT

    def _write(self) -> None:
        entry = self._entry()
        if self._id is not None and entry == self._written:
            try:
                self._directory.renew(self._id)
            except BrokerRefused as error:
                if error.broker_code != NoSuchEntry.code:
                    raise
                self._id = None  # somebody took it out, or it has lapsed
            else:
                return
        shown = self._directory.register(
            "producer",
            entry.name,
            address=entry.address,
            host=entry.host,
            events=entry.events,
            attributes=entry.attributes,
            lease_s=self._lease_s,
        )
        self._id, self._written = shown.id, entry

    def _log_failure(self, error: Exception) -> None:
        is_known = isinstance(error, TocsinError)
        problem = one_line(str(error) if is_known else f"{type(error).__name__}: {error}")
        if problem != self.error:
            cause = None if is_known else error
            log.warning("could not register in the directory: %s", problem, exc_info=cause)
        self.error = problem

    def _withdraw(self) -> None:
        if self._id is None:
            return
        try:
            with Directory(self._where, timeout_s=WITHDRAW_S_MAX) as directory:
                directory.withdraw(self._id)
        except Exception as error:
            log.debug("could not leave the directory: %s", error)


def _is_final(error: Exception) -> bool:
    """True if the directory will say the same to the same entry for a long time."""
    return (
        isinstance(error, BrokerRefused)
        and 400 <= error.status < 500
        and error.status not in _NOT_NOW
    )
