"""Resources and requests for them from JSON: each member checked, and named when it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from tocsin.errors import BadDiscovery, BadSubscription
from tocsin.event.event import Value
from tocsin.event.filter_scan import FILTER_CHARS_MAX
from tocsin.event.instant import NS_PER_S
from tocsin.event.value import Quantity
from tocsin.wire.api import members
from tocsin.wire.api.attributes import TEXT_CHARS_MAX, read_attributes
from tocsin.wire.api.resource_views import Model, RequestModel

MODELS: Final = ("static", "dynamic")
REQUEST_MODELS: Final = ("static", "dynamic", "static continuous", "dynamic continuous")
NAME_CHARS_MAX: Final = 128
ATTRIBUTES_MAX: Final = 256
LEASE_S_MIN: Final = 10
LEASE_S_MAX: Final = 30 * 86_400
LEASE_S_DEFAULT: Final = 600
AGE_S_MAX: Final = 86_400.0
TIMEOUT_S_MAX: Final = 300.0
FIRST_MAX: Final = 100_000

_REGISTRATION: Final = ("id", "model", "advertisement", "attributes", "kind", "address", "lease")
_OURS: Final = ("registered", "updated", "expires")  # a resource may be sent back as it was shown
_REQUEST: Final = (
    "request",
    "model",
    "max_age",
    "first",
    "order_by",
    "timeout",
    "expires",
)
_OPTIONS: Final = ("similarity", "direct", "cache_expiry_s")

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_ORDER = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.-]*)(?:\s+(asc|desc))?\s*", re.IGNORECASE)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OrderBy:
    """By an attribute, or by `distance`: links to the resource's broker, then time to answer."""

    name: str
    is_descending: bool = False

    @property
    def is_distance(self) -> bool:
        return self.name == "distance"


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """A resource that somebody registers. Without an id the broker chooses one."""

    id: str | None
    model: Model
    advertisement: str
    values: dict[str, Value]
    kind: str = ""
    address: str = ""
    lease_ns: int | None = LEASE_S_DEFAULT * NS_PER_S


@dataclass(frozen=True, slots=True)
class DiscoveryRequest:
    """Which resources somebody wants."""

    request: str
    model: RequestModel = "static"
    max_age_ns: int | None = None
    first: int = 0
    order_by: OrderBy | None = None
    timeout_ns: int | None = None
    expires_ns: int | None = None

    @property
    def is_continuous(self) -> bool:
        return self.model.endswith("continuous")


@dataclass(frozen=True, slots=True)
class OptionsChange:
    """What shall be different from now on; None is as it was."""

    similarity: bool | None = None
    direct: bool | None = None
    cache_expiry_ns: int | None = None


def read_resource(asked: Mapping[str, object]) -> ResourceRequest:
    """The resource in a JSON object; BadDiscovery says what is wrong with it."""
    return _checked(_resource, asked)


def read_values(asked: Mapping[str, object]) -> dict[str, Value]:
    """The current values of a resource, by attribute."""
    return _checked(_values, asked)


def read_discovery(asked: Mapping[str, object]) -> DiscoveryRequest:
    """The request in a JSON object; BadDiscovery says what is wrong with it."""
    return _checked(_discovery, asked)


def read_options(asked: Mapping[str, object]) -> OptionsChange:
    """The options to be changed."""
    return _checked(_options, asked)


def read_order(text: str) -> OrderBy:
    """`free_memory desc`, `cores`, or `distance`."""
    found = _ORDER.fullmatch(text)
    if found is None or len(found[1]) > NAME_CHARS_MAX:
        members.refuse(
            "order_by",
            f"is {members.quoted(text)}",
            "Name one attribute, then asc or desc, as in: free_memory desc; or write distance.",
        )
    return OrderBy(found[1], (found[2] or "").lower() == "desc")


def _checked(read: Callable[[Mapping[str, object]], T], asked: Mapping[str, object]) -> T:
    try:
        return read(asked)
    except BadSubscription as bad:  # what the checks of members raise, whoever asks
        raise BadDiscovery(bad.problem, remedy=bad.remedy) from None


def _resource(asked: Mapping[str, object]) -> ResourceRequest:
    members.only_known((name for name in asked if name not in _OURS), _REGISTRATION)
    model = cast(Model, members.choice("model", asked.get("model", "static"), MODELS))
    values = _values(asked.get("attributes"))
    return ResourceRequest(
        id=None if asked.get("id") is None else check_resource_id(asked["id"]),
        model=model,
        advertisement=_advertisement(asked.get("advertisement"), model, values),
        values=values,
        kind=_line("kind", asked.get("kind"), most=NAME_CHARS_MAX),
        address=_line("address", asked.get("address"), most=TEXT_CHARS_MAX),
        lease_ns=_lease_ns(asked["lease"]) if "lease" in asked else LEASE_S_DEFAULT * NS_PER_S,
    )


def check_resource_id(value: object) -> str:
    """An id as an address can have it."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise BadDiscovery(
            f"id is {members.quoted(value)}",
            remedy="Use up to 128 letters, digits, dots, dashes, underscores, colons and @.",
        )
    return value


def _advertisement(value: object, model: Model, values: Mapping[str, Value]) -> str:
    """As it was written; a static resource without one advertises the values that it has."""
    if value is not None:
        return members.text("advertisement", value, most=FILTER_CHARS_MAX)
    if model == "dynamic" or not values:
        members.refuse(
            "advertisement",
            "is missing",
            "Say in which ranges its attributes lie, as in [system,=,Linux],[memory,<=,2].",
        )
    return ", ".join(f"[{name},=,{_written(each)}]" for name, each in values.items())


def _written(value: Value) -> str:
    if isinstance(value, Quantity):
        return f"{_written(value.value)} {value.unit or ''}".rstrip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def _lease_ns(value: object) -> int | None:
    """How long a registration holds after its last update; null is until it is withdrawn."""
    return _optional_ns("lease", value, LEASE_S_MIN, LEASE_S_MAX)


def _line(name: str, value: object, *, most: int) -> str:
    """A text in one line; none is the empty one."""
    return "" if value is None else members.printable(name, value, most=most)


def _values(asked: object) -> dict[str, Value]:
    return read_attributes(
        asked,
        count_max=ATTRIBUTES_MAX,
        name_chars_max=NAME_CHARS_MAX,
        example='{"system": "Linux"}',
    )


def _discovery(asked: Mapping[str, object]) -> DiscoveryRequest:
    members.only_known(asked, _REQUEST)
    model = cast(
        RequestModel, members.choice("model", asked.get("model", "static"), REQUEST_MODELS)
    )
    request = asked.get("request", "")
    if not isinstance(request, str):
        members.refuse(
            "request",
            f"is {members.quoted(request)}",
            "Give conditions, as in: system = Linux and disk > 120.",
        )
    if request:  # else everything
        members.text("request", request, most=FILTER_CHARS_MAX)
    one_time = ("max_age", "first", "order_by", "timeout")
    continuous = model.endswith("continuous")
    for name in one_time if continuous else ("expires",):
        if asked.get(name) is not None:
            kind = "a continuous" if continuous else "a one-time"
            members.refuse(name, f"has no meaning for {kind} request", "Leave it out.")
    order, first = asked.get("order_by"), asked.get("first")
    return DiscoveryRequest(
        request=request,
        model=model,
        max_age_ns=_optional_ns("max_age", asked.get("max_age"), 0, AGE_S_MAX),
        first=0 if first is None else members.whole("first", first, least=1, most=FIRST_MAX),
        order_by=None if order is None else read_order(members.text("order_by", order)),
        timeout_ns=_optional_ns("timeout", asked.get("timeout"), 0.1, TIMEOUT_S_MAX),
        expires_ns=_optional_ns("expires", asked.get("expires"), 1, LEASE_S_MAX),
    )


def _optional_ns(name: str, value: object, least_s: float, most_s: float) -> int | None:
    if value is None:
        return None
    return members.duration_ns(name, value, least_s=least_s, most_s=most_s)


def _options(asked: Mapping[str, object]) -> OptionsChange:
    members.only_known(asked, _OPTIONS)
    return OptionsChange(
        similarity=_switch("similarity", asked.get("similarity")),
        direct=_switch("direct", asked.get("direct")),
        cache_expiry_ns=_optional_ns("cache_expiry_s", asked.get("cache_expiry_s"), 0, AGE_S_MAX),
    )


def _switch(name: str, value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        members.refuse(name, f"is {members.quoted(value)}", "Give true or false.")
    return value
