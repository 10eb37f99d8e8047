"""What the planner says that a step of training takes and needs is what its programs do.

    step_times.py WORK_FOLDER [--count N] [--first N] [--seed S]

Draws models of few layers, clusters of two kinds and legal plans of any make:
replicas of unlike depth, cuts between any units, even and uneven extents, both
schedules, both exchanges, one owner and many. Each plan's step as the planner
predicts it must be near that of its simulated programs, and each device's peak of
memory near what its program needs; docs/planner.md says what the recurrences leave
out. Pair N has its own generator and can be repeated alone: `--first N --count 1`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from typing import List, Tuple

import plans
import random_plans
from harness import Checks, ToolFailed, tool

# Of steps, and of devices' memory: half, nine of ten, and all are off by no more.
STEPS = {"median": 0.002, "nine of ten": 0.01, "worst": 0.04}
MEMORY = {"median": 0.025, "nine of ten": 0.1, "worst": 0.6}


def draw_model(draw: random.Random) -> dict:
    heads = draw.choice([4, 6, 8, 12])
    hidden, inner, layers = heads * 32, heads * 32 * draw.choice([3, 4]), draw.randint(2, 4)
    vocabulary, length = draw.choice([500, 2000]), draw.choice([64, 128])
    if draw.random() < 0.5:
        return {
            "model_type": "llama",
            "vocab_size": vocabulary,
            "max_position_embeddings": length,
            "hidden_size": hidden,
            "intermediate_size": inner,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "tie_word_embeddings": False,
        }
    return {
        "model_type": "gpt2",
        "vocab_size": vocabulary,
        "n_positions": length,
        "n_embd": hidden,
        "n_inner": inner,
        "n_layer": layers,
        "n_head": heads,
        "tie_word_embeddings": draw.random() < 0.5,
    }


def draw_cluster(draw: random.Random, sizes: List[int]) -> str:
    lines = ["format: 1", "kinds:"]
    for kind in ("fast", "slow"):
        rate = draw.uniform(5, 50)
        lines.append(
            "  %s: {memory: 4 GiB, flops: %.1f GFLOP/s, attention_flops: %.1f GFLOP/s, elementwise_flops: %.1f GFLOP/s, memory_bandwidth: %.1f GB/s}"
            % (kind, rate, rate / 3, rate / 10, draw.uniform(3, 20))
        )
    lines.append("nodes:")
    lines += ["  - {name: n%d, devices: [{kind: %s, count: %d}]}" % (node, "slow" if node % 2 else "fast", size) for node, size in enumerate(sizes)]
    lines += [
        "links:",
        "  intra_node: {bandwidth: %.2f GB/s, latency: 5 us}" % draw.uniform(2, 10),
        "  inter_node: {bandwidth: %.2f GB/s, latency: 30 us}" % draw.uniform(0.2, 2),
    ]
    return "\n".join(lines) + "\n"


def draw_plan(draw: random.Random, units: List[str]) -> Tuple[dict, List[int]]:
    """With stages of one node, as the planner's are, and some microbatches more."""
    while True:
        plan, sizes = random_plans.draw_any_plan(draw, units)
        nodes = [[{name.split("/")[0] for name in stage["devices"]} for stage in replica["stages"]] for replica in plan["replicas"]]
        if all(len(names) == 1 for replica in nodes for names in replica):
            break
    for replica in plan["replicas"]:
        replica["microbatches"] += draw.randint(0, 6)
    plan["global_batch"] = sum(replica["microbatch_size"] * replica["microbatches"] for replica in plan["replicas"])
    return plan, sizes


def describe(plan: dict) -> str:
    stages = ["+".join(str(len(stage["devices"])) for stage in replica["stages"]) for replica in plan["replicas"]]
    return f"{' | '.join(stages)}, {plan['schedule']}, {plan['state_owner']}, {plan['gradient_exchange']}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    model, plan_file, cluster_file = (os.path.join(options.work, name) for name in ("config.json", "plan.json", "cluster.yaml"))
    checks, errors, excess = Checks(), [], []
    for number in range(options.first, options.first + options.count):
        draw = random.Random(options.seed * 1_000_003 + number)
        with open(model, "w") as file:
            json.dump(draw_model(draw), file)
        try:
            table = json.loads(tool("autohet-compile", model, "--microbatch=1", "--emit=units"))
            plan, sizes = draw_plan(draw, [unit["id"] for unit in table["units"]])
            plans.write_plan(plan_file, plan)
            with open(cluster_file, "w") as file:
                file.write(draw_cluster(draw, sizes))
            report = json.loads(tool("autohet-plan", model, "--cluster", cluster_file, "--plan", plan_file, "--compare=none", "--json"))
            finalist = report["finalists"][0]
            predicted, simulated = finalist["predicted_s"], finalist["simulated_s"]
            label = f"plan {number} ({describe(plan)})"
            errors.append((abs(predicted / simulated - 1), label))
            print(f"{label}: {100 * (predicted / simulated - 1):+.2f} %", flush=True)
            for device in finalist["memory"]:
                excess.append((abs(device["predicted_bytes"] / device["program_bytes"] - 1), f"{label}, {device['device']}"))
        except ToolFailed as failure:
            checks.failures.append(f"plan {number}: {failure}")
    for kind, found, limits in (("steps", errors, STEPS), ("memory", excess, MEMORY)):
        found.sort()
        for name, place in (("median", len(found) // 2), ("nine of ten", 9 * len(found) // 10), ("worst", -1)):
            error, label = found[place]
            print(f"{kind}, {name}: {100 * error:.2f} %")
            checks.near(kind, f"{name}: {label}", error, 0, limits[name])
    checks.finish()


if __name__ == "__main__":
    main()
