"""A service written down as a WSDL 1.1 document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from xml.sax.saxutils import quoteattr

from tocsin.wire.soap.names import TOCSIN
from tocsin.wire.wsdl.notation import XS, location
from tocsin.wire.wsdl.ports import Operation, Port, Service

_WSDL: Final = "http://schemas.xmlsoap.org/wsdl/"
_HTTP: Final = "http://schemas.xmlsoap.org/soap/http"
# The port of SOAP 1.1 has the port type's own name, the other a 12 behind it.
_BINDINGS: Final = (
    ("soap", "http://schemas.xmlsoap.org/wsdl/soap/", ""),
    ("soap12", "http://schemas.xmlsoap.org/wsdl/soap12/", "12"),
)
_EMPTY: Final = "Empty"


def service_document(service: Service, base: str) -> bytes:
    """Types, messages, port types, bindings and the service itself."""
    target = f"{TOCSIN}:wsdl:{service.name}"
    prefixes = {
        "wsdl": _WSDL,
        "xs": XS,
        "tns": target,
        "wsaction": service.actions,
        **{prefix: namespace for prefix, namespace, _ in _BINDINGS},
        **{schema.prefix: schema.namespace for schema in service.schemas},
    }
    parts = (
        _types(service, base),
        *_messages(service),
        *map(_port_type, service.ports),
        *_bindings(service, "tns", ""),
        _service(service, base, ""),
    )
    return _definitions(service.name, target, prefixes, parts)


def directory_document(services: Iterable[Service], base: str) -> bytes:
    """All services in one document, which imports their port types from documents of their own."""
    listed = tuple(services)
    target = f"{TOCSIN}:wsdl"
    prefixes = {
        "wsdl": _WSDL,
        "tns": target,
        **{prefix: namespace for prefix, namespace, _ in _BINDINGS},
        **{service.name: f"{TOCSIN}:wsdl:{service.name}" for service in listed},
    }
    imports = (
        f'<wsdl:import namespace="{prefixes[service.name]}" '
        f"location={quoteattr(f'{base}/soap?wsdl={service.name}')}/>"
        for service in listed
    )
    # Tools offer the services and bindings of the document they were given, not of its imports.
    offered = (
        part
        for service in listed
        for part in (
            *_bindings(service, service.name, f"{service.name}."),
            _service(service, base, f"{service.name}."),
        )
    )
    return _definitions("tocsin", target, prefixes, (*imports, *offered))


def _definitions(name: str, target: str, prefixes: dict[str, str], parts: Iterable[str]) -> bytes:
    bindings = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in prefixes.items())
    inner = "\n".join(parts)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<wsdl:definitions name="{name}" targetNamespace="{target}"{bindings}>\n'
        f"{inner}\n</wsdl:definitions>\n"
    ).encode()


def _types(service: Service, base: str) -> str:
    imports = "".join(
        f'<xs:import namespace="{schema.namespace}" '
        f"schemaLocation={quoteattr(f'{base}/{location(schema.name)}')}/>\n"
        for schema in service.schemas
    )
    return f"<wsdl:types><xs:schema>\n{imports}</xs:schema></wsdl:types>"


def _operations(service: Service) -> Iterator[Operation]:
    for port in service.ports:
        yield from port.operations


def _message_name(element: str) -> str:
    return element.replace(":", ".") or _EMPTY


def _messages(service: Service) -> Iterator[str]:
    """One message for each element that some operation sends, in the order of first use."""
    elements: dict[str, None] = {}
    for operation in _operations(service):
        replies = () if operation.reply is None else (operation.reply,)
        elements.update(dict.fromkeys((operation.request, *replies, *operation.faults)))
    for element in elements:
        part = f'<wsdl:part name="body" element="{element}"/>' if element else ""
        yield f'<wsdl:message name="{_message_name(element)}">{part}</wsdl:message>'


def _port_type(port: Port) -> str:
    operations = "\n".join(map(_abstract, port.operations))
    return f'<wsdl:portType name="{port.name}">\n{operations}\n</wsdl:portType>'


def _abstract(operation: Operation) -> str:
    def way(kind: str, element: str, action: str) -> str:
        message = _message_name(element)
        return f'<wsdl:{kind} message="tns:{message}" wsaction:Action="{action}"/>'

    ways = [way("input", operation.request, operation.action)]
    if operation.reply is not None:
        ways.append(way("output", operation.reply, operation.reply_action))
    ways += [
        f'<wsdl:fault name="{_local(fault)}" message="tns:{_message_name(fault)}"/>'
        for fault in operation.faults
    ]
    return f'<wsdl:operation name="{operation.name}">{"".join(ways)}</wsdl:operation>'


def _local(element: str) -> str:
    return element.partition(":")[2]


def _bindings(service: Service, types: str, names: str) -> Iterator[str]:
    """The bindings of all ports: `types` is the prefix of the port types, `names` what the name of
    a binding begins with."""
    for port in service.ports:
        for soap, _, end in _BINDINGS:
            operations = "\n".join(_concrete(operation, soap) for operation in port.operations)
            yield (
                f'<wsdl:binding name="{names}{port.name}{end}" type="{types}:{port.name}">'
                f'<{soap}:binding style="document" transport="{_HTTP}"/>\n{operations}\n'
                "</wsdl:binding>"
            )


def _concrete(operation: Operation, soap: str) -> str:
    body = f'<{soap}:body use="literal"/>'
    output = "" if operation.reply is None else f"<wsdl:output>{body}</wsdl:output>"
    faults = "".join(
        f'<wsdl:fault name="{name}"><{soap}:fault name="{name}" use="literal"/></wsdl:fault>'
        for name in map(_local, operation.faults)
    )
    return (
        f'<wsdl:operation name="{operation.name}">'
        f'<{soap}:operation soapAction="{operation.action}"/>'
        f"<wsdl:input>{body}</wsdl:input>{output}{faults}</wsdl:operation>"
    )


def _service(service: Service, base: str, names: str) -> str:
    # A subscription, a pull point or a registration has an address of its own, which its maker
    # was told; what is not addressed so is told apart by a header.
    address = quoteattr(f"{base}/soap")
    ports = "\n".join(
        f'<wsdl:port name="{port.name}{end}" binding="tns:{names}{port.name}{end}">'
        f"<{soap}:address location={address}/></wsdl:port>"
        for port in service.ports
        for soap, _, end in _BINDINGS
    )
    return f'<wsdl:service name="{service.name}">\n{ports}\n</wsdl:service>'
