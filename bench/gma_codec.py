"""The codec of the producer/consumer protocol: what reading and writing a message costs.

    python bench/gma_codec.py [--quick] [--json FILE] [--plot FILE]

The message is paper 002's, an Event with an UptimeCPULoad and its HostName. Each has other values
than the one before, so that nothing is read from memory. `decode` makes typed objects of the bytes,
`encode` bytes of the objects, `route` reads name and id and keeps the bytes of the event; beside
them, in the same rounds: lxml and expat that only look at every name, text and attribute, lxml's
tree builder. The same event as others may write it is read as well, each form beside lxml's walk
over the same bytes: first the paper's own example (4.2.5, with the HostName that 3.1 demands), last
what our fast path leaves to the parser. Messages per second of processor time, medians of rounds
that take turns; a ratio is the median of those within a round, so that a busy moment slows down
both sides of it.

The paper's figures are from a Pentium III of 933 MHz. By clock alone they would be 3.2 times as
high at 3 GHz; that is a scale for the eye, not a measurement.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from lxml import etree
from msgspec.structs import replace

import report
from tocsin.wire.gma.messages import Element, EventMessage, Message, PerformanceEvent
from tocsin.wire.gma.names import EVENTS, PROTOCOL, EventName
from tocsin.wire.gma.plain import route
from tocsin.wire.gma.read import read
from tocsin.wire.gma.stamp import read_stamp
from tocsin.wire.gma.write import write

MESSAGES = 500  # different ones, taken in turn
PAPER = {"C++": {"decode": 4_300, "encode": 28_100}, "Java": {"decode": 600, "encode": 21_900}}
CLOCK = 3_000 / 933
PARSED_FORMS = ("single quotes", "prefixes")
TARGETS = {"decode_over_lxml": 0.8, "encode_over_lxml": 3.0, "route_over_decode": 1.5}

Rounds = dict[str, list[float]]  # messages per CPU-second of each kind of work, round by round


def uptime(number: int) -> EventMessage:
    elements = (
        Element("Load1", number / 100),
        Element("Load5", (number + 1) / 100),
        Element("Load15", (number + 2) / 100),
        Element("HostName", f"node{number}.foo.gov"),
    )
    minute, second = divmod(number % 3_600, 60)
    stamp = f"2000-11-09T21:{minute:02}:{second:02}Z"
    return EventMessage("1234", PerformanceEvent(EventName("UptimeCPULoad"), stamp, elements))


def as_printed(message: bytes) -> bytes:
    """The same message as section 4.2.5 prints it: its line breaks, and its one namespace."""
    text = message.decode().replace(EVENTS, PROTOCOL).replace(" xmlns", "\nxmlns")
    for name, indent in (("UptimeCPULoad", "  "), ("Load", "    "), ("Host", "    ")):
        text = text.replace(f"><{name}", f">\n{indent}<{name}")
    text = text.replace("><Time", ">\n    <Time").replace("></Uptime", ">\n  </Uptime")
    return text.replace("></Event>", ">\n</Event>\n").encode()


def prefixed(message: bytes) -> bytes:
    """The same message with a prefix on every name."""
    root = etree.fromstring(message)
    top = etree.Element(root.tag, dict(root.attrib), nsmap={"p": PROTOCOL, "e": EVENTS})
    top.append(root[0])
    etree.cleanup_namespaces(top, keep_ns_prefixes=["p", "e"])
    return etree.tostring(top)


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "paper 4.2.5 as printed": as_printed,
    "XML declaration": lambda message: b'<?xml version="1.0" encoding="UTF-8"?>\n' + message,
    "UptimeCPULoadEvent": lambda message: message.replace(b"CPULoad", b"CPULoadEvent"),
    "CRLF between elements": lambda message: message.replace(b"><", b">\r\n<"),
    "extended stamp": lambda message: message.replace(b"Z</Time", b"Zp.001a.5</Time"),
    "single quotes": lambda message: message.replace(b'"', b"'"),
    "prefixes": prefixed,
}


# What it is compared with


def lxml_walk() -> Callable[[bytes], None]:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )

    def walk(message: bytes) -> None:
        for element in etree.fromstring(message, parser).iter():
            _ = element.tag, element.text, element.items()

    return walk


def expat_walk(message: bytes) -> None:
    seen: list[object] = []
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: seen.append((name, attributes))
    parser.CharacterDataHandler = seen.append
    parser.Parse(message, True)


def lxml_build(message: EventMessage) -> bytes:
    event = message.event
    assert event is not None
    root = etree.Element(f"{{{PROTOCOL}}}Event", nsmap={None: PROTOCOL})
    root.set("subscriptionID", message.subscription_id)
    space = event.name.namespace
    top = etree.SubElement(root, f"{{{space}}}{event.name.local}", nsmap={None: space})
    for element in event.elements:
        etree.SubElement(top, f"{{{space}}}{element.name}").text = str(element.value)
    etree.SubElement(top, f"{{{space}}}TimeStamp").text = event.time
    return etree.tostring(root)


# Measuring


def rates(rounds: int, each: int) -> Rounds:
    objects = [uptime(number) for number in range(MESSAGES)]
    plain = [write(message) for message in objects]
    assert [read(message) for message in plain] == objects
    assert all(lxml_build(message) == write(message) for message in objects)
    works: dict[str, tuple[Callable[..., object], list[object]]] = {
        "decode": (read, [*plain]),
        "lxml walk": (lxml_walk(), [*plain]),
        "expat walk": (expat_walk, [*plain]),
        "route": (route, [*plain]),
        "encode": (write, [*objects]),
        "lxml tree builder": (lxml_build, [*objects]),
    }
    for form, respelled in FORMS.items():
        written = [respelled(message) for message in plain]
        assert [_without_clock(read(message)) for message in written] == objects, form
        works[f"decode, {form}"] = (read, [*written])
        works[f"lxml walk, {form}"] = (lxml_walk(), [*written])
    measured: Rounds = {name: [] for name in works}
    for _ in range(rounds):
        for name, (work, messages) in works.items():
            start = time.process_time()
            for _ in range(each // MESSAGES):
                for message in messages:
                    work(message)
            measured[name].append(each / (time.process_time() - start))
    return measured


def _without_clock(message: Message) -> Message:
    """The message as if its stamp said the time alone."""
    assert isinstance(message, EventMessage)
    assert message.event is not None
    event = replace(message.event, time=read_stamp(message.event.time).time)
    return replace(message, event=event)


def over(measured: Rounds, one: str, other: str) -> float:
    pairs = zip(measured[one], measured[other], strict=True)
    return statistics.median(first / second for first, second in pairs)


def form_ratios(measured: Rounds) -> dict[str, float]:
    """How each form is decoded, over lxml's walk through the same bytes."""
    return {form: over(measured, f"decode, {form}", f"lxml walk, {form}") for form in FORMS}


def ratios(measured: Rounds) -> dict[str, float]:
    return {
        "decode_over_lxml": over(measured, "decode", "lxml walk"),
        "decode_over_expat": over(measured, "decode", "expat walk"),
        "encode_over_lxml": over(measured, "encode", "lxml tree builder"),
        "route_over_decode": over(measured, "route", "decode"),
        "decode_over_paper": statistics.median(measured["decode"]) / PAPER["C++"]["decode"],
        "encode_over_paper": statistics.median(measured["encode"]) / PAPER["C++"]["encode"],
    }


def show(
    measured: dict[str, float], found: dict[str, float], forms: dict[str, float], size: int
) -> None:
    print(f"UptimeCPULoad with HostName, {size} bytes, messages per CPU-second\n")
    rows = [(name, rate) for name, rate in measured.items() if ", " not in name]
    for language, figures in PAPER.items():
        for name, figure in figures.items():
            rows.append((f"{name}, paper's {language} at 933 MHz", float(figure)))
            rows.append((f"{name}, the same {language} by clock at 3 GHz", figure * CLOCK))
    report.table(("", "per CPU-s"), rows)
    print()
    report.table(
        ("ratio", "", "at least"),
        [(name.replace("_", " "), ratio, TARGETS.get(name)) for name, ratio in found.items()],
    )
    print()
    report.table(
        ("the same event as others write it", "per CPU-s", "/ lxml walk", "at least"),
        [
            (
                form,
                measured[f"decode, {form}"],
                ratio,
                None if form in PARSED_FORMS else TARGETS["decode_over_lxml"],
            )
            for form, ratio in forms.items()
        ],
    )


def plot(measured: dict[str, float], path: Path) -> None:
    bars = {
        "decode": ("decode", "lxml walk", "expat walk", "route"),
        "encode": ("encode", "lxml tree builder"),
    }
    figure, axes = plt.subplots(figsize=(9, 4.4), layout="constrained")
    places: list[str] = []
    for task, names in bars.items():
        values = [(name, measured[name]) for name in names]
        values += [
            (f"{task}, paper's {language}, by clock at 3 GHz", figures[task] * CLOCK)
            for language, figures in PAPER.items()
        ]
        for name, value in values:
            ours = name in ("decode", "encode", "route")
            axes.barh(len(places), value, color="#2a7f62" if ours else "#9a9a9a", height=0.6)
            axes.text(value, len(places), f" {value:,.0f}", va="center", fontsize=9)
            places.append(name)
    axes.set_yticks(range(len(places)), places, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("messages per second of processor time")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    rounds = rates(rounds=9, each=1_000) if arguments.quick else rates(rounds=45, each=4_000)
    found, forms = ratios(rounds), form_ratios(rounds)
    measured = {name: statistics.median(values) for name, values in rounds.items()}
    size = len(write(uptime(0)))
    show(measured, found, forms, size)
    if arguments.json:
        results = {"bytes": size, "per_cpu_s": measured, "paper": PAPER, **found, "forms": forms}
        report.write("gma_codec", results, arguments.json)
    if arguments.plot:
        plot(measured, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
