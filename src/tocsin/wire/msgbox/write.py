"""The messages of the original's MsgBoxService, both sides.

Its clients write their requests in the namespace without the last slash; the service answers in
the one with it. Readers take both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tocsin.wire.soap.element import element
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import MSGBOX

REQUESTS: Final = MSGBOX.rstrip("/")
NAMESPACES: Final = (MSGBOX, REQUESTS)

CREATE: Final = "createMsgBox"
STORE: Final = "storeMessages"
TAKE: Final = "takeMessages"
DESTROY: Final = "destroyMsgBox"


def request_action(operation: str) -> str:
    return f"{MSGBOX}{operation}"


def response_action(operation: str) -> str:
    return f"{MSGBOX}MsgBoxPT/{operation}Response"


def request(operation: str, box_id: str) -> bytes:
    """The body of a request; to make a box the original's clients name it in words of their own."""
    return element("msgbox", REQUESTS, operation, _box_id(box_id))


def created(box_id: str) -> bytes:
    return _response(CREATE, _box_id(box_id))


def stored(*, is_stored: bool) -> bytes:
    return _response(STORE, _status(is_true=is_stored))


def taken(messages: Iterable[bytes]) -> bytes:
    """`messages` are elements that stand alone."""
    inner = b"".join(messages)
    return _response(TAKE, b"<msgbox:messages>%b</msgbox:messages>" % inner)


def destroyed(*, is_destroyed: bool) -> bytes:
    return _response(DESTROY, _status(is_true=is_destroyed))


def _status(*, is_true: bool) -> bytes:
    return b"<msgbox:status>%b</msgbox:status>" % (b"true" if is_true else b"false")


def _response(operation: str, content: bytes) -> bytes:
    return element("msgbox", MSGBOX, f"{operation}Response", content)


def _box_id(box_id: str) -> bytes:
    return b"<msgbox:MsgBoxId>%b</msgbox:MsgBoxId>" % escaped(box_id)
