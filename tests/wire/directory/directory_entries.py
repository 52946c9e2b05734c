"""Registrations and entries for tests."""

from __future__ import annotations

from typing import Any

from tocsin.wire.directory.entry import Entry, Kind, Offered, Registration
from tocsin.wire.gma.names import read_name

S = 1_000_000_000


def registration(
    name: str = "uptime",
    *events: str,
    kind: Kind = "producer",
    host: str = "node7",
    address: str | None = "gma://node7:8401",
    lease_s: float = 600,
    **attributes: Any,
) -> Registration:
    return Registration(
        kind=kind,
        name=name,
        host=host,
        address=address,
        events=tuple(Offered(read_name(each)) for each in events),
        attributes=attributes,
        lease_ns=int(lease_s * S),
    )


def entry(entry_id: str, about: Registration, *, at_s: float = 0) -> Entry:
    at_ns = int(at_s * S)
    return Entry(entry_id, about, at_ns, at_ns + about.lease_ns)
