"""The example messages of paper 002, sections 3 and 4, without what typesetting did to them: blanks
inside words, curly and missing quotes. The contradictions between them are left as they are."""

from __future__ import annotations

from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import Element, Parameters, PerformanceEvent
from tocsin.wire.gma.names import EventName

GRID_FORUM = "http://www.gridforum.org/Performance"
UPTIME = EventName("UptimeCPULoad")
TIME = "2000-11-09T21:51:45Z"

SUBSCRIBE_REQUEST = f"""<SubscribeRequest
xmlns="{GRID_FORUM}/Protocol" requestID="1">
  <SubscriptionID>12</SubscriptionID>
  <UptimeCPULoad
xmlns="{GRID_FORUM}/EventParameters">
    <Period units="sec">600</Period>
  </UptimeCPULoad>
</SubscribeRequest>
"""
SUBSCRIBE_REPLY = f"""<SubscribeReply
xmlns="{GRID_FORUM}/Protocol" requestID="1">
  <Return>Success</Return>
  <SubscriptionID>99</SubscriptionID>
</SubscribeReply>
"""
UNSUBSCRIBE_REQUEST = f"""<UnsubscribeRequest
xmlns="{GRID_FORUM}/Protocol" requestID="9">
 <SubscriptionID>1234</SubscriptionID>
</UnsubscribeRequest>
"""
UNSUBSCRIBE_REPLY = f"""<UnsubscribeReply
xmlns="{GRID_FORUM}/Protocol" requestID="9">
  <Return>Success</Return>
</UnsubscribeReply>
"""
# The event stands in the protocol's namespace here, against section 4.1.
EVENT = f"""<Event
xmlns="{GRID_FORUM}/Protocol" subscriptionID="1234">
  <UptimeCPULoad
xmlns="{GRID_FORUM}/Protocol">
    <Load1>1.5</Load1>
    <Load5>1.6</Load5>
    <Load15>1.3</Load15>
    <TimeStamp>{TIME}</TimeStamp>
  </UptimeCPULoad>
</Event>
"""
# The parameters stand in the namespace of events here.
QUERY_REQUEST = f"""<QueryRequest
xmlns="{GRID_FORUM}/Protocol" requestID="15">
  <UptimeCPULoad
xmlns="{GRID_FORUM}/Events"/>
</QueryRequest>
"""
# The event has the name of the text here, and not that of the other examples.
QUERY_REPLY = f"""<QueryReply
xmlns="{GRID_FORUM}/Protocol" requestID="15">
  <Return>Success</Return>
  <UptimeCPULoadEvent
xmlns="{GRID_FORUM}/Events">
    <Load1>1.5</Load1>
    <Load5>1.6</Load5>
    <Load15>1.3</Load15>
    <TimeStamp>{TIME}</TimeStamp>
  </UptimeCPULoadEvent>
</QueryReply>
"""
EVENT_NAMES_REQUEST = f"""<EventNamesRequest
xmlns="{GRID_FORUM}/Protocol" requestID="15"/>
"""
# The closing tag is another one.
EVENT_NAMES_REPLY = f"""<EventNamesReply
xmlns="{GRID_FORUM}/Protocol" requestID="15">
  <Return>Success</Return>
  <Event name="UptimeCPULoad"
namespace="{GRID_FORUM}/Events"/>
</AvailableEventsReply>
"""

LOADS = (Element("Load1", 1.5), Element("Load5", 1.6), Element("Load15", 1.3))
LOAD = PerformanceEvent(UPTIME, TIME, LOADS)

# Each example, and what it says.
EXAMPLES: dict[str, tuple[str, m.Message]] = {
    "4.2.1 SubscribeRequest": (
        SUBSCRIBE_REQUEST,
        m.SubscribeRequest("1", "12", Parameters(UPTIME, (Element("Period", 600, "sec"),))),
    ),
    "4.2.2 SubscribeReply": (SUBSCRIBE_REPLY, m.SubscribeReply("1", "Success", None, "99")),
    "4.2.3 UnsubscribeRequest": (UNSUBSCRIBE_REQUEST, m.UnsubscribeRequest("9", "1234")),
    "4.2.4 UnsubscribeReply": (UNSUBSCRIBE_REPLY, m.UnsubscribeReply("9")),
    "4.2.5 Event": (EVENT, m.EventMessage("1234", LOAD)),
    "4.4.1 QueryRequest": (QUERY_REQUEST, m.QueryRequest("15", Parameters(UPTIME))),
    "4.4.2 QueryReply": (QUERY_REPLY, m.QueryReply("15", event=LOAD)),
    "4.5.1 EventNamesRequest": (EVENT_NAMES_REQUEST, m.EventNamesRequest("15")),
    "4.5.2 EventNamesReply": (EVENT_NAMES_REPLY, m.EventNamesReply("15", names=(UPTIME,))),
}
