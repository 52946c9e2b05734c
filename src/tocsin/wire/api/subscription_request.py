"""What a client asks of a subscription or a box: the JSON of POST and PATCH, read and checked."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.filter import Filter
from tocsin.event.instant import iso_duration_ns, rfc3339_ns
from tocsin.event.subscription import BLACKBOARD, Change, Config, Owner, State
from tocsin.event.wildcards import without_foreign_wildcards
from tocsin.wire.api import members
from tocsin.wire.api.sink_credential import Seal, read_credential
from tocsin.wire.cloudevents.webhook import SIGNING, parse_secret

PROTOCOLS = ("HTTP", "http", "GMA", "gma")
CHANGEABLE_STATES = ("active", "paused")
MODES = ("binary", "structured", BLACKBOARD)

BATCH_MAX = 1_000  # events in one POST; more saves nothing and is refused by many sinks
GMA_BATCH = 100  # events under way to a gma sink: still one a message, and in order
ATTEMPTS_MAX = 100
TIMEOUT_S_MAX = 300.0
BACKLOG_MAX = 10_000_000
AGE_S_MAX = 366 * 86_400.0

_SUBSCRIPTION = ("sink", "protocol", "filters", "config", "expires")
_BOX = ("filters", "config", "expires")
OWNER_CHARS_MAX = 200
NOBODY = ("anonymous", "broker")  # that signs in
_CHANGE = ("state", "expires", "filters", "config", "sink", "protocol", "owner")
_PUSH_CONFIG = (
    "mode",
    "batch",
    "secret",
    "credential",
    "attempts",
    "timeout_s",
    "backlog",
    "backlog_age_s",
    "from",
)
_BOX_CONFIG = ("backlog", "backlog_age_s", "from")

_encode = msgspec.json.Encoder().encode


class AfterSeq(msgspec.Struct, frozen=True):
    """Begin after this event."""

    seq: int


class AfterTime(msgspec.Struct, frozen=True):
    """Begin with the events received since."""

    moment_ns: int


Start = AfterSeq | AfterTime | None
"""Where a subscription begins in the log; None is with the next event."""


class NewSubscription(msgspec.Struct, frozen=True):
    """A subscription or a box as it was asked for. A box has no sink."""

    sink: str | None
    filters: msgspec.Raw
    filter: Filter
    config: Config
    start: Start
    expires_ns: int | None


def read_subscription(body: bytes, now_ns: int, seal: Seal) -> NewSubscription:
    """POST /subscriptions. `seal` is for what is secret in it."""
    asked = members.read_object(body)
    members.only_known(asked, _SUBSCRIPTION)
    if "sink" not in asked:
        members.refuse("sink", "is missing", "Give the http or https URL that events are sent to.")
    sink = members.text("sink", asked["sink"])
    if "protocol" in asked:
        _check_protocol(members.choice("protocol", asked["protocol"], PROTOCOLS), sink)
    return _new(asked, sink, _PUSH_CONFIG, now_ns, seal)


def _protocol_of(sink: str | None) -> str:
    return "GMA" if (sink or "").lower().startswith(("gma:", "gmas:")) else "HTTP"


def _defaults(sink: str | None) -> Config:
    return Config(batch=GMA_BATCH) if _protocol_of(sink) == "GMA" else Config()


def _check_protocol(protocol: str, sink: str) -> None:
    used = _protocol_of(sink)
    if protocol.upper() != used:
        members.refuse(
            "protocol", f"is {protocol}, and the sink uses {used}", "Leave protocol out."
        )


def read_box(body: bytes, now_ns: int) -> NewSubscription:
    """POST /boxes."""
    asked = members.read_object(body)
    members.only_known(asked, _BOX)
    return _new(asked, None, _BOX_CONFIG, now_ns, _nothing_secret)


def _nothing_secret(text: str, about: str) -> str:
    raise AssertionError("a box has no sink, and so no secrets")


def _new(
    asked: Mapping[str, object],
    sink: str | None,
    config_keys: tuple[str, ...],
    now_ns: int,
    seal: Seal,
) -> NewSubscription:
    filters, filter = _filters(asked.get("filters"))
    table = _config_table(asked.get("config"), config_keys)
    return NewSubscription(
        sink=sink,
        filters=filters,
        filter=filter,
        config=_config(table, _defaults(sink), _defaults(sink), sink or "", seal),
        start=_start(table.get("from")),
        expires_ns=_expires_ns(asked.get("expires"), now_ns),
    )


def read_change(
    body: bytes,
    now_ns: int,
    was: Config,
    *,
    of_box: bool,
    sink_was: str | None = None,
    seal: Seal = _nothing_secret,
) -> Change:
    """PATCH /subscriptions/ID. In `config`, null sets back to the default; the rest stays, but for
    a batch that meant something else at the former sink, and a credential that was for it."""
    asked = members.read_object(body)
    members.only_known(asked, _CHANGE)
    if not asked:
        members.refuse("the change", "names nothing", f"It may have: {', '.join(_CHANGE)}.")
    if of_box and "sink" in asked:
        members.refuse("sink", "is for subscriptions that push", "A box is read by its consumer.")
    filters = filter = config = state = sink = None
    if "filters" in asked:
        filters, filter = _filters(asked["filters"])
    if "sink" in asked:
        sink = members.text("sink", asked["sink"])
    table: Mapping[str, object] = {}
    if "config" in asked:
        keys = tuple(key for key in (_BOX_CONFIG if of_box else _PUSH_CONFIG) if key != "from")
        table = _config_table(asked["config"], keys)
    if sink is not None and _protocol_of(sink) != _protocol_of(sink_was):
        table = {"batch": None, **table}
    if sink is not None and sink != sink_was and was.credential is not None:
        table = {"credential": None, **table}
    if table or "config" in asked:
        where = sink or sink_was or ""
        config = _config(table, was, _defaults(where), where, seal)
    if "state" in asked:
        state = State(members.choice("state", asked["state"], CHANGEABLE_STATES))
    expires = _expires_ns(asked["expires"], now_ns) if "expires" in asked else UNSET
    return Change(
        state=state,
        expires_ns=expires,
        filters=filters,
        filter=filter,
        sink=sink,
        config=config,
        owner=_owner(asked["owner"]) if "owner" in asked else None,
    )


def _owner(value: object) -> Owner:
    """Somebody by name: from then on it has what the rules give them."""
    name = members.text("owner", value)
    if len(name) > OWNER_CHARS_MAX or not name.isprintable() or name != name.strip():
        members.refuse("owner", "is not the name of a principal", "Give one, as in the rules.")
    if name in NOBODY:
        members.refuse("owner", f"is {name!r}, which nobody signs in as", "Name a principal.")
    return Owner(name)


def _filters(value: object) -> tuple[msgspec.Raw, Filter]:
    """The filters as they were written, to show them again, and ready to use."""
    if value is None:
        value = []
    if not isinstance(value, list):
        members.refuse(
            "filters", f"is {members.quoted(value)}", 'Give a list, [{"topic": "a/**"}].'
        )
    return msgspec.Raw(_encode(value)), without_foreign_wildcards(read_filters(value))


def _config_table(value: object, known: tuple[str, ...]) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        members.refuse("config", f"is {members.quoted(value)}", 'Give an object, {"batch": 1}.')
    members.only_known(value, known, "config.")
    return value


def _config(
    table: Mapping[str, object], was: Config, defaults: Config, sink: str, seal: Seal
) -> Config:
    settings: dict[str, object] = {}
    for key, value in table.items():
        name = f"config.{key}"
        if key == "from":
            continue
        if value is None:
            settings[key] = getattr(defaults, key)
        elif key == "mode":
            settings[key] = members.choice(name, value, MODES)
        elif key == "batch":
            settings[key] = members.whole(name, value, least=1, most=BATCH_MAX)
        elif key == "secret":
            settings[key] = _sealed_secret(value, seal)
        elif key == "credential":
            settings[key] = read_credential(value, sink, seal)
        elif key == "attempts":
            settings[key] = members.whole(name, value, least=1, most=ATTEMPTS_MAX)
        elif key == "timeout_s":
            settings[key] = members.seconds(name, value, least=0.1, most=TIMEOUT_S_MAX)
        elif key == "backlog":
            settings[key] = members.whole(name, value, least=1, most=BACKLOG_MAX)
        elif key == "backlog_age_s":
            settings[key] = members.seconds(name, value, least=1, most=AGE_S_MAX)
    return msgspec.structs.replace(was, **settings)


def _sealed_secret(value: object, seal: Seal) -> str:
    """It stays when the sink changes, so that it is sealed for no sink of its own."""
    secret = value if isinstance(value, str) else ""
    parse_secret(secret)
    return seal(secret, SIGNING)


def _start(value: object) -> Start:
    if value is None:
        return None
    if type(value) is int and 0 <= value < 2**63:
        return AfterSeq(value)
    moment = rfc3339_ns(value) if isinstance(value, str) else None
    if moment is None:
        members.refuse(
            "config.from",
            f"is {members.quoted(value)}",
            "Give a sequence number, or a time as in 2026-11-15T12:00:00Z.",
        )
    return AfterTime(moment)


def _expires_ns(value: object, now_ns: int) -> int | None:
    """A moment, or a time from now; null is never."""
    if value is None:
        return None
    written = members.text("expires", value, most=64)
    lease_ns = iso_duration_ns(written)
    expires = rfc3339_ns(written) if lease_ns is None else now_ns + lease_ns
    if expires is None or not now_ns < expires < 2**63:
        members.refuse(
            "expires",
            f"is {members.quoted(value)}",
            "Give a time to come, as in 2030-01-01T00:00:00Z, or a duration, as in PT10M.",
        )
    return expires
