"""Events on their way out: a CloudEvent as JSON text, with the payload's own bytes inside it."""

from __future__ import annotations

import json
import os
import socket
import time as clock
from binascii import b2a_base64
from itertools import count
from typing import TYPE_CHECKING, Any

from tocsin.errors import BadEvent

if TYPE_CHECKING:
    from tocsin.client.event_signer import EventSigner

DEFAULT_TYPE = "org.tocsin.event"
EVENT_MEDIA_TYPE = "application/cloudevents+json"
BATCH_MEDIA_TYPE = "application/cloudevents-batch+json"

_numbers = count(1)
_origin: list[str] = []


def new_id() -> str:
    """An id that nobody else makes: random for this process, then counted."""
    if not _origin or not _origin[0].endswith(f".{os.getpid()}"):
        # A forked child must not go on with its parent's random part.
        _origin[:] = [f"{os.urandom(9).hex()}.{os.getpid()}"]
    return f"{_origin[0]}.{next(_numbers)}"


def now_text() -> str:
    """This moment, as an event's time."""
    # Not by datetime, whose import alone would be a tenth of what `tocsin pub` costs.
    seconds, rest_ns = divmod(clock.time_ns(), 1_000_000_000)
    moment = clock.strftime("%Y-%m-%dT%H:%M:%S", clock.gmtime(seconds))
    return f"{moment}.{rest_ns // 1_000:06}Z"


def default_source(program: str = "pub") -> str:
    """Who publishes, when nobody says: /HOST/USER/PROGRAM."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or str(os.getuid())
    parts = (socket.gethostname(), user, program)
    return "/" + "/".join(_plain(part) for part in parts)


def _plain(text: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-._~") else "_" for c in text) or "_"


def event_json(attributes: dict[str, Any], data: bytes | None) -> bytes:
    """A structured CloudEvent; the JSON of a payload is put in as it is, to the byte."""
    named = {name: value for name, value in attributes.items() if value is not None}
    head = json.dumps({"specversion": "1.0", **named}, separators=(",", ":")).encode()
    if data is None:
        return head
    member, value = _data_member(data, named.get("datacontenttype"))
    return b"".join((head[:-1], b',"', member, b'":', value, b"}"))


def _data_member(data: bytes, content_type: str | None) -> tuple[bytes, bytes]:
    essence = (content_type or "application/json").partition(";")[0].strip().lower()
    if essence.endswith(("/json", "+json")):
        check_json(data)
        return b"data", data.strip()
    if essence.startswith("text/"):
        try:
            return b"data", json.dumps(data.decode()).encode()
        except UnicodeDecodeError:
            pass
    return b"data_base64", b'"' + b2a_base64(data, newline=False) + b'"'


def check_json(data: bytes) -> None:
    """Raises BadEvent unless `data` is one JSON text in UTF-8."""
    problem = json_problem(data)
    if problem is not None:
        raise BadEvent(
            f"the data is declared as JSON and is not valid JSON: {problem}",
            remedy="Correct it, or declare another content type, such as text/plain.",
        )


def json_problem(data: bytes) -> str | None:
    """What keeps the data from being one JSON text in UTF-8, or None if nothing does."""
    try:
        json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return str(error)
    return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def payload(data: object, content_type: str | None) -> tuple[bytes | None, str | None]:
    """What a program hands over as data, as bytes and their content type.

    Bytes are sent as they are. Text goes as it is if a content type other than JSON is named.
    Everything else, and text otherwise, is written as JSON.
    """
    if data is None:
        return None, content_type
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data), content_type or "application/octet-stream"
    if isinstance(data, str) and content_type and not _is_json(content_type):
        return data.encode(), content_type
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        return text.encode(), content_type or "application/json"
    except (TypeError, ValueError) as error:
        raise BadEvent(
            f"the data cannot be written as JSON: {error}",
            remedy="Give JSON values, or bytes with a content_type.",
        ) from None


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower().endswith(("/json", "+json"))


def make_event(
    topic: str,
    data: object,
    *,
    source: str,
    type: str = DEFAULT_TYPE,
    id: str | None = None,
    subject: str | None = None,
    time: str | None = None,
    content_type: str | None = None,
    extensions: dict[str, Any] | None = None,
    signer: EventSigner | None = None,
) -> bytes:
    """An event as a program publishes it; what is not given gets an id and the time of now."""
    body, content_type = payload(data, content_type)
    named: dict[str, Any] = {
        "id": id or new_id(),
        "source": source,
        "type": type,
        "topic": topic or None,
        "subject": subject,
        "time": time or now_text(),
        "datacontenttype": content_type,
        **(extensions or {}),
    }
    event = event_json(named, body)
    return event if signer is None else signer.sign(event)
