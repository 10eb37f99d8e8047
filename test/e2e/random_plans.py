"""Random legal (cluster, plan) pairs train as one process does.

    random_plans.py WORK_FOLDER --count N --seed S [--every K]

Draws replicas, cuts between any two units, extents with unequal shares,
microbatch sizes and counts, schedule, nodes of unlike size, the owner of
optimizer state, how gradients are exchanged; some with clipping, decay or a schedule of the rate.
A failure prints its number: `--first N --count 1` repeats it alone. Pair N is of
model N modulo 8: `--every 8` stays with one, whose reference runs pairs share.
"""

from __future__ import annotations

import argparse
import random
from typing import Dict, List, Tuple

import models
import plan_cases
import plans
from harness import Checks, ToolFailed

STEPS = 3
MAX_DEVICES = 6
# By global batch: few, so that pairs share their reference runs.
RUN_OPTIONS = {
    4: [],
    6: ["--clip-norm", "0.5", "--weight-decay", "0.1", "--no-decay", "bias$"],
    8: ["--seed", "5"],
    12: ["--schedule", "cosine", "--warmup-steps", "1", "--clip-norm", "0.2"],
}


def draw_plan(draw: random.Random, units: List[str]) -> Tuple[dict, List[int]]:
    """A plan, and the devices of each node."""
    while True:
        plan, sizes = draw_any_plan(draw, units)
        if plan["global_batch"] in RUN_OPTIONS:
            return plan, sizes


def draw_any_plan(draw: random.Random, units: List[str]) -> Tuple[dict, List[int]]:
    devices = draw.randint(2, MAX_DEVICES)
    sizes = split(draw, devices, draw.randint(1, min(3, devices)))
    names = plans.device_names(sizes)
    draw.shuffle(names)  # a stage may span nodes, and a node may serve two replicas
    replicas, batch = [], 0
    for share in split(draw, devices, draw.randint(1, min(3, devices))):
        extents = split(draw, share, draw.randint(1, share))
        cuts = sorted(draw.sample(range(1, len(units)), len(extents) - 1))
        stages = []
        for begin, end, extent in zip([0, *cuts], [*cuts, len(units)], extents):
            stage = {"units": units[begin:end], "devices": [names.pop() for _ in range(extent)]}
            if extent > 1 and draw.random() < 0.5:
                stage["tensor_parallel"] = [draw.randint(1, 3) for _ in range(extent)]
            stages.append(stage)
        size, count = draw.randint(1, 3), draw.randint(1, 4)
        batch += size * count
        replicas.append({"microbatch_size": size, "microbatches": count, "stages": stages})
    state_owner = draw.choice(["spread", "first"])
    if state_owner == "spread" and draw.random() < 0.5:
        for replica in replicas[1:]:  # the first one owns its part
            for stage in replica["stages"]:
                stage["state_share"] = draw.randint(0, 3)
    plan = {
        "format": 1,
        "global_batch": batch,
        "optimizer": "sgd",
        "schedule": draw.choice(["1f1b", "gpipe"]),
        "state_owner": state_owner,
        "gradient_exchange": draw.choice(["direct", "hierarchical"]),
        "replicas": replicas,
    }
    return plan, sizes


def split(draw: random.Random, whole: int, parts: int) -> List[int]:
    """`parts` positive numbers that add up to `whole`."""
    cuts = sorted(draw.sample(range(1, whole), parts - 1))
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, whole])]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    total = Checks()
    known: Dict[Tuple[str, int], plan_cases.Model] = {}

    def model(name: str, batch: int) -> plan_cases.Model:
        if (name, batch) not in known:
            known[name, batch] = plan_cases.Model(name, options.work, batch, STEPS)
            known[name, batch].run_options = RUN_OPTIONS[batch]
        return known[name, batch]

    for number in range(options.first, options.first + options.count * options.every, options.every):
        # Each pair has its own generator, so that one can be repeated alone.
        draw = random.Random(options.seed * 1_000_003 + number)
        name = models.NAMES[number % len(models.NAMES)]
        label = f"pair {number} ({name})"
        try:
            plan, sizes = draw_plan(draw, model(name, 4).units)
            reference, cluster = model(name, plan["global_batch"]), plans.cluster_yaml(sum(sizes), sizes=sizes)
            total.add(label, plan_cases.check(reference, plan, cluster, f"pair{number}"))
        except ToolFailed as failure:
            total.failures.append(f"{label}: {failure}")
        print(f"{label}: {len(total.failures)} failures so far", flush=True)
    total.finish()


if __name__ == "__main__":
    main()
