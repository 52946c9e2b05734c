"""The device service of ONVIF, as small as its clients let it be: what services there are and
where, what the device is called, and what time it is there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from tocsin.wire.onvif.events import capabilities as event_capabilities
from tocsin.wire.soap.element import element
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import ONVIF_DEVICE, ONVIF_EVENTS, ONVIF_SCHEMA

DEVICE_PATH: Final = "/onvif/device_service"
EVENTS_PATH: Final = "/onvif/event_service"
VERSION: Final = (2, 60)  # of the specifications that the answers follow
NAME: Final = "Tocsin"
# Of the access class PRE_AUTH, which ONVIF Core gives in the section of each command: clients ask
# these before they sign in. GetWsdlUrl and GetEndpointReference have it too, and are not here.
BEFORE_SIGN_IN: Final = frozenset(
    {
        "GetServices",
        "GetCapabilities",
        "GetServiceCapabilities",
        "GetSystemDateAndTime",
        "GetHostname",
    }
)

_CAPABILITIES: Final = b"<tds:Network/><tds:Security/><tds:System/>"


def response_action(operation: str) -> str:
    return f"{ONVIF_DEVICE}/{operation}Response"


def wants_capabilities(envelope: Envelope) -> bool:
    """Whether GetServices asks for the services' capabilities as well."""
    return any(
        split(child.tag)[1] == "IncludeCapability" and text_of(child) in ("true", "1")
        for child in elements(envelope.message)
    )


def services(base: str, *, pull_points_max: int, with_capabilities: bool) -> bytes:
    """Which services there are, and where."""
    device = element("tds", ONVIF_DEVICE, "Capabilities", _CAPABILITIES)
    found = b""
    for namespace, path, able in (
        (ONVIF_DEVICE, DEVICE_PATH, device),
        (ONVIF_EVENTS, EVENTS_PATH, event_capabilities(pull_points_max)),
    ):
        inside = b"<tds:Capabilities>%b</tds:Capabilities>" % able if with_capabilities else b""
        found += (
            b"<tds:Service><tds:Namespace>%b</tds:Namespace><tds:XAddr>%b</tds:XAddr>%b"
            b"<tds:Version><tt:Major>%d</tt:Major><tt:Minor>%d</tt:Minor></tds:Version>"
            b"</tds:Service>"
        ) % (namespace.encode(), escaped(base + path), inside, *VERSION)
    return _element("GetServices", found)


def capabilities(base: str) -> bytes:
    """The same in the older form."""
    able = b"".join(
        b"<tt:%b>true</tt:%b>" % (name, name)
        for name in (
            b"WSSubscriptionPolicySupport",
            b"WSPullPointSupport",
            b"WSPausableSubscriptionManagerInterfaceSupport",
        )
    )
    return _element(
        "GetCapabilities",
        (
            b"<tds:Capabilities><tt:Device><tt:XAddr>%b</tt:XAddr></tt:Device>"
            b"<tt:Events><tt:XAddr>%b</tt:XAddr>%b</tt:Events></tds:Capabilities>"
        )
        % (escaped(base + DEVICE_PATH), escaped(base + EVENTS_PATH), able),
    )


def service_capabilities() -> bytes:
    return _element(
        "GetServiceCapabilities", b"<tds:Capabilities>%b</tds:Capabilities>" % _CAPABILITIES
    )


def information(version: str) -> bytes:
    """What the device is."""
    return _element(
        "GetDeviceInformation",
        b"".join(
            b"<tds:%b>%b</tds:%b>" % (name, escaped(text), name)
            for name, text in (
                (b"Manufacturer", NAME),
                (b"Model", "event broker"),
                (b"FirmwareVersion", version),
                (b"SerialNumber", NAME.lower()),
                (b"HardwareId", NAME.lower()),
            )
        ),
    )


def date_and_time(now_ns: int) -> bytes:
    """The time there, in UTC; clients compare it with their own."""
    now = datetime.fromtimestamp(now_ns / 1e9, UTC)
    return _element(
        "GetSystemDateAndTime",
        (
            b"<tds:SystemDateAndTime><tt:DateTimeType>NTP</tt:DateTimeType>"
            b"<tt:DaylightSavings>false</tt:DaylightSavings>"
            b"<tt:TimeZone><tt:TZ>UTC0</tt:TZ></tt:TimeZone>"
            b"<tt:UTCDateTime><tt:Time><tt:Hour>%d</tt:Hour><tt:Minute>%d</tt:Minute>"
            b"<tt:Second>%d</tt:Second></tt:Time><tt:Date><tt:Year>%d</tt:Year>"
            b"<tt:Month>%d</tt:Month><tt:Day>%d</tt:Day></tt:Date></tt:UTCDateTime>"
            b"</tds:SystemDateAndTime>"
        )
        % (now.hour, now.minute, now.second, now.year, now.month, now.day),
    )


def hostname(name: str) -> bytes:
    return _element(
        "GetHostname",
        b"<tds:HostnameInformation><tt:FromDHCP>false</tt:FromDHCP><tt:Name>%b</tt:Name>"
        b"</tds:HostnameInformation>" % escaped(name),
    )


def scopes() -> bytes:
    return _element(
        "GetScopes",
        b"".join(
            b"<tds:Scopes><tt:ScopeDef>Fixed</tt:ScopeDef><tt:ScopeItem>%b</tt:ScopeItem>"
            b"</tds:Scopes>" % scope
            for scope in (
                b"onvif://www.onvif.org/type/NetworkVideoTransmitter",
                b"onvif://www.onvif.org/name/%b" % NAME.encode(),
            )
        ),
    )


def _element(operation: str, content: bytes) -> bytes:
    schema = b' xmlns:tt="%b"' % ONVIF_SCHEMA.encode()
    return element("tds", ONVIF_DEVICE, f"{operation}Response", content, schema)
