"""ONVIF's event service, and the little of its device service that clients ask for first."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import ONVIF_DEVICE, ONVIF_EVENTS, ONVIF_SCHEMA
from tocsin.wire.wsdl.addressing import WS_ADDR
from tocsin.wire.wsdl.notation import Schema, element, message, record, restriction
from tocsin.wire.wsdl.notification import BASE, TOPICS
from tocsin.wire.wsdl.notification_ports import PRODUCER, SUBSCRIBE_FAULTS, subscription_manager
from tocsin.wire.wsdl.ports import Operation, Port, Service, asked_and_answered, request_response
from tocsin.wire.wsdl.resources import RESOURCES

_CATEGORIES = ("All", "Analytics", "Device", "Events", "Imaging", "Media", "PTZ")

TYPES: Final = Schema(
    "onvif",
    "tt",
    ONVIF_SCHEMA,
    (
        record("OnvifVersion", "Major xs:int\nMinor xs:int"),
        record("Time", "Hour xs:int\nMinute xs:int\nSecond xs:int"),
        record("Date", "Year xs:int\nMonth xs:int\nDay xs:int"),
        record("DateTime", "Time tt:Time\nDate tt:Date"),
        record("TimeZone", "TZ xs:token"),
        record("ExtensionType", "any*"),
        restriction(
            "SetDateTimeType", "xs:string", [("enumeration", n) for n in ("Manual", "NTP")]
        ),
        restriction("CapabilityCategory", "xs:string", [("enumeration", n) for n in _CATEGORIES]),
        record(
            "SystemDateTime",
            """DateTimeType tt:SetDateTimeType
               DaylightSavings xs:boolean
               TimeZone? tt:TimeZone
               UTCDateTime? tt:DateTime
               LocalDateTime? tt:DateTime
               Extension? tt:ExtensionType
               @*""",
        ),
        record(
            "EventCapabilities",
            """XAddr xs:anyURI
               WSSubscriptionPolicySupport xs:boolean
               WSPullPointSupport xs:boolean
               WSPausableSubscriptionManagerInterfaceSupport xs:boolean
               any*
               @*""",
        ),
        # Of a device's other capabilities a broker has none.
        record("DeviceCapabilities", "XAddr xs:anyURI\nExtension? tt:ExtensionType\n@*"),
        record(
            "Capabilities",
            """Device? tt:DeviceCapabilities
               Events? tt:EventCapabilities
               Extension? tt:ExtensionType
               @*""",
        ),
    ),
)

DEVICE: Final = Schema(
    "onvif-device",
    "tds",
    ONVIF_DEVICE,
    (
        record("ServiceCapabilities", "any"),
        record(
            "Service",
            """Namespace xs:anyURI
               XAddr xs:anyURI
               Capabilities? tds:ServiceCapabilities
               Version tt:OnvifVersion
               any*
               @*""",
        ),
        message("GetServices", "IncludeCapability xs:boolean"),
        message("GetServicesResponse", "Service+ tds:Service"),
        message("GetCapabilities", "Category* tt:CapabilityCategory"),
        message("GetCapabilitiesResponse", "Capabilities tt:Capabilities"),
        message("GetDeviceInformation"),
        message(
            "GetDeviceInformationResponse",
            """Manufacturer xs:string
               Model xs:string
               FirmwareVersion xs:string
               SerialNumber xs:string
               HardwareId xs:string""",
        ),
        message("GetSystemDateAndTime"),
        message("GetSystemDateAndTimeResponse", "SystemDateAndTime tt:SystemDateTime"),
    ),
    (TYPES,),
)

EVENTS: Final = Schema(
    "onvif-events",
    "tev",
    ONVIF_EVENTS,
    (
        record(
            "Capabilities",
            """any*
               @WSSubscriptionPolicySupport xs:boolean
               @WSPullPointSupport xs:boolean
               @WSPausableSubscriptionManagerInterfaceSupport xs:boolean
               @MaxNotificationProducers xs:int
               @MaxPullPoints xs:int
               @PersistentNotificationStorage xs:boolean
               @*""",
        ),
        element("Capabilities", "tev:Capabilities"),
        message("GetServiceCapabilities"),
        message("GetServiceCapabilitiesResponse", "Capabilities tev:Capabilities"),
        message(
            "CreatePullPointSubscription",
            """Filter? b:FilterType
               InitialTerminationTime? b:AbsoluteOrRelativeTimeType nil
               SubscriptionPolicy? b:SubscriptionPolicyType
               other*""",
        ),
        message(
            "CreatePullPointSubscriptionResponse",
            """SubscriptionReference wsa:EndpointReferenceType
               =b:CurrentTime
               =b:TerminationTime
               other*""",
        ),
        message("PullMessages", "Timeout xs:duration\nMessageLimit xs:int\nother*"),
        message(
            "PullMessagesResponse",
            """CurrentTime xs:dateTime
               TerminationTime xs:dateTime
               =b:NotificationMessage*""",
        ),
        message(
            "PullMessagesFaultResponse",
            "MaxTimeout xs:duration\nMaxMessageLimit xs:int\nother*",
        ),
        message("SetSynchronizationPoint"),
        message("SetSynchronizationPointResponse"),
        message("GetEventProperties"),
        message(
            "GetEventPropertiesResponse",
            """TopicNamespaceLocation+ xs:anyURI
               =b:FixedTopicSet
               =t:TopicSet
               =b:TopicExpressionDialect+
               MessageContentFilterDialect+ xs:anyURI
               ProducerPropertiesFilterDialect* xs:anyURI
               MessageContentSchemaLocation+ xs:anyURI
               other*""",
        ),
    ),
    (WS_ADDR, BASE, TOPICS),
)

_DEVICE_OPERATIONS = (
    "GetServices",
    "GetCapabilities",
    "GetDeviceInformation",
    "GetSystemDateAndTime",
)


def _events(port: str, name: str, faults: tuple[str, ...] = ()) -> Operation:
    return request_response("tev", f"{ONVIF_EVENTS}/{port}", name, faults)


ONVIF: Final = Service(
    "onvif",
    (DEVICE, EVENTS, BASE, RESOURCES, TOPICS),
    (
        Port(
            "Device",
            tuple(asked_and_answered("tds", ONVIF_DEVICE, name) for name in _DEVICE_OPERATIONS),
        ),
        Port(
            "EventPortType",
            (
                _events("EventPortType", "GetServiceCapabilities"),
                _events("EventPortType", "CreatePullPointSubscription", SUBSCRIBE_FAULTS),
                _events("EventPortType", "GetEventProperties"),
            ),
        ),
        Port(
            "PullPointSubscription",
            (
                _events(
                    "PullPointSubscription", "PullMessages", ("tev:PullMessagesFaultResponse",)
                ),
                _events("PullPointSubscription", "SetSynchronizationPoint"),
            ),
        ),
        Port("SubscriptionManager", subscription_manager("SubscriptionManager")),
        PRODUCER,
    ),
)
