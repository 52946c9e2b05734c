"""What a peer sent as an error, in one line; and the errors of one that is away or refuses."""

from __future__ import annotations

import re
from typing import Final

from tocsin.client.gma.address import PeerAddress
from tocsin.errors import BrokerRefused, CannotReachBroker

CHARS_MAX: Final = 1_000
# Ours say "problem [T104]. remedy" in a ReturnDetail; what others say is the problem as it stands.
_OURS = re.compile(r"(.*?) \[(T[0-9]{3})\]\. (.*)", re.DOTALL)
_LISTENS = "Check the address, and that a producer, a consumer or a broker listens there."


def one_line(text: str) -> str:
    """The text in one line; what a terminal would obey instead of showing is written out."""
    cut = text if len(text) <= CHARS_MAX else f"{text[:CHARS_MAX]}..."
    words = " ".join(cut.split())
    if words.isprintable():
        return words
    return "".join(each if each.isprintable() else _escaped(each) for each in words)


def error_text(error: str, detail: str | None) -> str:
    """An Error and its ErrorDetail, if there is one."""
    return one_line(f"{error}: {detail}" if detail else error)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cannot_reach(address: PeerAddress, why: object, remedy: str = _LISTENS) -> CannotReachBroker:
    """Nobody is there, or nobody who speaks the protocol."""
    return CannotReachBroker(f"cannot reach {address}: {one_line(str(why))}", remedy=remedy)


def refused(address: PeerAddress, detail: str | None) -> BrokerRefused:
    """The error for a refusal of a peer."""
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
