#!/usr/bin/env python3
"""A GPT trains on four unequal workers of this machine; run by scripts/quickstart.

Each step is a command line that is printed before it runs, so that it can be
repeated by hand: plan and compile, measure beside the best symmetric plan,
train and save, resume under another plan.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import time
from typing import List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BIN, PYTHON = os.path.join(ROOT, "build", "bin"), os.path.join(ROOT, "python")
BEGIN = time.monotonic()
UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def say(text: str) -> None:
    print(f"[quickstart {time.monotonic() - BEGIN:4.0f}s] {text}", flush=True)


def run(*command: str) -> str:
    """Runs a command line, shows it, its warnings, and its whole output where it fails."""
    print("    $ " + shlex.join(command), flush=True)
    environment = {**os.environ, "PATH": BIN + os.pathsep + os.environ.get("PATH", ""), "PYTHONPATH": PYTHON}
    finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, env=environment)
    if finished.returncode:
        print(finished.stdout)
        sys.exit(f"quickstart: error: exit {finished.returncode}: {shlex.join(command)}")
    for line in finished.stdout.splitlines():
        if "warning: " in line:
            print(f"    {line}", flush=True)
    return finished.stdout


def column(path: str, key: str) -> List[float]:
    with open(path) as lines:
        return [line[key] for line in map(json.loads, lines) if key in line]


def predicted_s(compile_output: str) -> Optional[float]:
    """Of the line `simulated: 12.3 ms a step of the programs`."""
    found = re.search(r"^simulated: ([\d.]+) (\S+) a step", compile_output, re.MULTILINE)
    return float(found[1]) * UNITS[found[2]] if found else None


def shapes(folder: str) -> str:
    """One line a replica of a plan: its stages, devices and share of the batch."""
    with open(os.path.join(folder, "plan.json")) as text:
        plan = json.load(text)
    lines = []
    for number, replica in enumerate(plan["replicas"]):
        stages = " -> ".join("%s on %s" % (" ".join(s["units"]), "+".join(s["devices"])) for s in replica["stages"])
        samples = replica["microbatch_size"] * replica["microbatches"]
        lines.append(f"  replica {number}: {samples} samples a step; {stages}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", default=os.path.join(ROOT, "examples", "clusters", "four-workers.yaml"))
    parser.add_argument("--out", default="out/quickstart")
    parser.add_argument("--global-batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=40, help="of training, before the plan is changed")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each plan, in turn")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    tokens = os.path.join(options.out, "text.bin")
    best, symmetric = (os.path.join(options.out, name) for name in ("best", "symmetric"))
    saved = os.path.join(options.out, "checkpoints")

    say("the tools, for whoever repeats a command of these")
    print(f"    $ export PATH={shlex.quote(BIN)}:$PATH PYTHONPATH={shlex.quote(PYTHON)}", flush=True)
    say("data: a text that every Debian machine has, its bytes as tokens")
    texts = sorted(glob.glob("/usr/share/common-licenses/*"))
    texts = [path for path in texts if os.path.isfile(path) and not os.path.islink(path)]
    run(sys.executable, "-m", "autohet.tokenize", "--bytes", *texts, "-o", tokens)

    compile_options = [
        "autohet-compile", os.path.join(HERE, "model.onnx"), "--cluster", options.cluster,
        f"--global-batch={options.global_batch}", "--optimizer=adamw",
    ]  # fmt: skip
    say("plan and compile")
    planned = {best: run(*compile_options, "-o", best)}
    print(planned[best].rstrip())
    say("the best symmetric plan, to compare with")
    planned[symmetric] = run(*compile_options, "--planner=symmetric", "-o", symmetric)

    data = ["--data", tokens, "--data-dtype=uint16", "--emulate", "--lr=1e-3"]
    metrics = os.path.join(options.out, "metrics.jsonl")
    say(f"measure both plans, in turn, {options.rounds} times")
    times = {best: [], symmetric: []}
    for _ in range(options.rounds):
        for program in times:
            run("autohet-run", program, "--steps=6", *data, "--metrics", metrics)
            times[program].append(statistics.median(column(metrics, "step_time_s")[1:]))

    say(f"train {options.steps} steps and save")
    trace = os.path.join(options.out, "trace.json")
    for path in glob.glob(os.path.join(saved, "step-*")):
        subprocess.run(["rm", "-rf", path], check=True)
    train = [*data, "--checkpoint", saved, "--metrics", metrics]
    run("autohet-run", best, f"--steps={options.steps}", *train, "--trace", trace)
    losses = column(metrics, "loss")
    say("resume under another plan: the symmetric one")
    more = options.steps + options.steps // 2
    run("autohet-run", symmetric, f"--steps={more}", *train, "--resume")
    resumed = column(metrics, "loss")

    first, last, end = losses[0], losses[-1], resumed[-1]
    measured = {program: statistics.median(seconds) for program, seconds in times.items()}
    # Of runs side by side: what the machine does meanwhile touches both.
    ratios = [slow / fast for slow, fast in zip(times[symmetric], times[best])]
    say("done")
    print("\nplan:")
    print(shapes(best))
    print("best symmetric plan:")
    print(shapes(symmetric))
    for label, program in (("this plan", best), ("symmetric", symmetric)):
        prediction = predicted_s(planned[program])
        text = f"{prediction * 1e3:8.1f} ms predicted" if prediction else "no prediction"
        print(f"step time, {label}: {text}, {measured[program] * 1e3:8.1f} ms measured (median of {len(times[program])})")
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"speed-up over the best symmetric plan: {statistics.median(ratios):.2f} (median of {len(ratios)} pairs, {spread})")
    print(f"loss: {first:.3f} at the start, {last:.3f} after {options.steps} steps, {end:.3f} after {more}, resumed")
    print(f"report: {os.path.join(best, 'report.html')}")
    print(f"trace:  {', '.join(sorted(glob.glob(os.path.join(options.out, 'trace*.json'))))} (open in ui.perfetto.dev)")
    if not last < 0.9 * first or not end < last * 1.05:
        sys.exit("quickstart: error: the loss did not fall as it should")


if __name__ == "__main__":
    main()
