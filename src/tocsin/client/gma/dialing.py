"""Calling a peer, and the errors of a peer that cannot be reached or says no."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.connection import PeerConnection
from tocsin.client.gma.wording import one_line
from tocsin.client.transport.tls import untrusted
from tocsin.errors import BrokerRefused, CannotReachBroker

# Ours say "problem [T104]. remedy" in a ReturnDetail; what others say is the problem as it stands.
_OURS = re.compile(r"(.*?) \[(T[0-9]{3})\]\. (.*)", re.DOTALL)


_LISTENS = "Check the address, and that a producer, a consumer or a broker listens there."


def cannot_reach(address: PeerAddress, why: object, remedy: str = _LISTENS) -> CannotReachBroker:
    """Nobody is there, or nobody who speaks the protocol."""
    return CannotReachBroker(f"cannot reach {address}: {one_line(str(why))}", remedy=remedy)


def refused(address: PeerAddress, detail: str | None) -> BrokerRefused:
    """What a peer said no with."""
    found = _OURS.fullmatch(detail or "")
    if found is not None:
        problem, code, remedy = found.groups()
        return BrokerRefused(one_line(problem), remedy=one_line(remedy), broker_code=code)
    return BrokerRefused(
        f"{address} refused: {one_line(detail or '') or 'it does not say why'}",
        remedy="Ask it with `event_names` what it has, and change the request.",
    )


def is_ours(error: BrokerRefused) -> bool:
    """True if the peer refused in the words of this program."""
    return error.broker_code != BrokerRefused.code


async def dial(
    address: PeerAddress,
    context: ssl.SSLContext | None,
    make: Callable[[], PeerConnection],
    timeout_s: float,
) -> PeerConnection:
    """A connection to the peer; CannotReachBroker if there is none in time."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(
                make, address.host, address.port, ssl=context
            )
    except TimeoutError:
        raise cannot_reach(address, f"no answer within {timeout_s:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise cannot_reach(address, *untrusted(error, address.host)) from None
    except (OSError, UnicodeError) as error:
        raise cannot_reach(address, _words(error)) from None
    return connection


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed ({error.reason or error})"
    return str(error)
