"""XPath filters: read and refused when somebody subscribes, asked of an event at most once each.

An expression is compiled once for its text. Before it is evaluated, two things are looked at: does
the document have the names that the expression needs, and what would the evaluation cost at worst.
One that would cost more than `EXPRESSION_NS_MAX` is not evaluated and does not match, and so are
those that come after `EVENT_NS_MAX` is spent, or `REAL_NS_MAX` has really passed; `Inquiry.gave_up`
names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from lxml import etree

from tocsin.errors import BadFilter
from tocsin.event.event import Event
from tocsin.event.filter import XPath
from tocsin.event.xml_form import CLOUDEVENTS
from tocsin.event.xpath_cost import Size, cost_ns
from tocsin.event.xpath_documents import (
    ENVELOPE_LEVELS,
    ENVELOPE_NAMESPACES,
    ENVELOPES,
    Document,
    Documents,
    TopicDocument,
)
from tocsin.event.xpath_syntax import (
    Binary,
    Expression,
    Literal,
    Path,
    Step,
    finds_nodes,
    parse_xpath,
)
from tocsin.safexml import DEPTH_MAX

EXPRESSION_NS_MAX = 500_000_000  # of one evaluation at worst; measured ones are far below
EVENT_NS_MAX = 20_000_000_000  # of all evaluations for one event, at worst
REAL_NS_MAX = 500_000_000  # and what they may take by the stopwatch, where there is one
SMALL = Size(nodes=256, depth=10)  # a message of some 5 KB; what is too dear for it is refused
# Sizes for which costs are worked out and kept.
STEPS_NODES = tuple(256 << step for step in range(0, 16, 2))
STEPS_DEPTH = (8, 16, 32, 64, DEPTH_MAX + ENVELOPE_LEVELS)
COMPILED_KEPT = 16_384  # distinct expressions; each takes some 10 KB
NAMESPACES_MAX = 64

WELL_KNOWN: Final = {"ce": CLOUDEVENTS}
_PREFIX = re.compile(r"[^\W\d][\w.-]{0,63}")
_URI = re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]{1,1024}")
_ON = ("payload", "envelope", "topic")
_OUTSIDE = re.compile(r"\b(Envelope|Header|Body)\b")


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression ready to be asked."""

    evaluate: etree.XPath
    tree: Expression
    names: frozenset[bytes]  # without all of these in the document it cannot match
    asks_envelope: bool  # it names what only an envelope has
    _costs_ns: dict[Size, float] = field(default_factory=dict)

    def cost_ns(self, size: Size) -> float:
        """Not less than the evaluation takes; worked out for a few sizes only."""
        if size.nodes > STEPS_NODES[-1]:
            return cost_ns(self.tree, size)
        nodes = next(step for step in STEPS_NODES if size.nodes <= step)
        depth = next(step for step in STEPS_DEPTH if size.depth <= step)
        step = Size(nodes, depth)
        if step not in self._costs_ns:
            self._costs_ns[step] = cost_ns(self.tree, step)
        return self._costs_ns[step] * size.nodes / nodes


def check_xpath(wanted: XPath) -> XPath:
    """The same, if it can be compiled and is not too dear; BadFilter says why not."""
    if wanted.on not in _ON or wanted.soap not in ENVELOPES:
        raise BadFilter(
            "the XPath filter names an unknown document",
            remedy=f"on is {', '.join(_ON)}; soap is {' or '.join(ENVELOPES)}.",
        )
    if len(wanted.namespaces) > NAMESPACES_MAX:
        raise BadFilter("the XPath filter binds too many prefixes", remedy="Leave some out.")
    for prefix, uri in wanted.namespaces:
        if not _PREFIX.fullmatch(prefix) or not _URI.fullmatch(uri):
            raise BadFilter(
                f"the XPath filter binds the prefix {prefix[:40]!r} to {uri[:80]!r}",
                remedy="A prefix is a name without colon, bound to the URI of a namespace.",
            )
    compile_xpath(wanted)
    return wanted


@lru_cache(maxsize=COMPILED_KEPT)
def compile_xpath(wanted: XPath) -> Compiled:
    """The expression, ready; BadFilter if it is none."""
    namespaces = {**WELL_KNOWN, **dict(wanted.namespaces)}
    tree = parse_xpath(wanted.expression, frozenset(namespaces))
    if cost_ns(tree, SMALL) > EXPRESSION_NS_MAX:
        raise BadFilter(
            "the XPath expression could take too long even for small messages",
            remedy="Leave out some of its //, its axes other than child and @, or its predicates.",
            text=wanted.expression,
        )
    if wanted.on == "topic" and not finds_nodes(tree):
        raise BadFilter(
            "an XPath expression about topics must find elements",
            remedy="Write a path such as tns:lead//radar.",
            text=wanted.expression,
        )
    return Compiled(
        _evaluator(wanted, tree, namespaces),
        tree,
        frozenset(name.encode() for name in _names(tree)) if wanted.on != "topic" else frozenset(),
        wanted.on == "envelope" and _asks_envelope(wanted),
    )


def _evaluator(wanted: XPath, tree: Expression, namespaces: dict[str, str]) -> etree.XPath:
    if wanted.on == "topic":
        text = wanted.expression
    elif isinstance(tree, Path):
        # In a predicate libxml2 stops at the first node, and does not sort what it finds. Around
        # any expression it also sets the position and the size of the context, which are 1.
        text = f"boolean(self::node()[{wanted.expression}\n])"
    else:
        text = f"boolean(self::node()[boolean({wanted.expression}\n)])"
    try:
        return etree.XPath(text, namespaces=namespaces, regexp=False, smart_strings=False)
    except (etree.XPathError, ValueError, TypeError) as bad:
        raise BadFilter(
            f"the XPath expression cannot be used: {bad}",
            remedy="Write an XPath 1.0 expression.",
            text=wanted.expression,
        ) from None


class Inquiry:
    """What XPath filters ask about one event, and the answers so far."""

    def __init__(self, event: Event, stopwatch: Callable[[], int] = lambda: 0) -> None:
        self._stopwatch = stopwatch
        self._until_ns = stopwatch() + REAL_NS_MAX
        self.gave_up: list[XPath] = []
        self.evaluations = 0
        self._documents = Documents(event)
        self._answers: dict[XPath, bool] = {}
        self._left_ns: float = EVENT_NS_MAX

    def holds(self, wanted: XPath) -> bool:
        """True if the event passes."""
        answer = self._answers.get(wanted)
        if answer is None:
            answer = self._answers[wanted] = self._ask(wanted)
        return answer

    def _ask(self, wanted: XPath) -> bool:
        compiled = compile_xpath(wanted)
        if wanted.on == "topic":
            return any(self._finds(wanted, compiled, each) for each in self._documents.topics)
        documents = self._documents
        document = documents.payload
        if compiled.asks_envelope:
            document = documents.envelope(wanted.soap, wanted.wsa)
        return self._is_true(wanted, compiled, document)

    def _is_true(self, wanted: XPath, compiled: Compiled, document: Document) -> bool:
        if not compiled.names <= document.words:
            return False
        root = document.root
        if root is None or not self._is_affordable(compiled, document):
            self.gave_up.append(wanted)
            return False
        return bool(self._evaluated(wanted, compiled, root))

    def _finds(self, wanted: XPath, compiled: Compiled, topic: TopicDocument) -> bool:
        found = self._evaluated(wanted, compiled, topic.root)
        return isinstance(found, list) and any(each is topic.innermost for each in found)

    def _is_affordable(self, compiled: Compiled, document: Document) -> bool:
        cost = compiled.cost_ns(document.rough_size)
        if cost > EXPRESSION_NS_MAX:
            cost = cost_ns(compiled.tree, document.exact_size)
        if cost > EXPRESSION_NS_MAX or cost > self._left_ns or self._stopwatch() > self._until_ns:
            return False
        self._left_ns -= cost
        return True

    def _evaluated(self, wanted: XPath, compiled: Compiled, root: etree._Element) -> object:
        self.evaluations += 1
        try:
            return compiled.evaluate(root)
        except etree.XPathError:  # libxml2 has limits of its own
            self.gave_up.append(wanted)
            return False


def _asks_envelope(wanted: XPath) -> bool:
    """True for an expression that names something outside the payload.

    The text of WS-Eventing has it evaluated on the envelope; nearly everybody means the payload,
    and writes paths from its root. One document is asked, never both: else `not(/a)` would be true
    of whichever of them has no such root.
    """
    if _OUTSIDE.search(wanted.expression):
        return True
    return any(
        uri in ENVELOPE_NAMESPACES and re.search(rf"\b{re.escape(prefix)}:", wanted.expression)
        for prefix, uri in wanted.namespaces
    )


def _is_named(step: Step) -> bool:
    return step.test != "*" and "(" not in step.test and step.axis != "namespace"


def _names(tree: Expression) -> frozenset[str]:
    """Local names that are in every document for which the expression is true."""
    match tree:
        case Path(start, steps, predicates):
            within = start if isinstance(start, Path | Binary) else None
            found = [*predicates, *(each for step in steps for each in step.predicates)]
            named = {step.test for step in steps if _is_named(step)}
            inside = map(_names, found if within is None else [*found, within])
            return frozenset(named).union(*inside)
        case Binary("and", left, right):
            return _names(left) | _names(right)
        case Binary("or" | "|", left, right):
            return _names(left) & _names(right)
        case Binary("=" | "!=" | "<" | "<=" | ">" | ">=", left, right):
            # A comparison with a set of no nodes is false, but for one with a truth.
            if isinstance(right, Literal) and finds_nodes(left):
                return _names(left)
            if isinstance(left, Literal) and finds_nodes(right):
                return _names(right)
    return frozenset()
