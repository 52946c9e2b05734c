"""Addresses that others hand out: some are relative, empty, or not quite URLs."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urljoin, urlsplit

import msgspec

from tocsin.client.transport.address import broker_address
from tocsin.wire.soap.addressing import EndpointReference

SOAP_PATH: Final = "/soap"
MSGBOX_PATH: Final = "/axis2/services/MsgBoxService"

_SLASHLESS = re.compile(r"^(https?):/?(?=[^/])")
_NOBODY: Final = ("0.0.0.0", "::")


def service_url(url: str | None, path: str = SOAP_PATH) -> str:
    """Where a service is: a URL without a path is that of a Tocsin broker, with the path added."""
    if url is None or "://" not in url:
        url = str(broker_address(url))
    return url if urlsplit(url).path or urlsplit(url).query else url + path


def reached_from(asked: str, reference: EndpointReference) -> EndpointReference:
    """A reference that came from `asked`, with an address that can be posted to.

    The original leaves the address empty, others give a path alone, `http:host` without slashes, or
    the address that they listen on for everybody.
    """
    address = reference.address.strip()
    if reference.is_anonymous or not address:
        address = asked
    address = _SLASHLESS.sub(r"\1://", address, count=1)
    address = urljoin(asked, address)
    try:
        parts, home = urlsplit(address), urlsplit(asked)
        if parts.hostname in _NOBODY and home.hostname:
            port = f":{parts.port}" if parts.port else ""
            host = f"[{home.hostname}]" if ":" in home.hostname else home.hostname
            address = parts._replace(netloc=f"{host}{port}").geturl()
    except ValueError:
        pass  # whoever posts there will say what is wrong with it
    return msgspec.structs.replace(reference, address=address)
