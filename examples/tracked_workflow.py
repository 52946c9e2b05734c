# /// script
# requires-python = ">=3.11"
# dependencies = ["tocsin"]
# ///
"""A small forecast that tells a broker what it does: `python examples/tracked_workflow.py`."""

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tocsin.client.tracking import Workflow

STATIONS = ["akron", "dayton", "toledo"]


def smooth(run, raw, station):
    with run.activity("smooth", id=f"smooth-{station}", parents=["fetch"], inputs=[raw]) as step:
        time.sleep(0.2)
        step.progress(1.0)
        return sum(raw.read_bytes()) % 100


with tempfile.TemporaryDirectory() as work, Workflow("forecast", version="1") as run:
    raw = Path(work) / "raw"
    run.plan(counts={"fetch": 1, "smooth": len(STATIONS), "publish": 1}, cores=2)
    for step in run.attempts("fetch", tries=3, id="fetch", outputs=[raw]):
        with step:
            raw.write_bytes(b"radar" * 1000)
            if step.step.attempt == 1:
                raise OSError("the radar did not answer")
    with ThreadPoolExecutor(2) as pool:
        values = list(pool.map(lambda station: smooth(run, raw, station), STATIONS))
    with run.activity("publish", parents=[f"smooth-{station}" for station in STATIONS]) as step:
        step.milestone("published", values=values)

print("run", run.run_id)
print(run.outbox.counts)
