"""All services and schemas, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tocsin.wire.wsdl import eventing, original
from tocsin.wire.wsdl.document import directory_document, service_document
from tocsin.wire.wsdl.notation import Schema
from tocsin.wire.wsdl.notification12 import WSN_1_2
from tocsin.wire.wsdl.notification_ports import WSN_1_3
from tocsin.wire.wsdl.onvif import ONVIF
from tocsin.wire.wsdl.ports import Operation, Service

_SERVICES: Final = {
    service.name: service
    for service in (*eventing.SERVICES, WSN_1_3, WSN_1_2, *original.SERVICES, ONVIF)
}


def _with_imports(schemas: tuple[Schema, ...]) -> Iterator[Schema]:
    for schema in schemas:
        yield schema
        yield from _with_imports(schema.imports)


def _schemas_of(service: Service) -> dict[str, Schema]:
    return {schema.name: schema for schema in _with_imports(service.schemas)}


_SCHEMAS: Final = {
    name: schema for service in _SERVICES.values() for name, schema in _schemas_of(service).items()
}


def services() -> tuple[str, ...]:
    """The names of the services, as `wsdl` knows them."""
    return tuple(_SERVICES)


def operations(service: str) -> Iterator[tuple[str, Operation]]:
    """Each port's name with each of its operations."""
    for port in _SERVICES[service].ports:
        for operation in port.operations:
            yield port.name, operation


def schema_names(service: str) -> tuple[str, ...]:
    """The schemas that a service's messages are made of, and those that these import."""
    return tuple(_schemas_of(_SERVICES[service]))


def schema(name: str) -> bytes | None:
    """A schema document, or None if there is none of that name."""
    found = _SCHEMAS.get(name)
    return None if found is None else found.text().encode()


def schemas() -> dict[str, str]:
    """The namespace of every schema, by its name."""
    return {name: schema.namespace for name, schema in _SCHEMAS.items()}


def wsdl(base: str, service: str | None = None) -> bytes | None:
    """The document of all services, of one (`wsn13`), or of one port (`wsn13.PullPoint`), with
    `{base}/soap` for an address; None if there is no such service."""
    if service is None:
        return directory_document(_SERVICES.values(), base)
    name, _, port = service.partition(".")
    found = _SERVICES.get(name)
    if found is not None and port:
        found = found.only(port)
    return None if found is None else service_document(found, base)
