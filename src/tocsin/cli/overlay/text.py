"""Links, peers and routing tables as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tocsin.cli.render import colour, fields, plural, say, show
from tocsin.cli.tables import heading, table
from tocsin.event.instant import rfc3339_ns

BEHIND_SHOWN_MAX: Final = 3
BROKERS_SHOWN_MAX: Final = 5
_COLOURS: Final = {"up": "32", "linked": "32", "connecting": "33", "waiting": "33", "down": "31"}
_NEIGHBOUR_HEAD: Final = (
    "broker", "state", "address", "round trip", "lag", "in flight", "sent", "received",
    "subscriptions", "advertisements", "behind",
)  # fmt: skip
_NUMBERS: Final = frozenset(range(3, 10))


def print_overlay(overlay: dict[str, Any], *, has_tables: bool) -> None:
    """One screen; `has_tables` adds the rows of the routing tables that were asked for."""
    fields(_lines(overlay))
    if overlay["neighbours"]:
        _print_neighbours(overlay["neighbours"])
    if overlay["peers"]:
        _print_peers(overlay["peers"])
    if has_tables:
        _print_table("advertisements (SRT)", overlay, "advertisements")
        _print_table("subscriptions (PRT)", overlay, "subscriptions")
    if not overlay["neighbours"] and not overlay["peers"]:
        say("no links; connect brokers with `tocsin serve --peer HOST:PORT`")


def _lines(overlay: dict[str, Any]) -> list[tuple[str, object]]:
    tables = (
        f"{plural(overlay['subscriptions_total'], 'subscription')}, "
        f"{plural(overlay['advertisements_total'], 'advertisement')}"
    )
    return [
        ("broker", overlay["broker"]),
        ("links at", overlay["link"] or "off: it only connects to others"),
        ("reached", plural(len(overlay["brokers"]), "other broker")),
        ("routing", f"{tables}, covering {'on' if overlay['covering'] else 'off'}"),
        ("topic discovery nodes", _tdns(overlay["tdns"]) or None),
        ("handovers", f"{overlay['handovers']:,} under way" if overlay["handovers"] else None),
        ("refused", plural(overlay["refused"], "link") if overlay["refused"] else None),
        ("forgotten", ", ".join(overlay["forgotten"]) or None),
    ]


def _tdns(brokers: list[dict[str, Any]]) -> str:
    """The brokers that have some, each with how many if there are several."""
    shown = [
        each["broker"] + (f" ({len(each['tdns'])})" if len(each["tdns"]) > 1 else "")
        for each in brokers[:BROKERS_SHOWN_MAX]
    ]
    more = len(brokers) - BROKERS_SHOWN_MAX
    return f"at {', '.join(shown)}{f' and {more:,} more' if more > 0 else ''}" if shown else ""


def _print_neighbours(neighbours: list[dict[str, Any]]) -> None:
    heading("neighbours")
    rows = [
        (
            each["broker"],
            each["state"],
            each["peer"],
            None if each["round_trip_ms"] is None else f"{each['round_trip_ms']:.1f} ms",
            each["lag"],
            each["in_flight"],
            each["sent"],
            each["received"],
            each["subscriptions"],
            each["advertisements"],
            _behind(each),
        )
        for each in neighbours
    ]
    table(_NEIGHBOUR_HEAD, rows, right=_NUMBERS, soft=frozenset({10}), paint=_painted(1))
    for each in neighbours:
        if each["dropped"]:
            say(f"{each['broker']}: {plural(each['dropped'], 'event')} given up, away for too long")
        _print_error(each["broker"], each["error"])


def _behind(neighbour: dict[str, Any]) -> str:
    """The brokers that are reached through it, beside itself."""
    behind = [each for each in neighbour["behind"] if each != neighbour["broker"]]
    more = len(behind) - BEHIND_SHOWN_MAX
    shown = ", ".join(behind[:BEHIND_SHOWN_MAX])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _print_peers(peers: list[dict[str, Any]]) -> None:
    heading("peers")
    rows = [
        (", ".join(each["addresses"]), each["state"], each["used"], each["broker"], _next(each))
        for each in peers
    ]
    table(("addresses", "state", "used", "broker", "next attempt"), rows, paint=_painted(1))
    for each in peers:
        for problem in each["problems"]:
            _print_error(problem["address"], problem["error"])


def _next(peer: dict[str, Any]) -> str | None:
    next_s = peer["next_attempt_s"]
    return None if next_s is None else f"in {next_s:.1f} s"


def _print_error(subject: str, error: dict[str, Any] | None) -> None:
    if error is not None:
        show(f"{subject}: {error['problem']} [{error['code']}]")
        show(f"      {error['remedy']}")


def _print_table(name: str, overlay: dict[str, Any], key: str) -> None:
    rows: Sequence[dict[str, Any]] = overlay[key]
    heading(f"{name}: {len(rows):,} of {overlay[f'{key}_total']:,}")
    table(
        ("origin", "filter", "from", "sent to", "covered by", "reached"),
        [
            (
                each["origin"],
                each["filter"] or "everything",
                each["last_hop"] or "this broker",
                ", ".join(each["sent_to"]),
                len(each["covered_by"]) or None,
                _reached(each["reached"]),
            )
            for each in rows
        ],
        soft=frozenset({1, 3}),
    )


def _reached(reached: dict[str, str]) -> str | None:
    """At how many brokers it holds, and since when at all of them."""
    if not reached:
        return None
    latest = max(reached.values(), key=lambda moment: rfc3339_ns(moment) or 0)
    return f"{len(reached)} since {latest}"


def _painted(column: int) -> Any:
    def paint(at: int, text: str) -> str:
        return colour(text, _COLOURS.get(text, "0")) if at == column else text

    return paint
