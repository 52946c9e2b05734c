"""What goes wrong with pull points, as WS-BaseNotification 1.3 names it."""

from __future__ import annotations

from typing import Final

from tocsin.errors import NoSuchBox, NoSuchSubscription, TocsinError
from tocsin.wire.pullpoint.operations import CREATE, DESTROY, GET
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.wsn.faults import Faults

_FAULTS: Final = {
    CREATE: "UnableToCreatePullPointFault",
    GET: "UnableToGetMessagesFault",
    DESTROY: "UnableToDestroyPullPointFault",
}


def pull_point_fault(error: TocsinError, operation: str, now_ns: int) -> SoapFault:
    """The error, met while a pull point was asked for the operation."""
    is_unknown = isinstance(error, NoSuchBox | NoSuchSubscription)
    name = "ResourceUnknownFault" if is_unknown else _FAULTS[operation]
    return Faults("wsn13", now_ns).fault(name, f"{error.problem}. {error.remedy}", error=error)
