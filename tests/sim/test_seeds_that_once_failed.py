"""Seeds that once failed, each named for what it found.

A seed is the same run only while the simulator draws the same. What each found is therefore also
tested in a few steps that do not depend on it: most in tests/broker/test_found_by_simulation.py,
what is of discovery in tests/overlay and tests/services/link, and what was wrong in a check in the
tests of that check.
"""

from __future__ import annotations

import pytest

from tocsin.sim.run import run_seed

FOUND = {
    58: "a reliable sequence expired while the clock was in doubt",
    136: "a change asked during a deletion brought the subscription back after a crash",
    151: "a dead letter dropped while it was sent again was counted off twice",
    176: "a watched result that came again by a new link was taken for one that nobody asked for",
    318: "a blocked stream whose waiting events were all dropped was never caught up",
    330: "a handshake that ended while a new sink was written put the old one back on disk",
    572: "a handshake that ended while a new filter was written put the old one back on disk",
    857: "a time far ahead that no event had let the next one be stamped too early",
    978: "the limit of attempts changed in the commit that stored the event",
    1232: "retention went past a subscription that began in the same commit",
    1283: "the former sink's consent was taken for the new one's",
    1377: "a sink out of reach turned waiting for consent into a pause, and resuming into consent",
    1402: "a dead letter was sent to a sink that had not agreed",
    1422: "retention looked while a subscription was written, and went past it",
    1794: "a clock that was days behind from the first start on was taken for a right one",
    1486: "a time-out at the former sink was taken for what became of a push to the new one",
    3122: "a pause was answered whose commit still said that the sink had not agreed",
    3992: "a simulated broker that was stopping began its links, and said what it could not save",
    6581: "the time of day was lost with a commit that a full disk refused, and no jump was seen",
    7341: "a subscription held, by way of a wider one, where its broker's place was not known",
    1528: "a commit that a reader saw before the broker was told of it was handed on twice",
    4663: "direct results were left on a connection to a broker that had crashed meanwhile",
    9616: "the same, of a connection that had broken and nothing had said so",
    6967: "an answer that was for nobody else was shared by a broker whose clock was behind",
}


@pytest.mark.parametrize("seed", FOUND, ids=lambda seed: FOUND[seed].replace(" ", "-"))
def test_it_fails_no_more(seed: int) -> None:
    report = run_seed(seed)

    assert report.ok, f"once: {FOUND[seed]}\n{report.failure}"
