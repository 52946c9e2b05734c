"""Whatever stands in a message of WS-Eventing, it is answered, or refused with a fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from served import Served, served
from soap.wse_source import Client
from tocsin.wire.soap.names import SOAP11, SOAP12, WSA2005, WSA200408, WSE04, WSE11, WSEN, WSMAN

NAMES = (
    *("e:Delivery", "e:NotifyTo", "e:EndTo", "e:Expires", "e:Filter", "e:Format", "e:Identifier"),
    *("a:Address", "a:ReferenceParameters", "a:ReferenceProperties", "b:Address", "x:y"),
    *("w:Filter", "w:Heartbeats", "w:MaxElements", "w:Bookmark"),
    *("n:EnumerationContext", "n:MaxElements", "n:MaxTime", "n:Items"),
)
TEXTS = (
    *("", " ", "PT1H", "-PT1H", "P1", "1e9", "\u0663", "259200000", "9" * 40, "false", "//*"),
    *("http://127.0.0.1:9/", "http://[::1", "http://10.0.0.1/", "urn:x", "x:y", "a|b", ">", "/a["),
    *(f"{WSA2005}/anonymous", f"{WSA2005}/none", "<!-- c -->", "<?p i?>", "<![CDATA[<a>]]>"),
)
DIALECTS = (
    *(
        "",
        "urn:d",
        "http://docs.oasis-open.org/wsn",
        "http://www.w3.org/TR/1999/REC-xpath-19991116",
    ),
    *("http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full", f"{WSE04}/DeliveryModes/Push"),
    "http://docs.oasis-open.org/ws-dd/ns/dpws/2009/01/Action",
)
ATTRIBUTES = st.builds(
    lambda name, value: f' {name}="{value}"',
    st.sampled_from(["Mode", "Dialect", "x:Dialect", "Name", "BestEffort"]),
    st.sampled_from(DIALECTS),
)


def element(name: str, attribute: str, inside: str) -> str:
    return f"<{name}{attribute}>{inside}</{name}>"


TREES = st.recursive(
    st.sampled_from(TEXTS),
    lambda inner: st.lists(
        st.builds(element, st.sampled_from(NAMES), st.just("") | ATTRIBUTES, inner), max_size=4
    ).map("".join),
    max_leaves=12,
)
OPERATIONS = st.sampled_from(
    [
        *("e:Subscribe", "e:Renew", "e:GetStatus", "e:Unsubscribe", "n:Pull", "n:Release"),
        *("e:Notify", "w:Events", "e:SubscriptionEnd", "e:Nothing"),
    ]
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@settings(max_examples=300)
@given(
    OPERATIONS,
    TREES,
    TREES,
    st.sampled_from([SOAP11, SOAP12]),
    st.sampled_from([WSE04, WSE11]),
    st.sampled_from([WSA2005, WSA200408]),
)
def test_nonsense_is_refused_and_the_broker_goes_on(
    broker: Served, name: str, head: str, inside: str, soap: str, wse: str, wsa: str
) -> None:
    # A pull that waits would only make this slow.
    if name == "n:Pull":
        inside = f"{inside}<n:MaxTime>PT0S</n:MaxTime>".replace("PT1H", "PT0S")
    message = (
        f'<s:Envelope xmlns:s="{soap}" xmlns:e="{wse}" xmlns:a="{wsa}" xmlns:b="{WSA200408}" '
        f'xmlns:w="{WSMAN}" xmlns:n="{WSEN}" xmlns:x="urn:x"><s:Header>{head}</s:Header>'
        f"<s:Body>{element(name, '', inside)}</s:Body></s:Envelope>"
    )

    answer = Client(broker).post(message.encode(), headers={"content-type": "text/xml"})

    assert b"the broker failed" not in answer.body, broker.said()[-2000:]
    if answer.status >= 300:
        assert answer.subcode
