"""Where to listen, as people write it."""

from __future__ import annotations

import os
import socket

from tocsin.errors import BadSetting


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of an address to listen on; raises BadSetting if it has not got them."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 0xFFFF:
        raise BadSetting(
            f"{address!r} is not a valid address to listen on",
            remedy="Write it as in 127.0.0.1:8400.",
        )
    return host, int(port)


def why_not(error: OSError | UnicodeError) -> str:
    """Why an address could not be used, in the system's few words."""
    if isinstance(error, UnicodeError):
        return "the host name is not valid"
    if error.errno is None or isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()  # asyncio's own words repeat the address
