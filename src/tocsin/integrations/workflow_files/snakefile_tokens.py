"""Tokens of a Snakefile, the same under every version of Python.

From Python 3.12 on the tokenizer gives an f-string in pieces, refuses what was passed on before as
an error among the tokens, and passes on signs that were errors before. Here an f-string is one
token, and what is no Python is refused, with the line where the mistake begins.
"""

from __future__ import annotations

import io
import re
import token
import tokenize
from collections.abc import Iterator
from typing import Final, NoReturn

from tocsin.errors.services import BadWorkflowFile

Place = tuple[int, int]
Token = tuple[int, str, Place]
"""Its kind, its text, and the line and column where it begins."""

_FSTRING_START: Final = getattr(token, "FSTRING_START", -1)
_FSTRING_END: Final = getattr(token, "FSTRING_END", -1)
_PAIRS: Final = {"(": ")", "[": "]", "{": "}"}
_SIGNS: Final = token.EXACT_TOKEN_TYPES.keys() - {"!"}  # which is one in an f-string only
_NAME: Final = re.compile(r"\w+")
_QUOTES: Final = ("'", '"')
_NOT_LINES: Final = frozenset({token.NL, token.COMMENT, token.NEWLINE, token.ENDMARKER})


def read_tokens(text: str, name: str) -> Iterator[Token]:
    """The tokens; BadWorkflowFile says in which line it ceases to be a Snakefile."""
    # As Snakemake opens a file: every end of a line is the same.
    rows = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n")).readlines()
    watch = _Watch(name, rows)
    try:
        for each in _whole(rows):
            if watch.passes(each):
                yield each
    except tokenize.TokenError as error:
        why, (line, _) = error.args
        watch.refuse_end(str(why), line)
    except SyntaxError as error:
        watch.refuse(error.lineno or len(rows), error.msg)
    watch.end()


def _whole(rows: list[str]) -> Iterator[Token]:
    """Tokens with an f-string as one."""
    start: Place | None = None
    depth = 0
    for each in tokenize.generate_tokens(iter([*rows, ""]).__next__):
        if each.type == _FSTRING_START:
            start = each.start if depth == 0 else start
            depth += 1
        elif each.type == _FSTRING_END:
            depth -= 1
            if depth == 0 and start is not None:
                yield token.STRING, _between(rows, start, each.end), start
        elif depth == 0:
            yield each.type, each.string, each.start


def _between(rows: list[str], start: Place, end: Place) -> str:
    (first, left), (last, right) = start, end
    if first == last:
        return rows[first - 1][left:right]
    whole = rows[first - 1 : last]
    return "".join([whole[0][left:], *whole[1:-1], whole[-1][:right]])


class _Watch:
    """Looks for what one version of the tokenizer refuses and another lets pass."""

    def __init__(self, name: str, rows: list[str]) -> None:
        self._name = name
        self._rows = rows
        self._open: list[tuple[str, int]] = []  # brackets, each with its line
        self._margins = [0]
        self._at_begin = True

    def passes(self, each: Token) -> bool:
        """False for a token that says nothing; raises for one that cannot be."""
        kind, text, (line, column) = each
        if kind == token.ERRORTOKEN:
            if text.isspace():
                return False  # what comes behind it is the error
            if text.lstrip("rRbBuUfF").startswith(_QUOTES):
                self.refuse(line, "the text that begins there is not closed")
        if kind in (token.OP, token.ERRORTOKEN) and text not in _SIGNS:
            self.refuse(line, f"{text!r} has no meaning there")
        if kind == token.NAME and not (_NAME.fullmatch(text) and text.isidentifier()):
            self.refuse(line, f"{text!r} is not a name")
        if kind == token.OP:
            self._bracket(text, line)
        self._margin(kind, text, line, column)
        return True

    def _bracket(self, text: str, line: int) -> None:
        if text in _PAIRS:
            self._open.append((text, line))
        elif text in _PAIRS.values() and (not self._open or _PAIRS[self._open.pop()[0]] != text):
            self.refuse(line, f"{text!r} closes nothing that is open")

    def _margin(self, kind: int, text: str, line: int, column: int) -> None:
        """Lines of one block begin alike: eight spaces look like a tab and are none."""
        if kind == token.INDENT:
            if len(text) <= self._margins[-1]:
                self._refuse_margin(line)
            self._margins.append(len(text))
        elif kind == token.DEDENT:
            self._margins.pop()
        elif kind == token.NEWLINE:
            self._at_begin = True
        elif self._at_begin and kind not in _NOT_LINES:
            self._at_begin = False
            # A form feed begins the margin again, as in files for old printers.
            if column != self._margins[-1] and "\f" not in self._rows[line - 1][:column]:
                self._refuse_margin(line)

    def _refuse_margin(self, line: int) -> NoReturn:
        self.refuse(line, "its indentation mixes tabs and spaces")

    def refuse_end(self, why: str, line: int) -> NoReturn:
        """What the tokenizer calls an end where there should be none."""
        if "unterminated" in why or "multi-line string" in why:
            self.refuse(line, "the text that begins there is not closed")
        if self._open:
            self._refuse_open()
        self.refuse(len(self._rows) if "EOF" in why else line, why)

    def end(self) -> None:
        if self._open:
            self._refuse_open()

    def _refuse_open(self) -> NoReturn:
        bracket, line = self._open[-1]
        self.refuse(line, f"the {bracket!r} there is not closed")

    def refuse(self, line: int, why: str) -> NoReturn:
        raise BadWorkflowFile(
            f"{self._name} line {line} is not valid in a Snakefile: {why}",
            remedy="`snakemake --lint` says what is wrong with it.",
        )
