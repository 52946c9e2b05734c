"""The SOAP and WS-Addressing versions of a client, by their short names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tocsin.errors import BadSetting
from tocsin.wire.soap.addressing import Versions
from tocsin.wire.soap.names import USUAL_WSA, WSA_NAMESPACES

NO_ADDRESSING: Final = "none"
_ADDRESSING: Final = {
    **{uri.removesuffix("/addressing")[-7:]: uri for uri in WSA_NAMESPACES},
    NO_ADDRESSING: "",
}
_USUAL_SOAP: Final = {
    "wse04": "1.2",
    "wse11": "1.2",
    "wsn13": "1.2",
    "wsn12": "1.1",
    "wsn10": "1.1",
}


def choice(what: str, text: str, known: Mapping[str, str]) -> str:
    """What a name stands for; BadSetting with the names there are."""
    found = known.get(text)
    if found is None:
        raise BadSetting(
            f"there is no {what} {text!r}", remedy=f"Choose one of {', '.join(known)}."
        )
    return found


def versions_of(spec: str, soap: str | None, addressing: str | None) -> Versions:
    """The versions to use: what is not given is as usual for the specification."""
    version = choice("SOAP version", soap or _USUAL_SOAP[spec], {"1.1": "1.1", "1.2": "1.2"})
    if addressing is None or addressing in _ADDRESSING.values():
        return Versions(version, USUAL_WSA[spec] if addressing is None else addressing)
    return Versions(version, choice("WS-Addressing version", addressing, _ADDRESSING))
