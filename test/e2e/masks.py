"""Dropout masks are the same, element by element, under every plan.

    masks.py WORK_FOLDER [--plans P,Q,...]

A GPT whose outputs are what each of its dropouts gives (after the embeddings,
in attention, after the gelu, before residual sums), for two steps. An output is
zero exactly where its mask was, so the zeros of two runs have to agree to the
element: in one process and under plans that divide batch, layers and heads.
"""

from __future__ import annotations

import argparse
import os
from typing import List

import numpy as np

import plan_cases
import plans
from harness import Checks, Tensors, ToolFailed, read_safetensors, tool

STEPS = 2
PROBABILITY = 0.2  # that of models.py
PLANS = "tensor2,tensor3,pipeline3-ends,extents-1-2,replicas-unlike-depths,replicas-microbatch-4-2,all-at-once"


def outputs_of(model: plan_cases.Model, program: str, name: str) -> List[Tensors]:
    """What each step's dropouts gave, by output."""
    path = os.path.join(model.folder, name + ".outputs{step}.safetensors")
    tool(
        "autohet-run", program, "--steps", str(STEPS), "--lr", "0.1", "--seed", "7", "--save-outputs", path,
        "--inputs", os.path.join(model.folder, "inputs.safetensors"),
        "--labels", os.path.join(model.folder, "labels.safetensors"),
    )  # fmt: skip
    found = [read_safetensors(path.format(step=step)) for step in range(STEPS)]
    for tensors in found:
        del tensors["logits"]
    return found


def check_random(checks: Checks, steps: List[Tensors]) -> None:
    """That there is something to compare: masks of the right density, none like another."""
    seen = set()
    for step, tensors in enumerate(steps, 1):
        for name, values in tensors.items():
            zeros = values == 0
            for sample in zeros:
                seen.add((values.shape[1:], sample.tobytes()))
            if values.ndim == 3:  # attention's zeros are causal too
                checks.near("share of zeros", f"{name}, step {step}", zeros.mean(), PROBABILITY, 0.03)
    checks.equal("unlike masks", len(seen), sum(len(values) for tensors in steps for values in tensors.values()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--plans", default=PLANS)
    options = parser.parse_args()
    checks = Checks()
    try:
        model = plan_cases.Model("gpt-masks", options.work, plans.GLOBAL_BATCH, STEPS)
        expected = outputs_of(model, model.compile_alone("sgd"), "one")
        checks.equal("dropouts", len(expected[0]), 1 + 4 * 8)
        check_random(checks, expected)
        for name in options.plans.split(","):
            replicas = plans.PLANS[name]
            program = model.compile_plan(plans.plan_json(replicas, model.units, "sgd"), plans.cluster_yaml(plans.device_count(replicas)), name)
            for step, (actual, wanted) in enumerate(zip(outputs_of(model, program, name), expected), 1):
                checks.equal(f"{name}: dropouts of step {step}", sorted(actual), sorted(wanted))
                for output in wanted:
                    unlike = np.argwhere((actual[output] == 0) != (wanted[output] == 0))
                    checks.equal(f"{name}: elements of {output} with another mask in step {step}", unlike[:3].tolist(), [])
    except ToolFailed as failure:
        checks.failures.append(str(failure))
    checks.finish()


if __name__ == "__main__":
    main()
