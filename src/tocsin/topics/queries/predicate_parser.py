"""Text -> tree of a predicate, in the language of message selectors (JMS 2.0, 3.8.1).

NOT binds tighter than AND, and AND tighter than OR. There are no statements, tables, functions or
subqueries to be had: what is no predicate on properties does not parse.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Final, NoReturn

from tocsin.errors import BadTopicQuery
from tocsin.topics.queries.predicate_tokens import REMEDY, Kind, Token, tokens_of
from tocsin.topics.queries.predicate_tree import (
    And,
    Arithmetic,
    Comparison,
    Constant,
    Flag,
    Likeness,
    Membership,
    Missing,
    Negative,
    Not,
    Or,
    Predicate,
    Property,
    Value,
)

TEXT_CHARS_MAX: Final = 1_024
DEPTH_MAX: Final = 16  # of parentheses, NOT and - inside each other
PARTS_MAX: Final = 64  # values, comparisons and operators
PATTERN_CHARS_MAX: Final = 64

_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})


def parse_predicate(text: str) -> Predicate:
    """The tree of the predicate, or BadTopicQuery with the place where it stops making sense."""
    if len(text) > TEXT_CHARS_MAX:
        raise BadTopicQuery(
            f"the predicate has {len(text)} characters",
            remedy=f"Write at most {TEXT_CHARS_MAX}.",
        )
    return _Parser(text).whole()


class _Parser:
    """Where we are in the tokens, how deep, and how many parts were made."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._at = 0
        self._depth = 0
        self._parts = 0

    def whole(self) -> Predicate:
        found = self._truth(self._or())
        if self._token.kind is not Kind.END:
            self._fail(f"{self._token.text[:40]!a} does not belong here")
        return found

    # Logic. A value in parentheses looks like a predicate in parentheses at first, so each of these
    # may also return a value, which `_truth` refuses where only a predicate makes sense.

    def _or(self) -> Predicate | Value:
        first = self._and()
        if not self._is(Kind.KEYWORD, "OR"):
            return first
        operands = [self._truth(first)]
        while self._takes(Kind.KEYWORD, "OR"):
            operands.append(self._truth(self._and()))
        return Or(tuple(operands))

    def _and(self) -> Predicate | Value:
        first = self._not()
        if not self._is(Kind.KEYWORD, "AND"):
            return first
        operands = [self._truth(first)]
        while self._takes(Kind.KEYWORD, "AND"):
            operands.append(self._truth(self._not()))
        return And(tuple(operands))

    def _not(self) -> Predicate | Value:
        if self._takes(Kind.KEYWORD, "NOT"):
            self._deeper()
            operand = self._truth(self._not())
            self._depth -= 1
            return Not(operand)
        return self._test()

    def _truth(self, found: Predicate | Value) -> Predicate:
        match found:
            case Property(name):
                return Flag(name)
            case Constant(bool() as value):
                return Comparison("=", Constant(value), Constant(True))
            case Constant() | Arithmetic() | Negative():
                self._fail("a value stands where a condition is needed")
        return found

    # Tests of values

    def _test(self) -> Predicate | Value:
        left = self._sum()
        token = self._token
        if token.kind is Kind.SIGN and token.text in _COMPARISONS:
            self._at += 1
            return self._compared(token, self._value(left), self._value(self._sum()))
        if token.kind is not Kind.KEYWORD:
            return left
        if self._takes(Kind.KEYWORD, "IS"):
            return self._null(left, token)
        is_negated = self._is(Kind.KEYWORD, "NOT")
        following = self._tokens[self._at + is_negated]
        if following.kind is not Kind.KEYWORD or following.text not in {"BETWEEN", "IN", "LIKE"}:
            return left
        self._at += 1 + is_negated
        found: Predicate
        match following.text:
            case "BETWEEN":
                found = self._between(self._value(left), following)
            case "IN":
                found = self._in(self._value(left), following)
            case _:
                found = self._like(left, following)
        return Not(found) if is_negated else found

    def _compared(self, sign: Token, left: Value, right: Value) -> Comparison:
        self._count()
        kinds = kinds_of(left) & kinds_of(right)
        if sign.text not in {"=", "<>"}:
            kinds = kinds - {"flag"}
        if not kinds:
            self._fail(f"{sign.text} cannot compare these two", at=sign.position)
        return Comparison(sign.text, left, right)

    def _null(self, left: Predicate | Value, token: Token) -> Predicate:
        is_negated = self._takes(Kind.KEYWORD, "NOT")
        if not self._takes(Kind.KEYWORD, "NULL") or not isinstance(left, Property):
            self._fail("IS tests whether a property IS NULL or IS NOT NULL", at=token.position)
        self._count()
        return Not(Missing(left.name)) if is_negated else Missing(left.name)

    def _between(self, value: Value, token: Token) -> Predicate:
        low = self._value(self._sum())
        if not self._takes(Kind.KEYWORD, "AND"):
            self._fail("BETWEEN needs two ends", "Write x BETWEEN 1 AND 5.")
        high = self._value(self._sum())
        at_least = Token(Kind.SIGN, ">=", token.position)
        at_most = Token(Kind.SIGN, "<=", token.position)
        return And((self._compared(at_least, value, low), self._compared(at_most, value, high)))

    def _in(self, value: Value, token: Token) -> Predicate:
        if not self._takes(Kind.SIGN, "("):
            self._fail("IN needs a list", "Write x IN ('a', 'b').")
        constants: list[Constant] = []
        while True:
            constant = self._sum()
            if not isinstance(constant, Constant):
                self._fail("a list has texts, numbers or truths alone")
            constants.append(constant)
            if not self._takes(Kind.SIGN, ","):
                break
        if not self._takes(Kind.SIGN, ")"):
            self._fail("a list has no end", "Close it with ).")
        kinds = kinds_of(value)
        for constant in constants:
            kinds = kinds & kinds_of(constant)
        if not kinds:
            self._fail("IN cannot compare these", "Use one kind of value.", at=token.position)
        self._count()
        return Membership(value, tuple(dict.fromkeys(constants)))

    def _like(self, left: Predicate | Value, token: Token) -> Predicate:
        if not isinstance(left, Property):
            self._fail("LIKE tests a property", "Write name LIKE 'lead%'.", at=token.position)
        if self._token.kind is not Kind.STRING:
            self._fail("LIKE needs a text", "Write the pattern between quotes, as in 'lead%'.")
        pattern = self._take().text
        if self._takes(Kind.KEYWORD, "ESCAPE"):
            escape = self._take().text if self._token.kind is Kind.STRING else ""
            if len(escape) != 1 or ("\\" in pattern and escape != "\\"):
                self._fail("ESCAPE needs one character", "Write it as '!', or leave it out for \\.")
            pattern = _with_backslashes(pattern, escape)
        if len(pattern) > PATTERN_CHARS_MAX:
            self._fail("the pattern is too long", f"Use at most {PATTERN_CHARS_MAX} characters.")
        self._count()
        return Likeness(left, pattern)

    # Values

    def _value(self, found: Predicate | Value) -> Value:
        if not isinstance(found, Property | Constant | Arithmetic | Negative):
            self._fail("a condition stands where a value is needed")
        return found

    def _sum(self) -> Predicate | Value:
        return self._calculated(("+", "-"), self._product)

    def _product(self) -> Predicate | Value:
        return self._calculated(("*", "/"), self._signed)

    def _calculated(self, signs: tuple[str, ...], operand: object) -> Predicate | Value:
        assert callable(operand)
        found: Predicate | Value = operand()
        while self._token.kind is Kind.SIGN and self._token.text in signs:
            sign = self._take().text
            left, right = self._number(found), self._number(operand())
            self._count()
            found = Arithmetic(sign, left, right)
        return found

    def _signed(self) -> Predicate | Value:
        if not (self._is(Kind.SIGN, "-") or self._is(Kind.SIGN, "+")):
            return self._atom()
        sign = self._take().text
        self._deeper()
        found = self._number(self._signed())
        self._depth -= 1
        if sign == "+":
            return found
        if isinstance(found, Constant):
            assert isinstance(found.value, float)
            return Constant(-found.value)
        return Negative(found)

    def _number(self, found: Predicate | Value) -> Value:
        value = self._value(found)
        if "number" not in kinds_of(value):
            self._fail("only numbers are added and multiplied")
        return value

    def _atom(self) -> Predicate | Value:
        self._count()
        if self._takes(Kind.SIGN, "("):
            self._deeper()
            found = self._or()
            self._depth -= 1
            if not self._takes(Kind.SIGN, ")"):
                self._fail("')' is missing", "Write ) here.")
            return found
        token = self._token
        match token.kind:
            case Kind.STRING:
                return Constant(self._take().text)
            case Kind.NAME:
                return Property(self._take().text)
            case Kind.NUMBER:
                number = float(token.text)
                if not isfinite(number):
                    self._fail("the number does not fit into a double")
                self._at += 1
                return Constant(number)
            case Kind.KEYWORD if token.text in {"TRUE", "FALSE"}:
                return Constant(self._take().text == "TRUE")
        what = f"{token.text[:40]!a}" if token.text else "the end"
        return self._fail(f"a value is missing before {what}", "Write a property or a value.")

    # The tokens

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

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._fail("the predicate nests too deeply", f"Nest at most {DEPTH_MAX} levels.")

    def _count(self) -> None:
        self._parts += 1
        if self._parts > PARTS_MAX:
            self._fail("the predicate has too many parts", f"Use at most {PARTS_MAX}.")

    def _fail(self, problem: str, remedy: str = REMEDY, at: int | None = None) -> NoReturn:
        position = self._token.position if at is None else at
        raise BadTopicQuery(problem, remedy=remedy, text=self._text, position=position)


def kinds_of(value: Value) -> frozenset[str]:
    """As what it can be compared."""
    match value:
        case Property():
            return frozenset({"number", "text", "flag"})
        case Constant(bool()):
            return frozenset({"flag"})
        case Constant(str()):
            return frozenset({"text"})
    return frozenset({"number"})


def _with_backslashes(pattern: str, escape: str) -> str:
    """The pattern with a backslash before each % and _ that means itself."""
    pieces = re.findall(rf"{re.escape(escape)}(.)|(.)", pattern, re.DOTALL)
    return "".join(f"\\{one}" if one and one in "%_" else one or other for one, other in pieces)
