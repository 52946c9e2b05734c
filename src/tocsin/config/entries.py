"""What the entries of lists have to look like, by the setting that they are in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from tocsin.errors import BadSetting, TocsinError
from tocsin.event.filter_text import parse_filter

OFF = "off"  # in place of an address: there shall be no such listener


def split_address(address: str) -> tuple[str, int] | None:
    """Host and port of an address to connect to, as in `[::1]:8403`; None if it is none."""
    host, _, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None  # an IPv6 address, whose last part would be taken for the port
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if not host or any(map(str.isspace, host)) or not is_number or not 0 < int(port) < 1 << 16:
        return None
    return host, int(port)


def is_loopback(address: str) -> bool:
    """True if only this machine can reach a listener there."""
    host = address.rpartition(":")[0].strip("[]")
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _check_dialect(entry: str, origin: str) -> None:
    name, _, address = entry.partition("=")
    if not name.strip() or not address.strip():
        raise BadSetting(
            f"dialects.listen has the entry {entry!r} ({origin})",
            remedy="Write each entry as name=host:port.",
        )


def _check_peer(entry: str, origin: str) -> None:
    """One address, or several with commas between them."""
    addresses = [each.strip() for each in entry.split(",")]
    wrong = [each for each in addresses if split_address(each) is None]
    if wrong:
        raise BadSetting(
            f"overlay.peers has the entry {entry!r} ({origin}): {wrong[0]!r} is not an address",
            remedy="Write each peer as host:port, and standby peers as host:port,host:port.",
        )
    if len(set(addresses)) < len(addresses):
        raise BadSetting(
            f"overlay.peers has the entry {entry!r} ({origin}), which names an address twice",
            remedy="Name each standby peer once.",
        )


def _check_direct_address(entry: str, origin: str) -> None:
    if split_address(entry) is None:
        raise BadSetting(
            f"overlay.direct_addresses has the entry {entry!r} ({origin}), which is not an address",
            remedy="Write each broker as host:port, as it names itself to others.",
        )


def _check_filter(entry: str, origin: str) -> None:
    try:
        parse_filter(entry)
    except TocsinError as error:
        raise BadSetting(
            f"overlay.advertises has the entry {entry!r} ({origin}): {error.problem}",
            remedy=error.remedy,
        ) from None


def _check_entity_id(entry: str, origin: str) -> None:
    if not re.fullmatch(r"[0-9a-f]{40}", entry):
        raise BadSetting(
            f"topics.trusted_tdns has the entry {entry!r} ({origin}), which is not the id of a key",
            remedy="An id has 40 digits of base 16; the node shows its own when it starts.",
        )


ENTRY_CHECKS: Final[Mapping[str, Callable[[str, str], None]]] = {
    "dialects.listen": _check_dialect,
    "overlay.peers": _check_peer,
    "overlay.direct_addresses": _check_direct_address,
    "overlay.advertises": _check_filter,
    "topics.trusted_tdns": _check_entity_id,
}
