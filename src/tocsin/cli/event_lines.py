"""Events as lines: brief, whole, by a format, or the JSON as it came. Made in blocks, for speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from tocsin.cli.render import safe
from tocsin.client.transport.sse import Message
from tocsin.errors import BadSetting

if TYPE_CHECKING:
    from tocsin.wire.gma.messages import Element, PerformanceEvent

OPTIONAL = "?"  # behind a field's name in a format: it may be missing
FIELDS_SHOWN_MAX = 30
# Members of CloudEvents, which an event may lack.
MEMBERS = frozenset(
    {"seq", "id", "source", "type", "specversion", "topic", "time", "subject", "data"}
    | {"datacontenttype", "dataschema", "data_base64"}
)

Lines = Callable[[list[Message]], str | bytes]


class _Brief(msgspec.Struct):
    topic: str = ""
    type: str = ""
    time: str = ""
    data: msgspec.Raw = msgspec.Raw(b"")
    data_base64: str = ""


_read_brief = msgspec.json.Decoder(_Brief).decode
_read_event = msgspec.json.Decoder(dict[str, Any]).decode


def json_lines(messages: list[Message]) -> bytes:
    """The CloudEvents as they came, one a line."""
    # A line break outside a string, the only place JSON allows it, is as good as a space.
    texts = [m.data.replace(b"\n", b" ") if b"\n" in m.data else m.data for m in messages]
    return b"\n".join(texts) + b"\n"


def brief_lines(messages: list[Message]) -> str:
    """Time, topic and data."""
    lines = []
    for message in messages:
        event = _read_brief(message.data)
        data = bytes(event.data).decode() or event.data_base64
        lines.append(f"{event.time or '-'} {event.topic or event.type} {data}")
    return "\n".join(line.replace("\n", " ") for line in lines) + "\n"


def whole_lines(messages: list[Message]) -> str:
    """The sequence number, then every member on its own line."""
    parts = []
    for message in messages:
        text = json.dumps(_read_event(message.data), indent=2, ensure_ascii=False)
        parts.append(f"#{message.seq}\n{text}\n")
    return "\n".join(parts)


class Fields(dict[str, Any]):
    """An event for a format: its members, then those of its data; what there is not is empty.

    Every value is text, so that a format that holds for one event holds for all.
    """

    def names(self) -> list[str]:
        """Every field that a format may name for this event."""
        data, written = self.get("data"), self.get("tocsinattributes")
        found = {*self, *(data if isinstance(data, dict) else ())}
        if written is not None:
            with suppress(ValueError):
                found.update(json.loads(str(written)))
        return sorted(name for name in found if isinstance(name, str))

    def __getitem__(self, name: str) -> str:
        name = name.removesuffix(OPTIONAL)
        value = self.get(name)
        if value is None and isinstance(data := self.get("data"), dict):
            value = data.get(name)
        if value is None and (written := self.get("tocsinattributes")) is not None:
            value = _attribute(written, name)
        if value is None:
            return ""
        if isinstance(value, (dict, list, bool)):
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return str(value)


def _attribute(written: object, name: str) -> Any:
    """A typed attribute by its name; of one with a unit, the value."""
    try:
        value = json.loads(str(written)).get(name)
    except (ValueError, AttributeError):
        return None
    return value.get("value") if isinstance(value, dict) else value


def format_lines(template: str) -> Lines:
    """Lines made by a template such as '{topic}\\t{load5}'."""
    pattern = template.replace("\\t", "\t").replace("\\n", "\n") + "\n"
    wanted = check_template(pattern)
    checked = False

    def lines(messages: list[Message]) -> str:
        nonlocal checked
        events = [Fields(_read_event(message.data), seq=message.seq) for message in messages]
        if not checked and events:
            check_fields(wanted, events[0])
            checked = True
        return "".join(pattern.format_map(event) for event in events)

    return lines


def check_fields(wanted: list[str], first: Fields) -> None:
    """Raises BadSetting for a field that the first event lacks, unless it is marked by a ?."""
    known = first.names()
    for name in wanted:
        if name.endswith(OPTIONAL) or name in MEMBERS or name in known:
            continue
        from tocsin.errors.suggest import nearest

        near = nearest(name, known)
        hint = f"Did you mean {{{near}}}? " if near else ""
        raise BadSetting(
            f"--format: the first event has no field {name!r}",
            remedy=f"{hint}It has: {', '.join(known[:FIELDS_SHOWN_MAX])}. "
            f"For a field that may be missing, write {{{name}{OPTIONAL}}}.",
        )


def check_template(pattern: str) -> list[str]:
    """The names in braces. Only plain ones: no attributes, no indexes, which reach into Python."""
    from string import Formatter

    try:
        names = [name for _, name, _, _ in Formatter().parse(pattern) if name is not None]
    except ValueError as error:
        raise _bad_template(pattern, str(error)) from None
    plain = [name.removesuffix(OPTIONAL).replace("_", "a") for name in names]
    invalid = [name for name, each in zip(names, plain, strict=True) if not each.isidentifier()]
    if invalid:
        raise _bad_template(pattern, f"{invalid[0]!r} is not a name")
    try:
        pattern.format_map(Fields())
    except (ValueError, TypeError) as error:
        raise _bad_template(pattern, str(error)) from None
    return names


def _bad_template(pattern: str, problem: str) -> BadSetting:
    return BadSetting(
        f"--format {pattern.rstrip()!r}: {problem}",
        remedy="Write names in braces, as in '{topic}\\t{id}\\t{load5}'; {{ is a brace.",
    )


def for_terminal(lines: Lines) -> Lines:
    """The same lines with control characters escaped."""

    def shown(messages: list[Message]) -> str:
        text = lines(messages)
        return safe(text.decode() if isinstance(text, bytes) else text)

    return shown


def performance_json(event: PerformanceEvent) -> str:
    """A performance event as one line of JSON."""
    members = {
        "name": event.name.local,
        "namespace": event.name.namespace,
        "time": event.time,
        "elements": [_element_json(each) for each in event.elements],
    }
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")) + "\n"


def _element_json(element: Element) -> dict[str, object]:
    value: object = element.value
    if isinstance(element.value, tuple):
        value = [_element_json(each) for each in element.value]
    members = {"name": element.name, "value": value}
    extras = {"unit": element.units, "accuracy": element.accuracy}
    return members | {name: text for name, text in extras.items() if text is not None}
