"""What a WSDL says: services, their ports, the operations of a port."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from tocsin.wire.soap.names import WSA200403, WSA200408
from tocsin.wire.wsdl.notation import Schema

WSAM: Final = "http://www.w3.org/2007/05/addressing/metadata"
ACTION_ATTRIBUTES: Final = (WSAM, WSA200408, WSA200403)


@dataclass(frozen=True, slots=True)
class Operation:
    """One exchange. Elements are prefixed names of the service's schemas; `reply` is None for a
    one-way message, "" for an answer whose body is empty."""

    name: str
    action: str
    request: str
    reply: str | None
    reply_action: str
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Port:
    """A port type, and the two ports (SOAP 1.1 and 1.2) that offer it."""

    name: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """A specification that this broker speaks. `actions` is the namespace of the attribute that
    gives an operation its WS-Addressing action, which names the version of WS-Addressing too."""

    name: str
    schemas: tuple[Schema, ...]
    ports: tuple[Port, ...]
    actions: str = WSAM

    def only(self, port: str) -> Service | None:
        """The service with one of its ports."""
        found = tuple(p for p in self.ports if p.name == port)
        return replace(self, ports=found) if found else None


def request_response(
    prefix: str, port_uri: str, name: str, faults: Iterable[str] = ()
) -> Operation:
    """An operation as WS-Notification names it: {port}/{name}Request and {port}/{name}Response."""
    return Operation(
        name,
        f"{port_uri}/{name}Request",
        f"{prefix}:{name}",
        f"{prefix}:{name}Response",
        f"{port_uri}/{name}Response",
        tuple(faults),
    )


def asked_and_answered(
    prefix: str,
    uri: str,
    element: str,
    faults: Iterable[str] = (),
    *,
    reply: str | None = None,
    suffix: str = "",
) -> Operation:
    """An operation named after its element, with the actions {uri}/{element} and
    {uri}/{element}Response; `reply` if the answer is not {element}Response."""
    return Operation(
        f"{element}{suffix}",
        f"{uri}/{element}",
        f"{prefix}:{element}",
        f"{prefix}:{element}Response" if reply is None else reply,
        f"{uri}/{element}Response",
        tuple(faults),
    )


def one_way(prefix: str, uri: str, name: str) -> Operation:
    """A message that nobody answers, with the action {uri}/{name}."""
    return Operation(name, f"{uri}/{name}", f"{prefix}:{name}", None, "")
