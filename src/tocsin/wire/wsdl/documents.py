"""The files of `documents/`: one WSDL 1.1 document a service, one schema a namespace.

The files give every address below `http://broker.example`; it is replaced by the broker's own.
The document of all services and that of a single port are made from the files. A subscription, a
pull point or a registration has an address of its own, which the answer to its creation gives.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import Final

from lxml import etree

from tocsin.wire.soap.fault import quoted
from tocsin.wire.soap.names import TOCSIN

WSDL: Final = "http://schemas.xmlsoap.org/wsdl/"
_BASE: Final = b"http://broker.example/"
_SERVICES: Final = ("wse04", "wse11", "wsman", "wsn13", "wsn12", "wsn10", "msgbox", "onvif")
_SCHEMAS: Final = (
    "wse-2004-08", "wsa-2004-08", "xml", "wse-2011-03", "ws-addr", "wsen-2004-09", "wsman", "b-2",
    "bf-2", "t-1", "br-2", "r-2", "rp-2", "wsn12-base", "wsa-2004-03", "wsrf12-faults",
    "wsrf12-properties", "wsrf12-lifetime", "wsn10", "msgbox", "msgbox-2011", "onvif-device",
    "onvif", "onvif-events",
)  # fmt: skip
_BINDINGS: Final = {
    "soap": "http://schemas.xmlsoap.org/wsdl/soap/",
    "soap12": "http://schemas.xmlsoap.org/wsdl/soap12/",
}


def services() -> tuple[str, ...]:
    """The names of the services, as `wsdl` knows them."""
    return _SERVICES


def schema(name: str) -> bytes | None:
    """A schema document, or None if there is none of that name."""
    return _read(f"{name}.xsd") if name in _SCHEMAS else None


@cache
def schemas() -> dict[str, str]:
    """The namespace of every schema, by its name."""
    return {
        name: etree.fromstring(_read(f"{name}.xsd")).get("targetNamespace", "") for name in _SCHEMAS
    }


def wsdl(base: str, service: str | None = None) -> bytes | None:
    """The document of all services, of one (`wsn13`), or of one port (`wsn13.PullPoint`), with
    `{base}/soap` for an address; None if there is no such service."""
    found = _all_services() if service is None else _one_service(service)
    return None if found is None else found.replace(_BASE, quoted(base) + b"/")


def _one_service(asked: str) -> bytes | None:
    name, _, port = asked.partition(".")
    if name not in _SERVICES or (port and port not in _ports(name)):
        return None
    return _one_port(name, port) if port else _read(f"{name}.wsdl")


@cache
def _read(file: str) -> bytes:
    return files(__package__).joinpath("documents", file).read_bytes()


def _service(name: str) -> etree._Element:
    return etree.fromstring(_read(f"{name}.wsdl"))


def _tag(local: str) -> str:
    return f"{{{WSDL}}}{local}"


def _written(root: etree._Element) -> bytes:
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True)


@cache
def _all_services() -> bytes:
    """A document that imports the port types of all services from documents of their own.

    Tools offer the services and bindings of the document they were given, not of its imports, so
    these are repeated here. Their names begin with the service's.
    """
    target = f"{TOCSIN}:wsdl"
    targets = {name: f"{target}:{name}" for name in _SERVICES}
    prefixes = {"wsdl": WSDL, "tns": target, **_BINDINGS, **targets}
    root = etree.Element(_tag("definitions"), nsmap=prefixes, name="tocsin", targetNamespace=target)
    for name, namespace in targets.items():
        location = f"{_BASE.decode()}soap?wsdl={name}"
        etree.SubElement(root, _tag("import"), namespace=namespace, location=location)
    for name in _SERVICES:
        document = _service(name)
        for binding in document.iterfind(_tag("binding")):
            copied = deepcopy(binding)
            copied.set("name", f"{name}.{binding.get('name')}")
            copied.set("type", binding.get("type", "").replace("tns:", f"{name}:"))
            root.append(copied)
        for service in document.iterfind(_tag("service")):
            root.append(copied := deepcopy(service))
            for port in copied:
                port.set("binding", port.get("binding", "").replace("tns:", f"tns:{name}."))
    etree.cleanup_namespaces(root, keep_ns_prefixes=list(prefixes))
    return _written(root)


@cache
def _ports(name: str) -> frozenset[str]:
    return frozenset(port.get("name", "") for port in _service(name).iterfind(_tag("portType")))


@cache
def _one_port(name: str, port: str) -> bytes:
    """The service's document with one of its ports, which has both versions of SOAP."""
    root = _service(name)
    named = [
        *root.iterfind(_tag("portType")),
        *root.iterfind(_tag("binding")),
        *root.iterfind(f"{_tag('service')}/{_tag('port')}"),
    ]
    for element in named:
        if element.get("name") not in (port, f"{port}12"):
            _remove(element)
    used = {element.get("message") for element in root.iterfind(f"{_tag('portType')}/*/*")}
    for message in list(root.iterfind(_tag("message"))):
        if f"tns:{message.get('name')}" not in used:
            _remove(message)
    return _written(root)


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    assert parent is not None
    parent.remove(element)
