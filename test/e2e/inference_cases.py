"""A model that is only computed gives the same outputs on any devices.

    inference_cases.py WORK [--models gpt,llama] [--plans all] [--batches N]
    inference_cases.py WORK --golden CASE [--cluster FILE --global-batch N]

The first form compares each model under plans by hand (plans.py) with one device,
sample by sample in the order of the file. Batches follow one another through the
stages, so there are enough of them, an odd number, to go round every buffer and to
reach the bound on how far a stage runs ahead. The second compares with
PyTorch's outputs in CASE: one device, and the plans that the planner finds for each
objective.
"""

from __future__ import annotations

import argparse
import json
import os

import models
import plans
from harness import Checks, Tensors, ToolFailed, read_safetensors, tool, write_safetensors
from torch_cases import LOGITS

SAME = 1e-5  # of the tensor's largest element
BATCHES = 67  # of one microbatch, two blocks of a rank's window are 64
DEFAULT_PLANS = "pipeline3,extents-1-2,replicas-microbatch-4-2,microbatches2-stages3,all-at-once"


def compute(model: str, folder: str, inputs: str, *options: str) -> Tensors:
    outputs = os.path.join(folder, "outputs.safetensors")
    if os.path.exists(outputs):
        os.remove(outputs)  # an old one must not pass for a new one
    program = os.path.join(folder, "out")
    print(tool("autohet-compile", model, "--mode=inference", *options, "-o", program))
    tool("autohet-run", program, "--inputs", inputs, "--save-outputs", outputs)
    return read_safetensors(outputs)


def compare(checks: Checks, kind: str, found: Tensors, expected: Tensors, tolerance: float = SAME) -> None:
    checks.equal(f"{kind}: outputs", sorted(found), sorted(expected))
    for name, tensor in expected.items():
        if name in found:
            checks.near(kind, name, found[name], tensor, tolerance, relative_to=float(abs(tensor).max()))


def by_hand(name: str, work: str, plan_names: str, batches: int) -> Checks:
    checks, folder = Checks(), os.path.join(work, name)
    os.makedirs(folder, exist_ok=True)
    model, inputs = os.path.join(folder, "model.onnx"), os.path.join(folder, "inputs.safetensors")
    models.write_model(name, model)
    models.write_data(name, folder, plans.GLOBAL_BATCH, batches)
    whole = f"--microbatch={plans.GLOBAL_BATCH}"
    table = json.loads(tool("autohet-compile", model, "--mode=inference", whole, "--emit=units"))
    checks.equal("a table of units without a backward", table.get("forward_only"), True)
    units = [unit["id"] for unit in table["units"]]
    alone = compute(model, folder, inputs, whole)
    for plan_name in plan_names.split(","):
        replicas = plans.PLANS[plan_name]
        plan, cluster = os.path.join(folder, "plan.json"), os.path.join(folder, "cluster.yaml")
        plans.write_plan(plan, plans.plan_json(replicas, units, "none"))
        with open(cluster, "w") as file:
            file.write(plans.cluster_yaml(plans.device_count(replicas)))
        try:
            compare(checks, plan_name, compute(model, folder, inputs, "--cluster", cluster, "--plan", plan), alone)
        except ToolFailed as failure:
            checks.failures.append(f"{plan_name}: {failure}")
    return checks


def golden(case: str, work: str, cluster: str, batch: int) -> Checks:
    checks, model, inputs = Checks(), os.path.join(case, "model.onnx"), os.path.join(work, "inputs.safetensors")
    os.makedirs(work, exist_ok=True)
    given = read_safetensors(os.path.join(case, "inputs.safetensors"))
    write_safetensors(inputs, given)
    expected = read_safetensors(os.path.join(case, "expected.safetensors"))["logits"]
    checks.near("one device", "logits", *_first(compute(model, work, inputs, f"--microbatch={len(expected)}")), expected, LOGITS)
    for objective in ("latency", "throughput"):
        found = compute(model, work, inputs, "--cluster", cluster, f"--global-batch={batch}", f"--objective={objective}")
        checks.near(objective, "logits", *_first(found), expected, LOGITS)
    return checks


def _first(tensors: Tensors) -> tuple:
    return (next(iter(tensors.values())),)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--models", default="gpt,llama")
    parser.add_argument("--plans", default=DEFAULT_PLANS)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--golden", metavar="CASE")
    parser.add_argument("--cluster")
    parser.add_argument("--global-batch", type=int)
    options = parser.parse_args()
    total = Checks()
    if options.golden:
        total.add(options.golden, golden(options.golden, options.work, options.cluster, options.global_batch))
    else:
        for name in options.models.split(","):
            total.add(name, by_hand(name, options.work, ",".join(plans.PLANS) if options.plans == "all" else options.plans, options.batches))
    total.finish()


if __name__ == "__main__":
    main()
