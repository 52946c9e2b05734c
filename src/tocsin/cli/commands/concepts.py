"""`tocsin concepts`: the vocabulary of messages and profiles, and which concept is below which."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_actions, add_broker

if TYPE_CHECKING:
    from tocsin.ontology import Concept, Vocabulary

SUMMARY = "Show the concepts of messages and profiles"
EXAMPLES = """
  tocsin concepts ls memory                         those whose name or text has `memory`
  tocsin concepts tree ActivityEvent                what a subscription to it asks for
  tocsin concepts show ActivityFailed
  tocsin concepts tree --ontology lab.ttl           with a site's own, no broker needed
"""


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    ls = actions.add_parser("ls", examples=EXAMPLES, help="list concepts")
    ls.add_argument("text", metavar="TEXT", nargs="?", help="only those that have TEXT in them")
    tree = actions.add_parser("tree", examples=EXAMPLES, help="which concepts are below which")
    tree.add_argument("name", metavar="NAME", nargs="?", help="begin here (everywhere)")
    show = actions.add_parser("show", examples=EXAMPLES, help="show one in detail")
    show.add_argument("name", metavar="NAME", help="as ActivityFailed, bb:ActivityFailed or an IRI")
    for action in (ls, tree, show):
        _add_where(action)


def _add_where(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--ontology",
        metavar="FILE",
        action="append",
        help="the built-in concepts and those of this Turtle file; without a broker",
    )
    add_broker(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli.concepts.tree import vocabulary
    from tocsin.cli.failure import NOT_FOUND, report
    from tocsin.errors import UnknownConcept

    known = vocabulary(arguments.ontology, arguments.broker)
    try:
        return {"ls": _ls, "tree": _tree, "show": _show}[arguments.action](known, arguments)
    except UnknownConcept as error:
        report(error)
        return NOT_FOUND


def _ls(known: Vocabulary, arguments: Namespace) -> int:
    from tocsin.cli.failure import NOT_FOUND
    from tocsin.cli.render import plural, say, show_json
    from tocsin.cli.tables import table

    sought = (arguments.text or "").lower()
    found = sorted(
        (each for each in known if sought in f"{each.name} {each.label} {each.comment}".lower()),
        key=lambda concept: (":" in concept.name, concept.name),
    )
    if arguments.json:
        for concept in found:
            show_json(_view(concept))
    elif found:
        rows = [
            (each.name, ", ".join(each.parents), each.unit, each.comment or each.label)
            for each in found
        ]
        table(("concept", "is a", "unit", "meaning"), rows)
        say(plural(len(found), "concept"))
    if not found:
        say(f"no concept has {arguments.text!r} in it; `tocsin concepts ls` lists all of them")
        return NOT_FOUND
    return 0


def _view(concept: Concept) -> dict[str, object]:
    return {
        "name": concept.name,
        "iri": concept.iri,
        "label": concept.label,
        "comment": concept.comment,
        "parents": list(concept.parents),
        "unit": concept.unit,
    }


def _tree(known: Vocabulary, arguments: Namespace) -> int:
    from tocsin.cli.concepts.tree import nested, tree_lines
    from tocsin.cli.render import say, show_json
    from tocsin.cli.tables import screen_width, truncate

    if arguments.name:
        roots = [known.resolve(arguments.name)]
    else:
        # Ours first: what is below another ontology's concept is mostly below ours too.
        roots = sorted(known.roots(), key=lambda name: (":" in name, name))
    if arguments.json:
        for root in roots:
            show_json(nested(known, root))
        return 0
    width = screen_width()
    for line in tree_lines(known, roots):
        print(truncate(line, width))
    if arguments.name:
        count = len(known.below(roots[0]))
        say(f"a subscription to {roots[0]} covers {count:,} concept{'' if count == 1 else 's'}")
    return 0


def _show(known: Vocabulary, arguments: Namespace) -> int:
    from tocsin.cli.render import show_json
    from tocsin.cli.tables import field_lines, screen_width, show_lines

    name = known.resolve(arguments.name)
    concept = known.concepts[name]
    above = sorted(known.above(name) - {name} - set(concept.parents))
    below = sorted(known.below(name) - {name})
    if arguments.json:
        children = sorted(known.children(name))
        shown = {"children": children, "above": sorted(known.above(name)), "below": below}
        show_json({**_view(concept), **shown})
        return 0
    pairs = [
        ("concept", name),
        ("IRI", concept.iri),
        ("label", concept.label),
        ("meaning", concept.comment),
        ("unit", concept.unit),
        ("is a", ", ".join(concept.parents)),
        ("and so a", ", ".join(above)),
        ("stands for", ", ".join(below) or "itself alone"),
    ]
    show_lines(field_lines(pairs, width=min(screen_width(), 100)))
    return 0
