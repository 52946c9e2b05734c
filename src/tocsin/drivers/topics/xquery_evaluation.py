"""XQuery 3.1 over one document after the other, by Saxon.

Saxon would read files, addresses and the environment for whoever writes a query. Both properties
set here are needed, and what they do is tested (`tests/topics/test_xquery_locks.py`).
"""

from __future__ import annotations

import re
from math import isnan
from typing import Any

from saxonche import PySaxonApiError, PySaxonProcessor

from tocsin.drivers.topics.xpath_evaluation import Evaluation, NotAnExpression

_LOCKS = {
    "http://saxon.sf.net/feature/allowedProtocols": "",
    "http://saxon.sf.net/feature/allow-external-functions": "off",
}
_STATIC = re.compile(r"\b(X[PQ]ST\d{4})\s+(.*)")  # errors that are in the query itself
_PROBLEM_CHARS_MAX = 200
_XS = "Q{http://www.w3.org/2001/XMLSchema}"
_TEXTS = frozenset({f"{_XS}string", f"{_XS}untypedAtomic", f"{_XS}anyURI"})
_NUMBERS = frozenset({f"{_XS}integer", f"{_XS}decimal", f"{_XS}double", f"{_XS}float"})


class XQueryEngine:
    """Saxon, which a process starts once."""

    def __init__(self) -> None:
        self._processor = PySaxonProcessor(license=False)
        for name, value in _LOCKS.items():
            self._processor.set_configuration_property(name, value)

    def evaluation(self, query: str) -> Evaluation:
        """Whether the value of the query is true for the root element of a document: nodes, a
        text that is not empty, a number but zero, or true. It is not, where evaluation fails."""
        processor = self._processor
        compiled = processor.new_xquery_processor()
        compiled.set_query_content(query)

        def evaluate(document: bytes) -> bool:
            root = processor.parse_xml(xml_text=document.decode()).children[0]
            compiled.set_context(xdm_item=root)
            try:
                return _is_true(compiled.run_query_to_value())
            except PySaxonApiError as error:
                static = _STATIC.search(str(error))
                if static is None:
                    return False
                problem = f"{static[1]} {static[2]}"[:_PROBLEM_CHARS_MAX]
                raise NotAnExpression(problem) from None

        return evaluate


def _is_true(value: Any) -> bool:
    if value is None or value.size == 0:
        return False
    item = value.item_at(0)
    if value.size > 1 or not item.is_atomic:
        return True
    atomic = item.get_atomic_value()
    kind = atomic.primitive_type_name
    if kind == f"{_XS}boolean":
        return bool(atomic.boolean_value)  # of anything else it may end the process
    text = str(item.string_value)
    if kind in _NUMBERS:
        number = float(text)
        return number != 0 and not isnan(number)
    return text != "" or kind not in _TEXTS
