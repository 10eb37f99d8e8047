"""What the planner says that batches of inference take is what their programs take.

    inference_times.py WORK_FOLDER [--count N] [--seed S]

Compares, for random plans of a model in random clusters, the period between two
batches that the planner predicts with that of the simulated programs. Stages of one
device must agree closely; divided ones mostly do, but for those over nodes of
unlike kinds and links, which the planner does not make.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics

import models
import plans
import random_plans
from harness import Checks, ToolFailed, tool

ALONE, DIVIDED, MEDIAN = 0.02, 0.15, 0.01
MODEL, HEADS = "gpt", 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    model, plan_file, cluster_file = (os.path.join(options.work, name) for name in ("model.onnx", "plan.json", "cluster.yaml"))
    models.write_model(MODEL, model)
    table = json.loads(tool("autohet-compile", model, "--mode=inference", "--microbatch=4", "--emit=units"))
    units, checks, draw = [unit["id"] for unit in table["units"]], Checks(), random.Random(options.seed)
    count, errors = 0, []
    while count < options.count:
        plan, sizes = random_plans.draw_any_plan(draw, units)
        widest = max(len(stage["devices"]) for replica in plan["replicas"] for stage in replica["stages"])
        if widest > HEADS:
            continue
        count += 1
        plans.write_plan(plan_file, {**plan, "optimizer": "none"})
        with open(cluster_file, "w") as file:
            file.write(plans.cluster_yaml(sum(sizes), sizes=sizes))
        try:
            report = json.loads(
                tool("autohet-plan", model, "--mode=inference", "--cluster", cluster_file, "--plan", plan_file, "--compare=none", "--json")
            )
            finalist = report["finalists"][0]
            predicted, simulated = finalist["predicted_s"], finalist["simulated_s"]
            errors.append(abs(predicted - simulated) / simulated)
            checks.near(f"plan {count}, at most {widest} devices a stage", "period", predicted, simulated, DIVIDED if widest > 1 else ALONE, relative_to=simulated)
        except ToolFailed as failure:
            checks.failures.append(f"plan {count}: {failure}")
    checks.near("all plans", "median error", statistics.median(errors), 0, MEDIAN)
    checks.finish()


if __name__ == "__main__":
    main()
