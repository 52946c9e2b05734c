"""Whether somebody on the way can read what comes by a connection."""

from __future__ import annotations

import asyncio

from tocsin.config import is_loopback


def is_private(transport: asyncio.BaseTransport | None, peer: str) -> bool:
    """True if it came by TLS, or from this machine. The peer is an address as host:port."""
    has_tls = transport is not None and transport.get_extra_info("ssl_object") is not None
    return has_tls or is_loopback(peer)
