"""XPath 1.0 over XML descriptors: what is accepted, and what must occur.

libxml2 evaluates it in a process of its own; these limits are for what would only waste that.
"""

from __future__ import annotations

import re
from typing import Final

from tocsin.errors import BadFilter, BadTopicQuery
from tocsin.event.xpath_cost import Size, cost_ns
from tocsin.event.xpath_syntax import Binary, Call, Expression, Literal, Path, parse_xpath
from tocsin.topics.queries.requirement import Requirement
from tocsin.topics.queries.xml_values import required_values

EXPRESSION_CHARS_MAX: Final = 512
WIDE_STEPS_MAX: Final = 3  # six inside each other took a second for a document of 16 nodes
NAMESPACES_MAX: Final = 16
EVALUATION_NS_MAX: Final = 500_000_000  # at worst, over the largest document that is kept
LARGEST: Final = Size(nodes=500, depth=20)  # deeper ones are for the deadline of the process

_PREFIX: Final = re.compile(r"[^\W\d][\w.-]{0,63}")
_URI: Final = re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]{1,1024}")
_WIDE: Final = frozenset(
    {"descendant", "descendant-or-self", "following", "preceding"}
    | {"following-sibling", "preceding-sibling"}
)


def check_xpath(expression: str, namespaces: tuple[tuple[str, str], ...]) -> Requirement:
    """What must occur in a document for which it is true. BadTopicQuery if it is not accepted."""
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise BadTopicQuery(
            f"the XPath expression has {len(expression)} characters",
            remedy=f"Write at most {EXPRESSION_CHARS_MAX}.",
        )
    _check_namespaces(namespaces)
    try:
        tree = parse_xpath(expression, frozenset(prefix for prefix, _ in namespaces))
    except BadFilter as error:
        raise BadTopicQuery(
            error.problem, remedy=error.remedy, text=error.text, position=error.position
        ) from None
    wide = _wide_steps(tree)
    if wide > WIDE_STEPS_MAX:
        raise BadTopicQuery(
            f"the XPath expression has {wide} steps such as // and following::",
            remedy=f"Write at most {WIDE_STEPS_MAX}.",
        )
    if cost_ns(tree, LARGEST) > EVALUATION_NS_MAX:
        raise BadTopicQuery(
            "the XPath expression could take too long even for one advertisement",
            remedy="Leave out some of its //, its axes other than child and @, or its predicates.",
        )
    return required_values(tree)


def _check_namespaces(namespaces: tuple[tuple[str, str], ...]) -> None:
    if len(namespaces) > NAMESPACES_MAX:
        raise BadTopicQuery(
            f"the query binds {len(namespaces)} prefixes", remedy=f"Bind at most {NAMESPACES_MAX}."
        )
    for prefix, uri in namespaces:
        if not _PREFIX.fullmatch(prefix) or not _URI.fullmatch(uri):
            raise BadTopicQuery(
                f"the query binds the prefix {prefix[:40]!a} to {uri[:80]!a}",
                remedy="A prefix is a name without colon, bound to the URI of a namespace.",
            )


def _wide_steps(expression: Expression) -> int:
    match expression:
        case Path(start, steps, predicates):
            inside = [*predicates, *(each for step in steps for each in step.predicates)]
            if isinstance(start, Path | Binary | Call):
                inside.append(start)
            own = sum(step.axis in _WIDE for step in steps)
            return own + sum(map(_wide_steps, inside))
        case Binary(_, left, right):
            return _wide_steps(left) + _wide_steps(right)
        case Call(_, arguments):
            return sum(map(_wide_steps, arguments))
        case Literal():
            return 0
