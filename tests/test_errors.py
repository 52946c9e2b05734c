"""Every error has a code of its own, and words for the person who meets it."""

from __future__ import annotations

import re

from tocsin.errors import BadFilter, catalogue


def test_every_code_is_one_of_a_kind_and_explained() -> None:
    errors = catalogue()

    assert len(errors) > 20
    for code, error in errors.items():
        assert re.fullmatch(r"T\d{3}", code)
        assert error.__doc__
        assert error.__doc__.strip().endswith(".")
        assert 400 <= error.http_status < 600
        assert error.exit_code in {1, 2, 3, 4, 5, 6, 7}


def test_an_error_says_what_happened_its_code_and_what_to_do() -> None:
    error = BadFilter("an operator is missing", remedy="Write a = 5.", text="a 5", position=2)

    assert str(error) == "an operator is missing [T104]. Write a = 5."
    assert error.pointed() == "a 5\n  ^"
