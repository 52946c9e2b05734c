"""The destination of an envelope: SOAP.TCP has no request line, only the header To."""

from __future__ import annotations

from urllib.parse import urlsplit

from tocsin import safexml
from tocsin.errors import BadXml
from tocsin.wire.soap.names import SOAP_NAMESPACES, WSA_NAMESPACES

SCHEME = "soap.tcp"
DEFAULT_PATH = "/soap"


def path_and_query(envelope: bytes) -> tuple[str, str]:
    """The path and query that the header To names, or else the default path.

    An envelope that cannot be read names nothing here; who answers it says what is wrong with it.
    """
    try:
        root = safexml.parse(envelope)
    except BadXml:
        return DEFAULT_PATH, ""
    for soap in SOAP_NAMESPACES.values():
        for wsa in WSA_NAMESPACES:
            to = root.findtext(f"{{{soap}}}Header/{{{wsa}}}To")
            if to is not None:
                return _of_address(to.strip())
    return DEFAULT_PATH, ""


def _of_address(address: str) -> tuple[str, str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        return DEFAULT_PATH, ""
    ours = parts.path == DEFAULT_PATH or parts.path.startswith(f"{DEFAULT_PATH}/")
    # A path of ours counts by whatever way it was handed out. Of other addresses only our
    # own scheme names a place here: "anonymous" is an address with a path, too.
    if ours or (parts.scheme.lower() == SCHEME and parts.path not in ("", "/")):
        return parts.path, parts.query
    return DEFAULT_PATH, ""
