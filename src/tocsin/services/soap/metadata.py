"""What clients ask a service before anything else: what it is, and which messages it takes."""

from __future__ import annotations

from typing import Final

import tocsin
from tocsin.access.decision import Action
from tocsin.broker.port import BrokerPort
from tocsin.services.soap.call import Handlers, Reply, Request
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import MEX04, MEX11, WSMAN, WSMID
from tocsin.wire.wsdl.exchange import GET_METADATA, metadata, read_get_metadata, response_action

VENDOR: Final = "Tocsin"
_IDENTIFIED: Final = f"{WSMID.removesuffix('.xsd')}/IdentifyResponse"


class MetadataService:
    """Identify of WS-Management, and GetMetadata of WS-MetadataExchange in both versions."""

    def __init__(self, port: BrokerPort) -> None:
        self._port = port
        self.handlers: Handlers = {
            (WSMID, "Identify"): self.identify,
            (MEX04, GET_METADATA): self.get_metadata,
            (MEX11, GET_METADATA): self.get_metadata,
        }

    async def identify(self, request: Request) -> Reply:
        """Open to everybody: clients ask it before they sign in (WS-Management 1.1, section 11)."""
        facts = (
            (b"ProtocolVersion", WSMAN),
            (b"ProductVendor", VENDOR),
            (b"ProductVersion", tocsin.__version__),
        )
        inside = b"".join(
            b"<wsmid:%b>%b</wsmid:%b>" % (name, escaped(text), name) for name, text in facts
        )
        body = b'<wsmid:IdentifyResponse xmlns:wsmid="%b">%b</wsmid:IdentifyResponse>' % (
            WSMID.encode(),
            inside,
        )
        return Reply(body, _IDENTIFIED)

    async def get_metadata(self, request: Request) -> Reply:
        self._port.check(request.session, Action.READ, "soap")
        namespace = request.name[0]
        asked = read_get_metadata(request.envelope)
        return Reply(metadata(asked, namespace, request.call.base), response_action(namespace))
