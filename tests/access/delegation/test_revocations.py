"""Lists of revoked grants: who may make them, which one counts, and until when."""

from __future__ import annotations

from typing import Any

import pytest
from granting import (
    ALICE,
    BOB,
    HOUR_NS,
    MALLORY,
    NOW_NS,
    NS,
    OWNED,
    OWNER,
    UUID,
    granted,
    id,
    passed_on,
)
from hypothesis import given
from hypothesis import strategies as st

from tocsin.access.delegation import statements
from tocsin.access.delegation.chain import TopicOwner, read_chain
from tocsin.access.delegation.revocations import (
    CLOCK_SKEW_NS,
    LIST_CHARS_MAX,
    REVOCATIONS_KIND,
    REVOKED_MAX,
    RevocationList,
    check_right,
    newer,
    read_revocations,
    sign_revocations,
)
from tocsin.errors import BadSignedStatement, GrantRefused


def listed(number: int = 1, *ids: str, ends_ns: int = NOW_NS + HOUR_NS) -> str:
    revoked = dict.fromkeys(ids, ends_ns)
    return sign_revocations(UUID, number, revoked, OWNER, NOW_NS, NOW_NS + 24 * HOUR_NS)


def read(text: str) -> RevocationList:
    return read_revocations(text, OWNED, NOW_NS)


def test_what_the_owner_revokes_is_refused_and_what_was_made_of_it() -> None:
    known = read(listed(1, id("1")))

    for chain in (granted(), passed_on(granted())):
        right = read_chain(chain, OWNED)
        check_right(right, None, NOW_NS)
        check_right(right, read(listed(1, id("3"))), NOW_NS)
        with pytest.raises(GrantRefused, match=r"link 1 .*revoked"):
            check_right(right, known, NOW_NS)


def test_the_owner_of_another_topic_revokes_nothing_of_this_one() -> None:
    """Mallory lists the id of a link that is not hers, in a list for a topic that is."""
    other = UUID.replace("0123abcd", "99999999")
    revoked = {id("1"): NOW_NS + HOUR_NS}
    text = sign_revocations(other, 9, revoked, MALLORY, NOW_NS, NOW_NS + HOUR_NS)
    hers = read_revocations(text, TopicOwner(other, other, MALLORY.public), NOW_NS)

    with pytest.raises(BadSignedStatement):
        read(text)
    with pytest.raises(AssertionError, match="a list of another topic"):
        check_right(read_chain(granted(), OWNED), hers, NOW_NS)


def test_a_list_by_anybody_else_is_refused() -> None:
    for other in (ALICE, BOB):
        text = sign_revocations(UUID, 1, {}, other, NOW_NS, NOW_NS + HOUR_NS)
        with pytest.raises(BadSignedStatement, match="not signed by"):
            read(text)


def test_a_list_is_of_one_topic() -> None:
    other = UUID.replace("0123abcd", "99999999")

    with pytest.raises(BadSignedStatement, match="about another topic"):
        read_revocations(listed(), TopicOwner(other, other, OWNER.public), NOW_NS)


def test_of_two_lists_the_one_with_the_higher_number_counts_in_whatever_order_they_come() -> None:
    first, second = read(listed(1, id("1"))), read(listed(2, id("1"), id("2")))

    assert newer(None, first) is first
    assert newer(first, second) is second
    assert newer(second, second) is None
    with pytest.raises(BadSignedStatement, match="the list with 2 is known"):
        newer(second, first)
    # Two lists with one number: the first one stays, whatever the second takes back.
    with pytest.raises(BadSignedStatement, match="the number 2"):
        newer(second, read(listed(2)))


def test_no_grant_is_believed_after_the_last_list_has_ended() -> None:
    known = read(listed())

    right = read_chain(granted(expires_ns=NOW_NS + 72 * HOUR_NS), OWNED)
    check_right(right, None, known.expires_ns)
    check_right(right, known, known.expires_ns - 1)
    with pytest.raises(GrantRefused, match="out of date"):
        check_right(right, known, known.expires_ns)


def test_a_list_forgets_what_has_ended_anyway() -> None:
    assert read(listed(1, id("1"), ends_ns=NOW_NS)).ids == frozenset()
    found = read(listed(1, id("1"), ends_ns=NOW_NS + NS))
    assert found.ids == {id("1")}
    assert found.needed_until_ns == NOW_NS + NS


def test_a_list_has_a_largest_size_which_can_be_read() -> None:
    most = [id(str(each)) for each in range(REVOKED_MAX)]

    text = listed(1, *most)

    assert len(text) < LIST_CHARS_MAX
    assert read(text).ids == set(most)
    with pytest.raises(BadSignedStatement, match="at most 1000"):
        listed(1, *most, id("more"))


def test_a_list_of_the_future_is_refused() -> None:
    def dated(ahead_ns: int) -> str:
        now_ns = NOW_NS + ahead_ns
        return sign_revocations(UUID, 1, {}, OWNER, now_ns, now_ns + HOUR_NS)

    read(dated(CLOCK_SKEW_NS))
    with pytest.raises(BadSignedStatement, match="of the future"):
        read(dated(CLOCK_SKEW_NS + NS))


@pytest.mark.parametrize(
    "changed",
    [
        {"num": 0},
        {"num": 2**70},
        {"iat": 10, "exp": 10},
        {"exp": 2**62},
        {"ids": {"x": 1}},
        {"ids": {id("1"): -1}},
        {"ids": {id("1"): 2**62}},
        {"ids": ["x"]},
        {"ids": None},
        {"other": 1},
    ],
)
def test_a_list_that_is_malformed_is_refused(changed: dict[str, Any]) -> None:
    said = {"top": UUID, "num": 1, "iat": 1, "exp": 2, "ids": {}}
    read(statements.sign(REVOCATIONS_KIND, said, OWNER))

    with pytest.raises(BadSignedStatement):
        read(statements.sign(REVOCATIONS_KIND, said | changed, OWNER))


@given(text=st.text(max_size=100))
def test_whatever_comes_as_a_list_is_refused_in_one_way(text: str) -> None:
    with pytest.raises(BadSignedStatement):
        read(text)
