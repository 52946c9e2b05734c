"""Text -> tree, by precedence climbing (specification, 2 and 3.6).

AND, OR and XOR have one precedence and are taken from the left, as the specification says, and
unlike SQL; NOT binds tighter than a comparison. Parentheses make either clear.
"""

from __future__ import annotations

from typing import NoReturn

from tocsin.errors import BadFilter
from tocsin.event.cesql import functions
from tocsin.event.cesql.tokens import Kind, Token, tokens_of
from tocsin.event.cesql.tree import (
    RANK_OF,
    Attribute,
    Call,
    Exists,
    In,
    Like,
    Literal,
    Minus,
    Negation,
    Node,
    Rank,
    Row,
)
from tocsin.event.cesql.values import INT32_MAX, INT32_MIN

TEXT_CHARS_MAX = 8192
DEPTH_MAX = 32
NODES_MAX = 512

_TIGHTER = {Rank.LOGIC: Rank.COMPARISON, Rank.COMPARISON: Rank.SUM, Rank.SUM: Rank.PRODUCT}


def parse(text: str) -> Node:
    """The tree of the expression, or BadFilter with the place where it stops making sense."""
    if len(text) > TEXT_CHARS_MAX:
        raise BadFilter(
            f"the expression has {len(text)} characters",
            remedy=f"Write at most {TEXT_CHARS_MAX}; a list of filters is joined by and.",
            text=text,
            position=TEXT_CHARS_MAX,
        )
    return _Parser(text).whole()


class _Parser:
    """Where we are in the tokens, how deep, and how many nodes were made."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._at = 0
        self._depth = 0
        self._nodes = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._token.kind is not Kind.END:
            self._fail(f"{self._token.text!r} does not belong here", "Join parts by AND or OR.")
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._token
        self._at += 1
        return token

    def _is(self, kind: Kind, text: str) -> bool:
        return self._token.kind is kind and self._token.text == text

    def _takes(self, kind: Kind, text: str) -> bool:
        found = self._is(kind, text)
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._takes(Kind.SIGN, sign):
            self._fail(f"{sign!r} is missing", f"Write {sign} here.")

    def _fail(self, problem: str, remedy: str, position: int | None = None) -> NoReturn:
        raise BadFilter(
            problem,
            remedy=remedy,
            text=self._text,
            position=self._token.position if position is None else position,
        )

    def _counted(self, node: Node) -> Node:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            self._fail("the expression has too many parts", f"Use at most {NODES_MAX}.")
        return node

    def _expression(self, rank: Rank = Rank.LOGIC) -> Node:
        """Operands joined by operators of this rank; tighter ones are inside the operands."""
        first = self._operand(rank)
        rest: list[tuple[str, Node]] = []
        while self._token.is_binary_operator and RANK_OF[self._token.text] is rank:
            operator = self._take().text
            rest.append((operator, self._counted(self._operand(rank))))
        return self._counted(Row(rank, first, tuple(rest))) if rest else first

    def _operand(self, rank: Rank) -> Node:
        tighter = _TIGHTER.get(rank)
        return self._expression(tighter) if tighter else self._with_suffixes()

    def _with_suffixes(self) -> Node:
        """An operand, and LIKE and IN behind it."""
        node = self._prefixed()
        for _ in range(DEPTH_MAX):
            start = self._at
            is_negated = self._takes(Kind.KEYWORD, "NOT")
            if self._takes(Kind.KEYWORD, "LIKE"):
                node = self._counted(Like(node, self._pattern(), is_negated))
            elif self._takes(Kind.KEYWORD, "IN"):
                node = self._counted(In(node, self._arguments(least=1), is_negated))
            else:
                self._at = start
                return node
        return self._fail("too many LIKE and IN follow each other", f"Use at most {DEPTH_MAX}.")

    def _pattern(self) -> str:
        if self._token.kind is not Kind.STRING:
            self._fail("LIKE needs a string", "Write the pattern between quotes, as in 'lead%'.")
        return self._take().text

    def _prefixed(self) -> Node:
        if self._depth == DEPTH_MAX:
            self._fail("the expression nests too deeply", f"Nest at most {DEPTH_MAX} levels.")
        self._depth += 1
        node = self._counted(self._unary())
        self._depth -= 1
        return node

    def _unary(self) -> Node:
        if self._takes(Kind.KEYWORD, "NOT"):
            return Negation(self._prefixed())
        if self._takes(Kind.KEYWORD, "EXISTS"):
            return Exists(self._attribute_name())
        if self._is(Kind.SIGN, "-") or self._is(Kind.SIGN, "+"):
            return self._signed()
        if self._takes(Kind.SIGN, "("):
            node = self._expression()
            self._expect(")")
            return node
        return self._atom()

    def _signed(self) -> Node:
        sign = self._take().text
        if self._token.kind is Kind.INTEGER:
            return self._integer(sign)
        if sign == "+":
            self._fail("only a number can follow this +", "Leave the + out.")
        return Minus(self._prefixed())

    def _atom(self) -> Node:
        token = self._token
        if token.kind is Kind.INTEGER:
            return self._integer("")
        if token.kind is Kind.STRING:
            return Literal(self._take().text)
        if self._takes(Kind.KEYWORD, "TRUE"):
            return Literal(True)
        if self._takes(Kind.KEYWORD, "FALSE"):
            return Literal(False)
        if token.kind is Kind.NAME:
            following = self._tokens[self._at + 1]
            is_call = following.kind is Kind.SIGN and following.text == "("
            return self._call() if is_call else Attribute(self._attribute_name())
        what = f"{token.text!r}" if token.text else "the end"
        return self._fail(f"a value is missing before {what}", "Write an attribute or a value.")

    def _integer(self, sign: str) -> Literal:
        token = self._take()
        digits = token.text.lstrip("0") or "0"
        number = int(sign + digits) if len(digits) <= 10 else INT32_MAX + 1
        if not INT32_MIN <= number <= INT32_MAX:
            self._fail(
                "the number does not fit into 32 bits",
                f"Integers go from {INT32_MIN} to {INT32_MAX}.",
                token.position,
            )
        return Literal(number)

    def _attribute_name(self) -> str:
        token = self._token
        if token.kind not in (Kind.NAME, Kind.INTEGER) or "_" in token.text:
            self._fail(
                "the name of an attribute is missing", "Names are made of letters and digits."
            )
        return self._take().text

    def _call(self) -> Node:
        name = self._take()
        arguments = self._arguments(least=0)
        function = functions.find(name.text, len(arguments))
        if function is None:
            self._fail(
                f"there is no function {name.text[:40]} with {len(arguments)} arguments",
                f"There are: {', '.join(functions.NAMES)}.",
                name.position,
            )
        return Call(function, arguments)

    def _arguments(self, *, least: int) -> tuple[Node, ...]:
        self._expect("(")
        if least == 0 and self._takes(Kind.SIGN, ")"):
            return ()
        arguments = [self._expression()]
        while self._takes(Kind.SIGN, ","):
            arguments.append(self._expression())
        self._expect(")")
        return tuple(arguments)
