"""Which services answer at the SOAP door of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.drivers.soap.desk import Desk

if TYPE_CHECKING:
    from tocsin.drivers.node import Node


def broker_desk(node: Node) -> Desk:
    """Everything that a broker does by SOAP."""
    return Desk(node, [])
