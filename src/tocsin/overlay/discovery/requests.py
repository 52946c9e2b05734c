"""What clients hand in: registrations of resources, and requests for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tocsin.event.event import Value
from tocsin.event.facets import TEXT
from tocsin.overlay.region import Region
from tocsin.overlay.region_text import parse_region
from tocsin.overlay.time_of_day import NO_ZONES, Zones

KIND = "kind"  # the attribute by which the kind of a resource is asked for


class ModelType(StrEnum):
    """The kind of information that a resource has and a requester wants (paper 001, section 4)."""

    STATIC = "static"
    DYNAMIC = "dynamic"
    STATIC_CONTINUOUS = "static continuous"
    DYNAMIC_CONTINUOUS = "dynamic continuous"

    @property
    def is_continuous(self) -> bool:
        return self in (ModelType.STATIC_CONTINUOUS, ModelType.DYNAMIC_CONTINUOUS)

    @property
    def is_dynamic(self) -> bool:
        return self in (ModelType.DYNAMIC, ModelType.DYNAMIC_CONTINUOUS)


@dataclass(frozen=True, slots=True)
class Registration:
    """A resource and the ranges in which its attributes lie.

    A dynamic resource is found by its current values: an attribute that it advertises with `=` is
    always among them, any other once it was given. Without a lease it stays until withdrawn.
    """

    resource_id: str
    model: ModelType
    region: Region
    values: Mapping[str, Value] = field(default_factory=dict)
    kind: str = ""
    address: str = ""
    lease_ns: int | None = None

    def is_same_description(self, other: Registration) -> bool:
        """True if nothing is to be advertised anew."""
        return (
            (self.model, self.region, self.kind, self.address)
            == (other.model, other.region, other.kind, other.address)
        ) and (other.model is ModelType.DYNAMIC or self.values == other.values)


@dataclass(frozen=True, slots=True)
class Request:
    """Which resources are wanted; the id must be one of a kind in the whole overlay.

    `max_age_ns`: how old a shared answer may be; 0 is never shared, None is the cache expiry.
    `first`: so many are enough; 0 is all. A continuous request ends with its lease.
    """

    request_id: str
    model: ModelType
    region: Region
    max_age_ns: int | None = None
    first: int = 0
    timeout_ns: int | None = None
    lease_ns: int | None = None
    snapshot: bool = True


def parse_registration(
    resource_id: str,
    model: ModelType,
    advertisement: str,
    *,
    values: Mapping[str, Value] | None = None,
    kind: str = "",
    address: str = "",
    lease_ns: int | None = None,
    zones: Zones = NO_ZONES,
) -> Registration:
    """The registration, with its kind among the attributes that can be asked for."""
    region = parse_region(advertisement, zones)
    if kind and not any(name == KIND for name, _ in region.bounds):
        region = Region({**region.bounds, (KIND, TEXT): kind}, region.empty_because)
    return Registration(resource_id, model, region, values or {}, kind, address, lease_ns)


def parse_request(
    request_id: str,
    model: ModelType,
    request: str,
    *,
    max_age_ns: int | None = None,
    first: int = 0,
    timeout_ns: int | None = None,
    lease_ns: int | None = None,
    zones: Zones = NO_ZONES,
) -> Request:
    """The request that the text writes; BadFilter or BadDiscovery if it writes none."""
    region = parse_region(request, zones)
    return Request(request_id, model, region, max_age_ns, first, timeout_ns, lease_ns)
