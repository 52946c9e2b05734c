"""Concepts to show: those loaded by a broker, or the built-in ones and a site's files; as a tree.

Listing concepts should not need a broker. So if no broker answers, and none was named, the built-in
ones are shown, with a message. In a tree one concept may have several places, and there may be
cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tocsin.cli.render import safe, say
from tocsin.errors import BadOntology, BrokerRefused, CannotReachBroker
from tocsin.ontology import Terms, Vocabulary, built_in, read_turtle
from tocsin.ontology.built_in import own_terms

NOT_THERE = 404
DEPTH_MAX = 100  # deeper, no screen and no reader follows


def vocabulary(files: Sequence[str] | None, broker: str | None) -> Vocabulary:
    """The concepts to show."""
    if files:
        return Vocabulary([own_terms(), *map(_read, files)])
    from tocsin.cli.rest import Rest

    with Rest(broker) as rest:
        try:
            return loaded(rest.get("/blackboard/concepts")["concepts"])
        except CannotReachBroker:
            if broker is not None:
                raise
            say(f"no broker at {rest.address}: these are the built-in concepts")
        except BrokerRefused as error:
            if error.status != NOT_THERE:
                raise
            say(f"the broker at {rest.address} lists no concepts: these are the built-in ones")
    return built_in()


def _read(name: str) -> Terms:
    try:
        with open(name, "rb") as file:
            return read_turtle(file.read(), name)
    except OSError as error:
        raise BadOntology(
            f"cannot read {name}: {error.strerror}", remedy="Name a Turtle file."
        ) from None


def loaded(views: Iterable[Mapping[str, Any]]) -> Vocabulary:
    """The concepts of a broker, from its list."""
    listed = list(views)
    iris = {str(view["name"]): str(view["iri"]) for view in listed}
    terms = Terms()
    for view in listed:
        name, iri = str(view["name"]), iris[str(view["name"])]
        terms.add(iri).update(dict.fromkeys(iris.get(each, each) for each in view["parents"]))
        texts = {key: str(view.get(key) or "") for key in ("label", "comment", "unit")}
        terms.words[iri] = {key: value for key, value in texts.items() if value}
        prefix, colon, word = name.partition(":")
        if colon and name != iri and iri.endswith(word):
            terms.prefixes.setdefault(prefix, iri.removesuffix(word))
    for parents in list(terms.parents.values()):
        for parent in parents:
            terms.add(parent)
    return Vocabulary([terms])


def tree_lines(known: Vocabulary, roots: Iterable[str]) -> Iterator[str]:
    """One concept a line. The children of a concept are shown at its first place."""
    shown: set[str] = set()
    for root in roots:
        yield from _branch(known, root, "", "", shown, 0)


def _branch(
    known: Vocabulary, name: str, before: str, joint: str, shown: set[str], depth: int
) -> Iterator[str]:
    children = sorted(known.children(name))
    again = name in shown and bool(children)
    unit = known.concepts[name].unit
    suffix = f" [{unit}]" if unit else ""
    yield safe(f"{before}{joint}{name}{suffix}{' (see above)' if again else ''}")
    if again or depth > DEPTH_MAX:
        return
    shown.add(name)
    inner = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[joint]
    for number, child in enumerate(children, 1):
        mark = "└─ " if number == len(children) else "├─ "
        yield from _branch(known, child, inner, mark, shown, depth + 1)


def nested(known: Vocabulary, name: str) -> dict[str, Any]:
    """A concept with what is below it, for programs; as on a screen, each is opened once."""
    return _nested(known, name, set(), 0)


def _nested(known: Vocabulary, name: str, shown: set[str], depth: int) -> dict[str, Any]:
    if name in shown and known.children(name):
        return {"name": name, "again": True}
    shown.add(name)
    children = sorted(known.children(name)) if depth < DEPTH_MAX else []
    return {"name": name, "below": [_nested(known, each, shown, depth + 1) for each in children]}
