"""No program overwrites what is still read, whatever the timing of streams and messages.

    order_cases.py WORK_FOLDER [--models gpt,llama] [--random N] [--seed S]

Proves it (autohet-opt --exec-verify-order) for the programs of every plan by hand
(plans.py) and of N random ones, in training under each schedule and in inference,
where batches follow one another without a pause. Nothing is run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
from typing import Iterator, List, Tuple

import models
import plans
import random_plans
from harness import Checks, ToolFailed, tool

# mode, schedule, how gradients are exchanged
KINDS = [("inference", "1f1b", "direct"), ("training", "1f1b", "hierarchical"), ("training", "gpipe", "direct")]


def draw_plans(units: List[str], count: int, seed: int) -> Iterator[Tuple[str, dict, str]]:
    """A name, a plan and a cluster file each."""
    for name, replicas in plans.PLANS.items():
        yield name, plans.plan_json(replicas, units, "adamw"), plans.cluster_yaml(plans.device_count(replicas))
    for number in range(count):
        plan, sizes = random_plans.draw_any_plan(random.Random(seed * 1_000_003 + number), units)
        yield f"random {number}", plan, plans.cluster_yaml(sum(sizes), sizes=sizes)


def check(model: str, folder: str, plan: dict, cluster: str, mode: str) -> None:
    optimizer = "none" if mode == "inference" else "adamw"
    paths = {name: os.path.join(folder, name) for name in ("plan.json", "cluster.yaml", "programs.mlir")}
    plans.write_plan(paths["plan.json"], {**plan, "optimizer": optimizer})
    with open(paths["cluster.yaml"], "w") as file:
        file.write(cluster)
    options = ["--mode=inference"] if mode == "inference" else [f"--optimizer={optimizer}"]
    command = ["autohet-compile", model, *options, "--cluster", paths["cluster.yaml"], "--plan", paths["plan.json"], "--emit=scheduled"]
    # What is said goes to standard error, programs alone to standard output.
    with open(paths["programs.mlir"], "w") as file:
        finished = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, universal_newlines=True)
    if finished.returncode:
        raise ToolFailed(command, finished.returncode, finished.stderr)
    tool("autohet-opt", paths["programs.mlir"], "--exec-verify-order", "-o", os.devnull)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--models", default="gpt")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    checks = Checks()
    for name in options.models.split(","):
        folder = os.path.join(options.work, name)
        os.makedirs(folder, exist_ok=True)
        model = os.path.join(folder, "model.onnx")
        models.write_model(name, model)
        table = json.loads(tool("autohet-compile", model, "--microbatch=4", "--emit=units"))
        units = [unit["id"] for unit in table["units"]]
        for number, (plan_name, plan, cluster) in enumerate(draw_plans(units, options.random, options.seed)):
            # Inference for each plan, one kind of training in turn.
            for mode, schedule, exchange in (KINDS[0], KINDS[1 + number % 2]):
                try:
                    check(model, folder, {**plan, "schedule": schedule, "gradient_exchange": exchange}, cluster, mode)
                    checks.equal(f"{name}, {plan_name}, {mode}", True, True)
                except ToolFailed as failure:
                    checks.failures.append(f"{name}, {plan_name}, {mode}: {failure}")
    checks.finish()


if __name__ == "__main__":
    main()
