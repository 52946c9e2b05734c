"""Messages of every kind, drawn by Hypothesis: what XML can hold, and what looks like numbers."""

from __future__ import annotations

from hypothesis import strategies as st

from tocsin.event.value import Scalar
from tocsin.event.xml_form import FORBIDDEN
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import Element, Parameters, PerformanceEvent
from tocsin.wire.gma.names import EVENTS, EventName, is_own
from tocsin.wire.gma.values import INT64_MAX, XML_SPACE

SHAMS = ["5", "-0", "1.5", "1e3", " 7 ", "true", "false", "\n1\n", "nan", "inf", "0x10", "1_000"]
SHAMS += ["\xa05", "", " ", "]]>", "<a/>", "&amp;", "\r\n", "a\r", "\x7f", "\x85", "٣", "9" * 25]

texts = st.sampled_from(SHAMS) | st.text(max_size=20).filter(
    lambda text: not FORBIDDEN.search(text)
)
ids = texts.map(lambda text: text.strip(XML_SPACE)).filter(bool)
local_names = st.sampled_from(
    ["Load1", "HostName", "Größe", "温度", "a.b-c_d", "_x"]
) | st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
field_names = local_names.filter(lambda name: name != "TimeStamp")
stamps = st.sampled_from(
    [
        "2000-11-09T21:51:45Z",
        "2000-10-26T08:34:26.125Zp.001a.5",
        "2024-02-29T23:59:60+05:30",
        "20001109T215145,5Z",
    ]
)

scalars: st.SearchStrategy[Scalar] = (
    st.booleans()
    | st.integers(-INT64_MAX - 1, INT64_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)


def _element(
    value: st.SearchStrategy[Scalar | tuple[Element, ...]],
) -> st.SearchStrategy[Element]:
    return st.builds(Element, field_names, value, st.none() | texts, st.none() | texts)


elements = st.recursive(
    _element(scalars),
    lambda inner: _element(st.lists(inner, min_size=1, max_size=3).map(tuple)),
    max_leaves=6,
)
some_elements = st.lists(elements, max_size=5).map(tuple)

event_names = st.builds(
    EventName,
    local_names.filter(lambda name: name != "UptimeCPULoadEvent"),
    st.sampled_from(
        [EVENTS, "urn:lab", "http://example.org/x#", "", "lab", "http://[::1]/a?b&c='d'"]
    ),
).filter(lambda name: not is_own(name.namespace, name.local))
performance_events = st.builds(PerformanceEvent, event_names, stamps, some_elements)
parameters = st.builds(Parameters, event_names, some_elements)
details = st.none() | texts
seqs = st.integers(0, 10**18 - 1)
options = st.none() | st.builds(
    m.Options,
    st.sampled_from([None, "producer", "consumer"]),
    st.none() | seqs,
    st.none() | ids,
    st.booleans(),
    st.booleans(),
).filter(m.Options().__ne__)  # who asks for nothing has no options
contexts = st.none() | st.builds(m.Context, seqs, texts, texts, texts)
event_messages = st.builds(
    m.EventMessage, ids, performance_events, details, details, st.none() | ids, contexts
) | st.builds(m.EventMessage, ids, st.none(), texts, details, st.none() | ids, contexts)

messages: st.SearchStrategy[m.Message] = st.one_of(
    st.builds(m.SubscribeRequest, ids, ids, parameters, details, options),
    st.builds(m.SubscribeReply, ids, ids, details, st.none() | ids, options),
    st.builds(m.UnsubscribeRequest, ids, ids),
    st.builds(m.UnsubscribeReply, ids, ids, details),
    event_messages,
    st.builds(m.EventReply, ids, ids, details),
    st.builds(m.QueryRequest, ids, parameters, details),
    st.builds(m.QueryReply, ids, ids, details, st.none() | performance_events),
    st.builds(m.EventNamesRequest, ids),
    st.builds(m.EventNamesReply, ids, ids, details, st.lists(event_names, max_size=4).map(tuple)),
)
