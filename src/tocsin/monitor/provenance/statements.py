"""Statements of PROV-DM, and the table of how each is spelled in PROV-JSON, PROV-N and PROV-O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.monitor.provenance.names import Name

Value = Name | str | bool | int | float
Attributes = tuple[tuple[Name, Value], ...]

TYPE: Final = Name("prov", "type")
LABEL: Final = Name("prov", "label")
VALUE: Final = Name("prov", "value")


@dataclass(frozen=True, slots=True)
class Role:
    """One place of a statement: its member in PROV-JSON, its property in PROV-O."""

    member: str
    property: str
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of statement; its roles are in the order of PROV-N.

    An element names itself, and the roles are its own. A relation leads from its first role to its
    second by a property of PROV-O, which is its keyword if there is no other; what else there is to
    say is said of an `influence`.
    """

    keyword: str
    roles: tuple[Role, ...] = ()
    is_element: bool = False
    other_property: str = ""
    influence: str = ""
    is_always_qualified: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: of an element by its name, or of a relation, which has none.

    What is not known is None. Times are xsd:dateTime texts.
    """

    kind: Kind
    name: Name | None
    places: tuple[Name | str | None, ...] = ()
    attributes: Attributes = ()


def _times(*members: tuple[str, str]) -> tuple[Role, ...]:
    return tuple(Role(member, prov_o, is_time=True) for member, prov_o in members)


_AT: Final = Role("time", "atTime", is_time=True)

ENTITY: Final = Kind("entity", is_element=True, influence="Entity")
AGENT: Final = Kind("agent", is_element=True, influence="Agent")
ACTIVITY: Final = Kind(
    "activity",
    _times(("startTime", "startedAtTime"), ("endTime", "endedAtTime")),
    is_element=True,
    influence="Activity",
)
USED: Final = Kind("used", (Role("activity", ""), Role("entity", "entity"), _AT), influence="Usage")
GENERATED: Final = Kind(
    "wasGeneratedBy",
    (Role("entity", ""), Role("activity", "activity"), _AT),
    influence="Generation",
)
INFORMED: Final = Kind(
    "wasInformedBy",
    (Role("informed", ""), Role("informant", "activity")),
    influence="Communication",
)
STARTED: Final = Kind(
    "wasStartedBy",
    (Role("activity", ""), Role("trigger", "entity"), Role("starter", "hadActivity"), _AT),
    influence="Start",
)
ASSOCIATED: Final = Kind(
    "wasAssociatedWith",
    (Role("activity", ""), Role("agent", "agent"), Role("plan", "hadPlan")),
    influence="Association",
    # Some of an activity's agents have a plan and some have none. A reader that many use (prov 3.2)
    # gives the plan to the wrong one unless all of them are spelled the long way.
    is_always_qualified=True,
)
DELEGATED: Final = Kind(
    "actedOnBehalfOf",
    (Role("delegate", ""), Role("responsible", "agent"), Role("activity", "hadActivity")),
    influence="Delegation",
)
_DERIVATION: Final = (
    Role("generatedEntity", ""),
    Role("usedEntity", "entity"),
    Role("activity", "hadActivity"),
    Role("generation", "hadGeneration"),
    Role("usage", "hadUsage"),
)
DERIVED: Final = Kind("wasDerivedFrom", _DERIVATION, influence="Derivation")
# In PROV-N and PROV-JSON a derivation of that type; PROV-O has words of its own for it.
REVISED: Final = Kind(
    "wasDerivedFrom", _DERIVATION, other_property="wasRevisionOf", influence="Revision"
)
MEMBER: Final = Kind("hadMember", (Role("collection", ""), Role("entity", "entity")))


def relation(kind: Kind, *places: Name | str | None, attributes: Attributes = ()) -> Statement:
    """A relation between these; the places at the end that are not given are not known."""
    missing = len(kind.roles) - len(places)
    return Statement(kind, None, places + (None,) * missing, attributes)
