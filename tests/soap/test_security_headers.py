"""WS-Security: taken, counted and told, and nobody is led to think that it was verified."""

from __future__ import annotations

import re
import urllib.request

from served import Served, served
from soap.notification_peers import post
from tocsin.wire.soap.envelope import http_headers, write_envelope
from tocsin.wire.soap.names import SOAP12, WSSE

WRONG = (
    f'<w:Security xmlns:w="{WSSE}" xmlns:s="{SOAP12}" s:mustUnderstand="true"><w:UsernameToken>'
    "<w:Username>admin</w:Username><w:Password>wrong</w:Password></w:UsernameToken></w:Security>"
)
SAID = "nothing in it was verified"


def counted(broker: Served) -> float:
    with urllib.request.urlopen(f"{broker.url}/metrics", timeout=20) as page:
        text = page.read().decode()
    found = re.search(r"^tocsin_soap_security_unverified_total (\S+)$", text, re.M)
    assert found is not None
    return float(found[1])


def test_a_security_header_is_taken_and_it_is_told_that_nothing_was_verified() -> None:
    with served() as broker:
        plain = write_envelope("1.2", body=b"<a/>")
        secured = write_envelope("1.2", header=WRONG.encode(), body=b"<a/>")
        about = write_envelope("1.2", body=f'<a xmlns:w="{WSSE}"><w:Security/></a>'.encode())

        for message in (plain, about):
            assert post(f"{broker.url}/soap", message, http_headers("1.2", ""))[0] == 202
        assert counted(broker) == 0
        assert SAID not in broker.said()

        for _ in range(3):
            assert post(f"{broker.url}/soap", secured, http_headers("1.2", ""))[0] == 202

        assert counted(broker) == 3
        assert broker.said().count(SAID) == 1, "clients send it with every request"
        assert "wrong" not in broker.said()
