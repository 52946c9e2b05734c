"""Messages of resource discovery between neighbouring brokers (paper 001, sections 4 and 5).

Times are nanoseconds since 1970 by the clock of the broker that is named; a receiver never waits
for longer than its own limits, whatever they say.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from tocsin.event.value import Quantity

ID_CHARS_MAX: Final = 256
ATTRIBUTES_MAX: Final = 256  # as many as a filter may have conditions
ROWS_MAX: Final = 16
RESULTS_MAX: Final = 1_000  # of one message
BROKERS_MAX: Final = 10_000
REASON_CHARS_MAX: Final = 500
NAME_CHARS_MAX: Final = 128
TEXT_CHARS_MAX: Final = 4_096
COUNT_MAX: Final = 2**62  # of numbers, ages and times

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARS_MAX)]
Name = Annotated[str, msgspec.Meta(max_length=NAME_CHARS_MAX)]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_CHARS_MAX)]
Reason = Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX)]
Count = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
TimeNs = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
AttributeValue = bool | int | float | Text | Quantity
Attributes = Annotated[dict[Name, AttributeValue], msgspec.Meta(max_length=ATTRIBUTES_MAX)]
Brokers = Annotated[tuple[Id, ...], msgspec.Meta(max_length=BROKERS_MAX)]


class Bound(msgspec.Struct, frozen=True, array_like=True):
    """One attribute's range, or the text that it equals. None is without an end."""

    name: Name
    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    low: float | None = None
    high: float | None = None
    text: Text | None = None


Row = Annotated[tuple[Bound, ...], msgspec.Meta(max_length=ATTRIBUTES_MAX)]
"""A conjunction, each attribute and kind once."""


class Advertise(msgspec.Struct, frozen=True, tag="advertise", kw_only=True):
    """A resource may be found at `broker`; flooded. A newer one of the same resource replaces it.

    `hops` is how many links it came over. A static resource's attributes are in it; those of a
    dynamic one are asked for.
    """

    adv_id: Id
    broker: Id
    resource_id: Id
    model: str
    rows: Annotated[tuple[Row, ...], msgspec.Meta(min_length=1, max_length=ROWS_MAX)]
    kind: Name = ""
    address: Text = ""
    attributes: Attributes = {}
    as_of_ns: TimeNs = 0
    hops: Count = 0


class Unadvertise(msgspec.Struct, frozen=True, tag="unadvertise"):
    """The resource was withdrawn, its lease ended, or the link to its broker is down; flooded."""

    adv_id: Id
    broker: Id
    resource_id: Id


class Cover(msgspec.Struct, frozen=True):
    """The request whose answer is to be shared, and the broker that decided so."""

    request_id: Id
    attached_by: Id


class Discover(msgspec.Struct, frozen=True, tag="discover", kw_only=True):
    """A request on its way along matching advertisements, or with a cover to the cover's host.

    Until `shared_until_ns` its answer may be given to requests that it covers, and never if that is
    not after `issued_ns`; every broker on the way keeps it until `expires_ns`. `first`: so many
    results are enough. `direct`: results go straight to the host, which takes connections at
    `reply_to`. `attempt` is the sender's, a larger one each time; answers repeat it.
    """

    request_id: Id
    host: Id
    region: Row
    model: str
    issued_ns: TimeNs
    shared_until_ns: TimeNs
    expires_ns: TimeNs
    max_age_ns: Count
    cover: Cover | None = None
    first: Count = 0
    snapshot: bool = True
    direct: bool = False
    attempt: Count = 0
    hops: Count = 0
    reply_to: Name = ""


class Window(msgspec.Struct, frozen=True, array_like=True):
    """When a resource is available: an attribute and seconds of the day in UTC."""

    name: Name
    low: float
    high: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One resource as it was at `as_of_ns`, by the clock of its broker.

    `age_ns` is how long it was kept in caches, so that clocks need not agree.
    """

    adv_id: Id
    broker: Id
    resource_id: Id
    attributes: Attributes
    as_of_ns: TimeNs
    age_ns: Count = 0
    windows: Annotated[tuple[Window, ...], msgspec.Meta(max_length=ROWS_MAX)] = ()
    kind: Name = ""
    address: Text = ""


class Results(msgspec.Struct, frozen=True, tag="results"):
    """A package of results for one request."""

    request_id: Id
    results: Annotated[tuple[Result, ...], msgspec.Meta(min_length=1, max_length=RESULTS_MAX)]


class Done(msgspec.Struct, frozen=True, tag="done", kw_only=True):
    """The end marker: nothing more comes from here. It sums up everything behind the sender.

    `messages` were sent for the request, this one not counted; `age_ns` is how old what the answer
    rests on may be; `results` were sent directly.
    """

    request_id: Id
    attempt: Count = 0
    brokers: Brokers = ()
    messages: Count = 0
    age_ns: Count = 0
    shared: bool = False
    incomplete: Reason = ""
    results: Count = 0


class CoverGone(msgspec.Struct, frozen=True, tag="cover_gone"):
    """The cover is not known here; whoever attached it must go on without."""

    request_id: Id
    cover: Cover
    attempt: Count = 0


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """The request has ended at its host; nothing is to be sent for it any more."""

    request_id: Id


class Update(msgspec.Struct, frozen=True, tag="update"):
    """New values of a dynamic resource, for continuous requests that its old or new ones match.

    Without `result` it has none any more; without `previous` it had none before.
    """

    adv_id: Id
    broker: Id
    resource_id: Id
    result: Result | None
    previous: Result | None


DiscoveryMessage = Advertise | Unadvertise | Discover | Results | Done | CoverGone | Cancel | Update
