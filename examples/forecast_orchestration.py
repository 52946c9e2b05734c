# /// script
# requires-python = ">=3.11"
# dependencies = ["tocsin"]
# ///
"""A forecast whose steps are started by the notifications of the steps before.

`python examples/forecast_orchestration.py ann`, with a broker running (`tocsin serve`). Each run
has a topic of its own, so many users may run it at once; a catalogue and a monitor listen.
"""

import os
import sys
import tempfile
from pathlib import Path

from forecast.engine import own_topic, run_forecast

broker = os.environ.get("TOCSIN_BROKER", "http://127.0.0.1:8400")
topic = own_topic(sys.argv[1] if len(sys.argv) > 1 else "ann", "forecast")
print("topic", topic)

with tempfile.TemporaryDirectory() as directory:
    report = run_forecast(broker, topic, Path(directory))
    for line in report.monitor:
        print("monitor:", line)
    for step, output in report.catalogue.items():
        print("catalogue:", step, Path(output).read_text())
if report.failed:
    sys.exit(f"failed: {report.failed}")
