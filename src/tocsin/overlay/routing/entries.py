"""What neighbours say for the tables: what is taken, and what is looked at again once rights are
others than before."""

from __future__ import annotations

from typing import Final

from tocsin.errors import NotAllowed, TocsinError
from tocsin.overlay.routing.effects import EntryKey
from tocsin.overlay.routing.links import Link
from tocsin.overlay.routing.options import CheckEntry
from tocsin.overlay.routing.room import check_share, ignore
from tocsin.overlay.routing.state import SUBSCRIPTIONS, RouterState, read_filter
from tocsin.overlay.routing.updates import answer_reached

REFUSED_MAX: Final = 1_000  # entries of one link that are remembered,
REFUSED_CHARS_MAX: Final = 1 << 20  # and what they take: others wait for the next link


def take_entry(
    state: RouterState, link: Link, name: str, key: EntryKey, text: str, check: CheckEntry
) -> None:
    """A neighbour says this."""
    if key[0] == state.own.broker:
        return  # our own, by way of a cycle that is about to be cut
    forget_refused(link, name, key)
    known = state.table(name).text_from(link.neighbour, key)
    try:
        check_share(state, name, link.neighbour, key, text)
        wanted = read_filter(text)
        check(link.number, name, wanted)
        state.put(name, link.neighbour, key, text, wanted)
    except TocsinError as error:
        state.take(name, link.neighbour, key)
        ignore(state, link, error)
        if isinstance(error, NotAllowed):
            _remember(link, name, key, text)
        return
    entry = state.subscriptions.entries.get(key)
    if known == text and name == SUBSCRIPTIONS and entry and entry.hop == link.neighbour:
        answer_reached(state, entry)  # the earlier answer may not have got through


def forget_refused(link: Link, name: str, key: EntryKey) -> None:
    """The neighbour says something else by this name now, or nothing."""
    text = link.refused.pop((name, key), None)
    if text is not None:
        link.refused_chars -= len(text)


def _remember(link: Link, name: str, key: EntryKey, text: str) -> None:
    has_room = link.refused_chars + len(text) <= REFUSED_CHARS_MAX
    if has_room and len(link.refused) < REFUSED_MAX:
        link.refused[name, key] = text
        link.refused_chars += len(text)


def take_refused(state: RouterState, link: Link, check: CheckEntry) -> None:
    """The neighbour has other rights than before: what it had none to may be taken by now."""
    for (name, key), text in list(link.refused.items()):
        try:
            check(link.number, name, read_filter(text))
        except TocsinError:
            continue
        take_entry(state, link, name, key, text, check)
