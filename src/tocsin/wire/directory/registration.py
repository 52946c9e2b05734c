"""A registration from JSON: each member checked, and named when it is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from tocsin.errors import BadRegistration, BadSubscription
from tocsin.event.event import Value
from tocsin.event.instant import NS_PER_S
from tocsin.event.xml_name import is_xml_name
from tocsin.wire.api import members
from tocsin.wire.api.attributes import read_attributes
from tocsin.wire.directory.entry import KINDS, Kind, Offered, Registration
from tocsin.wire.gma.names import EventName, event_name, read_name

NAME_CHARS_MAX: Final = 256
HOST_CHARS_MAX: Final = 255
ADDRESS_CHARS_MAX: Final = 1_024
EVENTS_MAX: Final = 1_000
EVENT_NAME_CHARS_MAX: Final = 1_024  # with its namespace
PARAMETERS_MAX: Final = 64
ATTRIBUTES_MAX: Final = 100
LEASE_S_MIN: Final = 10
LEASE_S_MAX: Final = 7 * 86_400
LEASE_S_DEFAULT: Final = 600

RESERVED: Final = ("id", "kind", "name", "host", "address")  # what a filter asks by these names
_MEMBERS: Final = ("kind", "name", "address", "host", "events", "attributes", "lease")
_NEEDED: Final = {
    "kind": 'Say what it is, as in {"kind": "producer", ...}.',
    "name": 'Give its name on its host, as in {"name": "uptime", ...}.',
}
_OURS: Final = ("id", "registered", "expires")  # an entry may be sent back as it was shown
_EVENT: Final = ("name", "namespace", "parameters")

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9._:%-]+")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[!-~]+")
_HOST_PORT = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\]):[0-9]{1,5}")
_AUTHORITY = re.compile(r"[^:]+://(?:[^@/?#]*@)?(\[[^\]]+\]|[^:/?#]+)")


def read_registration(asked: Mapping[str, object]) -> Registration:
    """The registration in a JSON object; BadRegistration says what is wrong with it."""
    try:
        return _read(asked)
    except BadSubscription as bad:  # what the checks of members raise, whoever asks
        raise BadRegistration(bad.problem, remedy=bad.remedy) from None


def read_id(asked: Mapping[str, object]) -> str | None:
    """The id that the entry shall have, if one is asked for."""
    return None if asked.get("id") is None else check_id(asked["id"])


def check_id(value: object) -> str:
    """An id as an address and a distinguished name can have it."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise BadRegistration(
            f"id is {members.quoted(value)}",
            remedy="Use up to 64 small letters, digits, dots, dashes and underscores.",
        )
    return value


def _read(asked: Mapping[str, object]) -> Registration:
    members.only_known((name for name in asked if name not in _OURS), _MEMBERS)
    for name, remedy in _NEEDED.items():
        if name not in asked:
            members.refuse(name, "is missing", remedy)
    address = _address(asked.get("address"))
    return Registration(
        kind=cast(Kind, members.choice("kind", asked["kind"], KINDS)),
        name=members.printable("name", asked["name"], most=NAME_CHARS_MAX),
        host=_host(asked.get("host"), address),
        address=address,
        events=_events(asked.get("events")),
        attributes=_attributes(asked.get("attributes")),
        lease_ns=lease_ns(asked.get("lease")),
    )


def lease_ns(value: object) -> int:
    """How long a registration holds: an ISO 8601 duration, or seconds."""
    if value is None:
        return LEASE_S_DEFAULT * NS_PER_S
    return members.duration_ns("lease", value, least_s=LEASE_S_MIN, most_s=LEASE_S_MAX)


def _address(value: object) -> str | None:
    if value is None:
        return None
    text = members.text("address", value, most=ADDRESS_CHARS_MAX)
    if _HOST_PORT.fullmatch(text):
        return f"gma://{text}"
    if not _ADDRESS.fullmatch(text):
        members.refuse(
            "address", f"is {members.quoted(text)}", "Give host:port, or a URL as gma://node7:8401."
        )
    return text


def _host(value: object, address: str | None) -> str:
    if value is None and address is not None:
        found = _AUTHORITY.match(address)
        value = found[1].strip("[]") if found else None
    if value is None:
        members.refuse("host", "is missing", "Say where it runs: the name of a machine.")
    text = members.text("host", value, most=HOST_CHARS_MAX)
    if not _HOST.fullmatch(text):
        members.refuse("host", f"is {members.quoted(text)}", "Give the name or IP of a machine.")
    return text


def _events(value: object) -> tuple[Offered, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        members.refuse("events", f"is {members.quoted(value)}", 'Give a list: ["UptimeCPULoad"].')
    if len(value) > EVENTS_MAX:
        members.refuse("events", f"has {len(value)} members", f"Offer at most {EVENTS_MAX}.")
    found: dict[EventName, Offered] = {}
    for number, each in enumerate(value):
        offered = _offered(f"events[{number}]", each)
        if offered.name in found:
            members.refuse(f"events[{number}]", "is there already", "Name each event once.")
        found[offered.name] = offered
    return tuple(found.values())


def _offered(where: str, value: object) -> Offered:
    if isinstance(value, str):
        return Offered(check_event_name(value, where=where))
    if not isinstance(value, dict):
        members.refuse(where, f"is {members.quoted(value)}", "Give a name, or an object with one.")
    members.only_known(value, _EVENT, where=f"{where}.")
    name = check_event_name(value.get("name"), value.get("namespace"), where=f"{where}.name")
    return Offered(name, _parameters(f"{where}.parameters", value.get("parameters")))


def check_event_name(value: object, namespace: object = None, *, where: str) -> EventName:
    """An event's name as people write it, or a local name beside its namespace."""
    text = members.text(where, value, most=EVENT_NAME_CHARS_MAX)
    if namespace is None:
        name = read_name(text)
    else:
        name = event_name(members.text(f"{where}space", namespace, most=EVENT_NAME_CHARS_MAX), text)
    in_one_word = name.namespace.isprintable() and " " not in name.namespace
    if not name.namespace or not in_one_word or not is_xml_name(name.local):
        members.refuse(
            where,
            f"is {members.quoted(value)}, which is not an event name",
            "Write UptimeCPULoad, {urn:lab}Temperature, or a name beside its namespace.",
        )
    return name


def _parameters(where: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > PARAMETERS_MAX:
        members.refuse(
            where, f"is {members.quoted(value)}", f"Give a list of up to {PARAMETERS_MAX} names."
        )
    names = [
        members.printable(f"{where}[{n}]", each, most=NAME_CHARS_MAX)
        for n, each in enumerate(value)
    ]
    return tuple(dict.fromkeys(names))


def _attributes(value: object) -> dict[str, Value]:
    found = read_attributes(
        value,
        count_max=ATTRIBUTES_MAX,
        name_chars_max=NAME_CHARS_MAX,
        example='{"site": "ohio"}',
    )
    for name in RESERVED:
        if name in found:
            members.refuse(
                f"attributes.{name}", "is a member of every entry", "Choose another name."
            )
    return found
