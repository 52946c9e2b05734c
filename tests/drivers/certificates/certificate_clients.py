"""Clients with certificates at listeners that are not HTTP, and waiting for what they did."""

from __future__ import annotations

import ssl

from served import Served
from tls_site import Refused, connect
from tocsin.wire.dime import Decoder, envelope_message

# Other listeners

NOTIFY = b"""<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>
<w:Notify xmlns:w="http://docs.oasis-open.org/wsn/b-2"><w:NotificationMessage>
<w:Topic Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete">lab/soap</w:Topic>
<w:Message><m xmlns="urn:m">%s</m></w:Message></w:NotificationMessage></w:Notify>
</s:Body></s:Envelope>"""


def soap_tcp(broker: Served, context: ssl.SSLContext, mark: bytes) -> bytes:
    """Publish, and what is answered within a moment; b"" for nothing."""
    decoder = Decoder()
    with connect(broker.soap_tcp, context) as opened:
        opened.sendall(envelope_message("1.1", NOTIFY % mark))
        opened.settimeout(0.5)
        try:
            while (message := decoder.next_message()) is None:
                data = opened.recv(1 << 16)
                if not data:
                    return b""
                decoder.receive(data)
        except TimeoutError:
            return b""
        except OSError as error:
            raise Refused(str(error)) from error
    return bytes(message.parts[0].data)
