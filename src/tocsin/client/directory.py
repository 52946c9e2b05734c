"""The directory of a broker: register what one offers, and find who offers what.

with Directory() as directory:
    for entry in directory.look_up(kind="producer", event="UptimeCPULoad"):
        print(entry.name, entry.address)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Unpack
from urllib.parse import quote

from tocsin.client.closeable import Closeable
from tocsin.client.requests import query
from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.connection import Connection
from tocsin.client.transport.refusal import Response
from tocsin.client.transport.runtime import run
from tocsin.credentials.sign_in import SignIn
from tocsin.wire.api.directory_views import DirectoryPage, EntryInfo
from tocsin.wire.gma.names import EventName

PAGE_MAX = 1_000
PAGES_MAX = 100  # a directory has fewer; past this somebody answers without end
TIMEOUT_S = 10.0
LEASE_S = 600.0

Offer = str | EventName | Mapping[str, object]


class Directory(Closeable):
    """Keeps one connection. Not for several threads at once."""

    def __init__(
        self,
        broker: str | Address | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        ca_file: str | None = None,
        **sign_in: Unpack[SignIn],
    ) -> None:
        self._connection = Connection(
            broker_address(broker, ca_file, **sign_in), timeout_s=timeout_s
        )

    def close(self) -> None:
        """Close the connection; what was registered stays as long as its lease."""
        self._connection.close()

    def register(
        self,
        kind: str,
        name: str,
        *,
        address: str | None = None,
        host: str | None = None,
        events: Iterable[Offer] = (),
        attributes: Mapping[str, Any] | None = None,
        lease_s: float = LEASE_S,
    ) -> EntryInfo:
        """Register, in place of what the same kind, name and host registered before."""
        asked: dict[str, object] = {"kind": kind, "name": name, "lease": lease_s}
        asked["events"] = [_offer(each) for each in events]
        asked["attributes"] = dict(attributes or {})
        if address is not None:
            asked["address"] = address
        if host is not None:
            asked["host"] = host
        return self._ask("POST", "/directory", asked).read(EntryInfo)

    def renew(self, entry_id: str) -> EntryInfo:
        """Have the whole lease again; BrokerRefused with T311 if it has ended: register again."""
        return self._ask("PUT", _path(entry_id), {}).read(EntryInfo)

    def withdraw(self, entry_id: str) -> None:
        """Leave the directory."""
        self._ask("DELETE", _path(entry_id))

    def look_up(
        self,
        *,
        kind: str | None = None,
        event: str | EventName | None = None,
        host: str | None = None,
        filter: str | None = None,
        limit: int | None = None,
    ) -> Iterator[EntryInfo]:
        """Everybody who fits, or the first `limit`; pages are fetched as they are needed."""
        left = PAGE_MAX * PAGES_MAX if limit is None else limit
        after: str | None = None
        while left > 0:
            size = min(left, PAGE_MAX)
            wanted = query(
                kind=kind, event=event, host=host, filter=filter, limit=size, after=after
            )
            page = self._ask("GET", f"/directory{wanted}").read(DirectoryPage)
            yield from page.entries
            left -= size
            after = page.next
            if after is None:
                return

    def ldif(
        self,
        *,
        kind: str | None = None,
        event: str | EventName | None = None,
        host: str | None = None,
        filter: str | None = None,
        suffix: str | None = None,
        schema: str | None = None,
    ) -> str:
        """The same as LDIF, for an LDAP server."""
        wanted = query(
            kind=kind, event=event, host=host, filter=filter, suffix=suffix, schema=schema
        )
        return self._ask("GET", f"/directory.ldif{wanted}").body.decode()

    def schema_ldif(self) -> str:
        """The schema that `schema="tocsin"` needs, as an entry of OpenLDAP's cn=config."""
        return self._ask("GET", "/directory-schema.ldif").body.decode()

    def _ask(self, method: str, target: str, value: object = None) -> Response:
        return run(self._connection.http.ask(method, target, value))


def _path(entry_id: str) -> str:
    return f"/directory/{quote(entry_id, safe='')}"


def _offer(event: Offer) -> object:
    return dict(event) if isinstance(event, Mapping) else str(event)
