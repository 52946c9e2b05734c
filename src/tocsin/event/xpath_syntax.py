"""XPath 1.0 as a tree, read for what it would cost and what it needs; lxml evaluates the text.

Read strictly by the grammar of the recommendation. What lxml would only notice while evaluating,
because a part is not reached at first, is refused here: variables, prefixes that are not bound,
functions that are none of the core library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.errors import BadFilter

EXPRESSION_CHARS_MAX = 2_048  # people write about 60
EXPRESSION_DEPTH_MAX = 16  # parentheses, brackets and calls inside each other
EXPRESSION_PARTS_MAX = 256  # steps, operators, calls and values

FUNCTIONS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("last", "position", "true", "false"), (0, 0)),
    **dict.fromkeys(("local-name", "namespace-uri", "name", "string", "number"), (0, 1)),
    **dict.fromkeys(("string-length", "normalize-space"), (0, 1)),
    **dict.fromkeys(("count", "id", "boolean", "not", "lang", "sum"), (1, 1)),
    **dict.fromkeys(("floor", "ceiling", "round"), (1, 1)),
    **dict.fromkeys(("starts-with", "contains", "substring-before", "substring-after"), (2, 2)),
    "substring": (2, 3),
    "translate": (3, 3),
    "concat": (2, EXPRESSION_PARTS_MAX),
}
AXES = frozenset(
    {"ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self"}
    | {"following", "following-sibling", "namespace", "parent", "preceding", "preceding-sibling"}
    | {"self"}
)
NODE_TYPES = frozenset({"comment", "text", "processing-instruction", "node"})
_LEVELS = (("or",), ("and",), ("=", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "div", "mod"))
_WORD_OPERATORS = frozenset({"and", "or", "div", "mod"})

_NAME = r"[^\W\d][\w.\-\u00b7]*"
_TOKEN = re.compile(
    rf"""(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<literal>"[^"]*"|'[^']*')
    |(?P<variable>\${_NAME}(?::{_NAME})?)
    |(?P<name>{_NAME}(?::(?!:)(?:{_NAME}|\*))?|\*)
    |(?P<sign>::|\.\.|//|!=|<=|>=|[()\[\].@,/|+\-=<>])""",
    re.VERBOSE,
)
_SPACE = re.compile(r"[ \t\r\n]*")
# After one of these a name is a name, and a star is every name; else they are operators.
_BEFORE_OPERAND = frozenset(
    {"@", "::", "(", "[", ",", "/", "//", "|", *(sign for level in _LEVELS for sign in level)}
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A text or a number."""

    text: str
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """`axis::test[predicate]...`; the test as written, without its prefix if it has one."""

    axis: str
    test: str
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the context node (None), from the root ("/"), or from what an expression finds."""

    start: Expression | str | None
    steps: tuple[Step, ...]
    predicates: tuple[Expression, ...] = ()  # of the start, where that is an expression


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the core library."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions and what stands between them."""

    operator: str
    left: Expression
    right: Expression


Expression = Literal | Path | Call | Binary


def parse_xpath(text: str, prefixes: frozenset[str] = frozenset()) -> Expression:
    """The tree of the expression; BadFilter says what is wrong with it, and where."""
    if len(text) > EXPRESSION_CHARS_MAX:
        raise _refused(
            f"the XPath expression has {len(text)} characters",
            remedy=f"Write at most {EXPRESSION_CHARS_MAX}.",
        )
    reader = _Reader(text, _tokens(text), prefixes)
    found = reader.binary(0)
    if reader.here:
        raise reader.unexpected()
    return found


def finds_nodes(expression: Expression) -> bool:
    """True if its value is a set of nodes."""
    match expression:
        case Path():
            return True
        case Call(name):
            return name == "id"
        case Binary(operator):
            return operator == "|"
    return False


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = _SPACE.match(text).end()  # type: ignore[union-attr]  # it also fits nothing
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _refused(
                f"the XPath expression has {text[at]!r}, which is not valid XPath there",
                text=text,
                at=at,
            )
        kind = str(found.lastgroup)
        before = tokens[-1] if tokens else _Token("sign", "(", 0)
        is_operand_next = before.kind == "sign" and before.text in _BEFORE_OPERAND
        if kind == "name" and not is_operand_next and found[0] in {*_WORD_OPERATORS, "*"}:
            kind = "sign"
        tokens.append(_Token(kind, found[0], at))
        at = _SPACE.match(text, found.end()).end()  # type: ignore[union-attr]
    return tokens


def _refused(problem: str, *, remedy: str = "", text: str = "", at: int = 0) -> BadFilter:
    return BadFilter(
        problem,
        remedy=remedy or "Write an XPath 1.0 expression, as in /order[total > 100].",
        text=text,
        position=at,
    )


class _Reader:
    """A place between tokens, and one method for each rule of the grammar."""

    def __init__(self, text: str, tokens: list[_Token], prefixes: frozenset[str]) -> None:
        self.text = text
        self.prefixes = prefixes
        # Two ends: some rules look one token further.
        self._tokens = [*tokens, *[_Token("end", "", len(text))] * 2]
        self._next = 0
        self._depth = 0
        self._parts = 0

    @property
    def here(self) -> str:
        return self._tokens[self._next].text

    def binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._negated()
        found = self.binary(level + 1)
        while self._is_sign(*_LEVELS[level]):
            operator = self._take()
            found = Binary(operator, found, self.binary(level + 1))
        return found

    def unexpected(self) -> BadFilter:
        here = self.here[:40]
        return self.refused(
            f"found {here!r} where the XPath expression needs something else"
            if here
            else "the XPath expression ends too early"
        )

    def refused(self, problem: str, remedy: str = "") -> BadFilter:
        at = self._tokens[self._next].at
        return _refused(problem, remedy=remedy, text=self.text, at=at)

    def _negated(self) -> Expression:
        signs = 0
        while self._is_sign("-"):
            self._take()
            signs += 1
        found = self._path()
        while self._is_sign("|"):
            self._take()
            found = self._union(found, self._path())
        return Binary("-", Literal("0", is_number=True), found) if signs else found

    def _union(self, left: Expression, right: Expression) -> Expression:
        if not (finds_nodes(left) and finds_nodes(right)):
            raise self.refused("only sets of nodes can be joined with |")
        return Binary("|", left, right)

    def _path(self) -> Expression:
        if self._is_sign("/"):
            self._take()
            return Path("/", self._steps() if self._starts_step() else ())
        if self._is_sign("//"):
            return Path("/", self._steps())
        if self._starts_step():
            return Path(None, self._steps())
        start = self._primary()
        predicates = self._predicates()
        steps: tuple[Step, ...] = ()
        if self._is_sign("/"):
            self._take()
            steps = self._steps()
        elif self._is_sign("//"):
            steps = self._steps()
        if not (steps or predicates):
            return start
        if not finds_nodes(start):
            raise self.refused("only a set of nodes can have predicates and steps")
        return Path(start, steps, predicates)

    def _starts_step(self) -> bool:
        token = self._tokens[self._next]
        if token.kind == "name":
            is_call = self._tokens[self._next + 1].text == "(" and token.text not in NODE_TYPES
            return not is_call
        return token.kind == "sign" and token.text in {".", "..", "@"}

    def _steps(self) -> tuple[Step, ...]:
        """From here on, where a first // may still stand."""
        steps: list[Step] = []
        while True:
            if self._is_sign("//"):
                self._take()
                steps.append(Step("descendant-or-self", "node()"))
            steps.append(self._step())
            if self._is_sign("/"):
                self._take()
            elif not self._is_sign("//"):
                return tuple(steps)

    def _step(self) -> Step:
        self._count()
        if self._is_sign(".", ".."):
            return Step("self" if self._take() == "." else "parent", "node()")
        axis = "child"
        if self._is_sign("@"):
            self._take()
            axis = "attribute"
        elif self._tokens[self._next + 1].text == "::":
            if self.here not in AXES:
                raise self.refused(f"XPath has no axis {self.here[:40]!r}")
            axis = self._take()
            self._take()
        if self._tokens[self._next].kind != "name":
            raise self.unexpected()
        test = self._node_test()
        return Step(axis, test, self._predicates())

    def _node_test(self) -> str:
        if self.here in NODE_TYPES and self._tokens[self._next + 1].text == "(":
            kind = self._take()
            self._take()
            if kind == "processing-instruction" and self._tokens[self._next].kind == "literal":
                self._take()
            self._expect(")")
            return f"{kind}()"
        prefix, colon, local = self.here.rpartition(":")
        if colon and prefix not in self.prefixes:
            raise self.refused(
                f"the prefix {prefix[:40]!r} is bound to no namespace",
                remedy='Bind it in "namespaces", or where the expression is sent from.',
            )
        self._take()
        return local

    def _predicates(self) -> tuple[Expression, ...]:
        found: list[Expression] = []
        while self._is_sign("["):
            self._take()
            found.append(self._inside())
            self._expect("]")
        return tuple(found)

    def _primary(self) -> Expression:
        token = self._tokens[self._next]
        self._count()
        match token.kind:
            case "literal":
                return Literal(self._take()[1:-1])
            case "number":
                return Literal(self._take(), is_number=True)
            case "variable":
                raise self.refused(
                    f"the variable {token.text[:40]} has no value here",
                    remedy="Write the value itself.",
                )
            case "name" if self._tokens[self._next + 1].text == "(":
                return self._call()
        if not self._is_sign("("):
            raise self.unexpected()
        self._take()
        found = self._inside()
        self._expect(")")
        return found

    def _call(self) -> Call:
        name = self.here
        if name not in FUNCTIONS:
            raise self.refused(
                f"XPath 1.0 has no function {name[:40]}()",
                remedy=f"It has: {', '.join(FUNCTIONS)}.",
            )
        self._take()
        self._take()
        arguments: list[Expression] = []
        while not self._is_sign(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._inside())
        least, most = FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            raise self.refused(f"{name}() does not take {len(arguments)} arguments")
        if name in {"count", "sum"} and not finds_nodes(arguments[0]):
            raise self.refused(f"{name}() takes a set of nodes")
        if name in {"name", "local-name", "namespace-uri"} and not all(map(finds_nodes, arguments)):
            raise self.refused(f"{name}() takes a set of nodes")
        self._take()
        return Call(name, tuple(arguments))

    def _inside(self) -> Expression:
        self._depth += 1
        if self._depth > EXPRESSION_DEPTH_MAX:
            raise self.refused(
                f"the XPath expression is nested more than {EXPRESSION_DEPTH_MAX} deep",
                remedy="Write a flatter one.",
            )
        found = self.binary(0)
        self._depth -= 1
        return found

    def _is_sign(self, *signs: str) -> bool:
        token = self._tokens[self._next]
        return token.kind == "sign" and token.text in signs

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next += 1
        return token.text

    def _expect(self, sign: str) -> None:
        if not self._is_sign(sign):
            raise self.unexpected()
        self._take()

    def _count(self) -> None:
        self._parts += 1
        if self._parts > EXPRESSION_PARTS_MAX:
            raise self.refused(
                f"the XPath expression has more than {EXPRESSION_PARTS_MAX} parts",
                remedy="Make several subscriptions.",
            )
