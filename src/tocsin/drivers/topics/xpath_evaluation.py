"""XPath 1.0 over one document after the other, by libxml2."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from lxml import etree

from tocsin.safexml import parse

Evaluation = Callable[[bytes], bool]


class NotAnExpression(Exception):
    """It cannot be evaluated, whatever the document."""


@lru_cache(maxsize=16)
def xpath_evaluation(expression: str, namespaces: tuple[tuple[str, str], ...]) -> Evaluation:
    """Whether the expression is true for the root element of a document."""
    try:
        # Without `regexp` there is no re:test, which is Python's re and may take for ever.
        compiled = etree.XPath(
            f"boolean({expression}\n)",
            namespaces=dict(namespaces),
            regexp=False,
            smart_strings=False,
        )
    except (etree.XPathError, ValueError, TypeError) as error:
        raise NotAnExpression(str(error)) from None

    def evaluate(document: bytes) -> bool:
        try:
            return compiled(parse(document)) is True
        except etree.XPathError:  # libxml2 has limits of its own
            return False

    return evaluate
