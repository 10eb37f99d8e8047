"""Whether each batch of a run began, on any rank, when all ranks had ended the one before.

    batches_apart.py TRACE...

The traces of all ranks of one machine, whose clock is one.
"""

import json
import sys

begins, ends = {}, {}
for path in sys.argv[1:]:
    with open(path) as text:
        events = json.load(text)["traceEvents"]
    for event in events:
        if event.get("ph") == "X":
            batch = event["args"]["step"]
            begins[batch] = min(begins.get(batch, event["ts"]), event["ts"])
            ends[batch] = max(ends.get(batch, 0), event["ts"] + event["dur"])
overlapping = [batch for batch in begins if batch and begins[batch] < ends[batch - 1]]
if len(begins) < 2 or overlapping:
    sys.exit(f"of {len(begins)} batches, these began before the one before them had ended: {overlapping}")
print(f"{len(begins)} batches, each after the one before")
