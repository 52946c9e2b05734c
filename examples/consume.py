# /// script
# requires-python = ">=3.11"
# dependencies = ["tocsin"]
# ///
"""Consume the first events of the log: `python examples/consume.py 10 'topic lead/**'`."""

import sys

from tocsin.client import Consumer

count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
wanted = sys.argv[2] if len(sys.argv) > 2 else "topic lead/**"

# after=0 begins with the oldest event kept; without it, only what comes from now on.
# via="box" would have the broker keep events while this program is away.
with Consumer(wanted, after=0, timeout_s=10) as events:
    for number, event in enumerate(events, 1):
        print(event.seq, event.topic, event.data)
        if number == count:
            break
