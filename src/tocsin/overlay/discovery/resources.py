"""Resources registered at this broker, and their latest values: the paper's PubCache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from tocsin.errors import BadDiscovery, DiscoveryFull, NoSuchResource, TocsinError
from tocsin.event.event import Value
from tocsin.overlay.discovery.advertisements import Entry
from tocsin.overlay.discovery.context import CLIENT, Context
from tocsin.overlay.discovery.conversion import (
    described_values,
    fixed_values,
    rows_of,
    to_row,
    unsendable,
    value_outside,
    windows,
)
from tocsin.overlay.discovery.requests import ModelType, Registration
from tocsin.overlay.region import Region, day_rows, overlaps
from tocsin.wire.link.discovery_messages import (
    ID_CHARS_MAX,
    NAME_CHARS_MAX,
    ROWS_MAX,
    TEXT_CHARS_MAX,
    Advertise,
    Result,
)


@dataclass(slots=True)
class LocalResource:
    """A registration, its advertisement, and the values that it has now."""

    registration: Registration
    entry: Entry
    values: Mapping[str, Value] = field(default_factory=dict)
    expires_ns: int | None = None
    _latest: Result | None = None
    _rows: tuple[Region, ...] = ()

    @property
    def id(self) -> str:
        return self.registration.resource_id

    def set_values(self, values: Mapping[str, Value]) -> None:
        """The PubCache: the latest values, and how requests are compared with them."""
        registration, message = self.registration, self.entry.message
        self.values = dict(values)
        self._latest, self._rows = None, ()
        if registration.model is ModelType.DYNAMIC and not values:
            return
        self._latest = Result(
            adv_id=message.adv_id,
            broker=message.broker,
            resource_id=registration.resource_id,
            attributes={**fixed_values(registration.region), **values},
            as_of_ns=0,
            windows=windows(registration.region),
            kind=registration.kind,
            address=registration.address,
        )
        self._rows = rows_of(self._latest)

    def result(self, now_ns: int) -> Result | None:
        """What it is like now; None for a dynamic resource that was given no values yet."""
        return None if self._latest is None else replace(self._latest, as_of_ns=now_ns)

    def is_for(self, request: Region) -> bool:
        return any(overlaps(request, row) for row in self._rows)


class LocalResources:
    """The resources of this broker's own clients."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._resources: dict[str, LocalResource] = {}
        self._registered = 0

    def __len__(self) -> int:
        return len(self._resources)

    def __iter__(self) -> Iterator[LocalResource]:
        return iter(self._resources.values())

    def get(self, resource_id: str) -> LocalResource | None:
        return self._resources.get(resource_id)

    def matching(
        self, request: Region, candidates: Iterable[str], now_ns: int, first: int = 0
    ) -> list[Result]:
        """What those of the candidates are like that the request is for; so many, or all."""
        found: list[Result] = []
        for resource_id in candidates:
            resource = self._resources.get(resource_id)
            if resource is None or not resource.is_for(request):
                continue
            result = resource.result(now_ns)
            if result is not None:
                found.append(result)
                if len(found) == first:
                    break
        return found

    def problem_of(self, registration: Registration) -> TocsinError | None:
        """Why the registration cannot be taken, if it cannot."""
        options = self._context.options
        name = f"the resource {registration.resource_id[:100]!r}"
        if not 0 < len(registration.resource_id) <= ID_CHARS_MAX:
            return BadDiscovery(
                "a resource's id is empty or too long",
                remedy=f"Give it 1 to {ID_CHARS_MAX} characters.",
            )
        if registration.model.is_continuous:
            return BadDiscovery(
                f"{name} has the model {registration.model}",
                remedy="A resource is static or dynamic; requests are continuous.",
            )
        if registration.region.is_empty:
            return BadDiscovery(
                f"{name} can never be found: {registration.region.empty_because}",
                remedy="Advertise ranges that its values can be in.",
            )
        if max(len(registration.region.bounds), len(registration.values)) > options.attributes_max:
            return BadDiscovery(
                f"{name} has more than {options.attributes_max} attributes",
                remedy="Register it as several resources.",
            )
        if len(registration.kind) > NAME_CHARS_MAX or len(registration.address) > TEXT_CHARS_MAX:
            return BadDiscovery(
                f"{name} has a kind or an address that is too long",
                remedy=f"A kind has at most {NAME_CHARS_MAX} characters.",
            )
        if len(day_rows(registration.region)) > ROWS_MAX:
            return BadDiscovery(
                f"{name} has more than two times of day among its attributes",
                remedy="Use one, such as available.",
            )
        if registration.resource_id not in self._resources and self._is_full():
            return DiscoveryFull(
                f"this broker has {options.resources_max} resources",
                remedy="Withdraw some, or register at another broker.",
            )
        return self.problem_of_values(registration, registration.values)

    def _is_full(self) -> bool:
        return len(self._resources) >= self._context.options.resources_max

    def problem_of_values(
        self, registration: Registration, values: Mapping[str, Value]
    ) -> TocsinError | None:
        """Why these cannot be the resource's values, if they cannot."""
        if len(values) > self._context.options.attributes_max:
            return BadDiscovery(
                f"there are more than {self._context.options.attributes_max} attributes",
                remedy="Leave out those that nobody asks for.",
            )
        if (name := unsendable(registration.region, values)) is not None:
            return BadDiscovery(
                f"the name or the value of {name!r} is too long",
                remedy=f"Texts have at most {TEXT_CHARS_MAX} characters, whole numbers 64 bits.",
            )
        name = value_outside(registration.region, values)
        if name is None:
            return None
        return BadDiscovery(
            f"{name} = {str(values[name])[:100]} is outside of what "
            f"{registration.resource_id!r} advertised",
            remedy="Register the resource again with a wider advertisement.",
        )

    def put(self, registration: Registration, now_ns: int) -> LocalResource:
        """Adds or replaces a resource, and gives it a new advertisement."""
        self._registered += 1
        resource_id, model = registration.resource_id, registration.model
        is_static = model is ModelType.STATIC
        rows = day_rows(registration.region)
        values = dict(registration.values)
        message = Advertise(
            adv_id=f"{self._context.broker_id}/{resource_id}/{now_ns}-{self._registered}"[-250:],
            broker=self._context.broker_id,
            resource_id=resource_id,
            model=model,
            rows=tuple(map(to_row, rows)),
            kind=registration.kind,
            address=registration.address,
            attributes={**described_values(registration.region), **values} if is_static else {},
            as_of_ns=now_ns,
        )
        resource = LocalResource(registration, Entry(message, rows, CLIENT))
        resource.set_values(values)
        self._resources[resource_id] = resource
        return resource

    def begin_lease(self, resource: LocalResource, lease_ns: int | None, now_ns: int) -> None:
        resource.expires_ns = None if lease_ns is None else now_ns + lease_ns
        if resource.expires_ns is None:
            self._context.timers.cancel("resource", resource.id)
        else:
            self._context.timers.set(resource.expires_ns, "resource", resource.id)

    def remove(self, resource_id: str) -> LocalResource | None:
        self._context.timers.cancel("resource", resource_id)
        return self._resources.pop(resource_id, None)


def no_such_resource(resource_id: str) -> NoSuchResource:
    return NoSuchResource(
        f"no resource {resource_id[:100]!r} is registered here",
        remedy="Its lease may have ended: register it again. Or it is registered at another "
        "broker: go on there.",
    )
