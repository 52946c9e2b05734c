"""WSDL documents and schemas of every Web service that the broker offers.

`GET /soap?wsdl` answers `wsdl(base)`, `GET /soap?wsdl=wsn13` one service,
`GET /soap?wsdl=wsn13.PullPoint` one of its ports, and `GET /soap?xsd=b-2` a schema they import.
"""

from __future__ import annotations

from tocsin.wire.wsdl.documents import schema, schemas, services, wsdl

__all__ = ["schema", "schemas", "services", "wsdl"]
