"""Faults of WS-ResourceProperties, with the base-fault detail of their version."""

from __future__ import annotations

from typing import Final

from tocsin.errors import TocsinError
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import RESOURCE13
from tocsin.wire.wsn.faults import RESOURCE_FAULT_ACTION, Faults
from tocsin.wire.wsrp.operations import NAMESPACES, RequestedProperty

UNKNOWN: Final = "ResourceUnknownFault"
NO_PROPERTY: Final = "InvalidResourcePropertyQNameFault"
NO_DIALECT: Final = "UnknownQueryExpressionDialectFault"
NO_QUERY: Final = "InvalidQueryExpressionFault"
NOT_EVALUATED: Final = "QueryEvaluationErrorFault"


class PropertyFaults(Faults):
    """The faults of one version, with one timestamp."""

    __slots__ = ()

    def about(self, name: str, reason: str, *, error: TocsinError | None = None) -> SoapFault:
        """The condition `name`."""
        is_standard_unknown = name == UNKNOWN and self.spec == "wsn13"
        namespace = RESOURCE13 if is_standard_unknown else NAMESPACES[self.spec]
        return SoapFault(
            "Sender",
            reason,
            detail=self._detail(namespace, name, reason, b"", error),
            action=RESOURCE_FAULT_ACTION if self.spec == "wsn13" else None,
        )

    def no_property(self, asked: RequestedProperty) -> SoapFault:
        return self.about(NO_PROPERTY, f"there is no property {asked.text[:200]!r} here")

    def unknown(self, error: TocsinError) -> SoapFault:
        """What is asked about is not there."""
        return self.about(UNKNOWN, f"{error.problem}. {error.remedy}", error=error)
