"""A tied parameter is written under all its names and read under any.

    tied_names.py MODEL PLAN NAME,OTHER[,NAME,OTHER] WORK_FOLDER

NAME and OTHER are one parameter: a matrix, and perhaps the bias of its head.
"""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np

import plan_cases
import plans
from harness import Checks, Run, ToolFailed, read_safetensors, tool, write_safetensors

STEPS = 2


def check(options: argparse.Namespace, checks: Checks) -> None:
    model = plan_cases.Model(options.model, options.work, plans.GLOBAL_BATCH, STEPS)
    replicas = plans.PLANS[options.plan]
    plan = plans.plan_json(replicas, model.units, "sgd")
    program = model.compile_plan(plan, plans.cluster_yaml(plans.device_count(replicas)), options.plan)
    data = [os.path.join(model.folder, name) for name in ("inputs.safetensors", "labels.safetensors")]
    checkpoints, exported = (os.path.join(model.folder, name) for name in ("checkpoints", "exported.safetensors"))
    tool("rm", "-rf", checkpoints)
    run = Run(model.folder, "both").train(program, *data, STEPS, "--lr", "0.1", "--checkpoint", checkpoints)
    tool("autohet-checkpoint", "export", checkpoints, exported)
    written = read_safetensors(exported)

    pairs = list(zip(options.names[::2], options.names[1::2]))
    for first, second in pairs:
        for kind, tensors in (("--save-weights", run.weights), ("export", written)):
            checks.equal(f"{kind}: names", [n for n in (first, second) if n not in tensors], [])
            checks.near(kind, first, tensors[second], tensors[first], 0.0)
        checks.equal("gradients of one parameter", len({first, second} & set(run.gradients[0])), 1)
    checks.equal("names of both files", sorted(run.weights), sorted(written))

    # Under either name, or both, the run goes on alike.
    losses = {}
    for kept in range(3):
        given = {n: t for n, t in written.items() if kept == 2 or n not in [pair[kept] for pair in pairs]}
        path = os.path.join(model.folder, f"given{kept}.safetensors")
        write_safetensors(path, given)
        losses[kept] = Run(model.folder, f"given{kept}").train(program, *data, 1, "--weights", path).losses
    checks.equal("losses, whichever names are given", [losses[0], losses[1]], [losses[2]] * 2)

    wrong = dict(written)
    wrong[pairs[0][1]] = wrong[pairs[0][1]] + np.float32(1)
    path = os.path.join(model.folder, "wrong.safetensors")
    write_safetensors(path, wrong)
    try:
        Run(model.folder, "wrong").train(program, *data, 1, "--weights", path)
        checks.failures.append("tensors that differ under two names of one parameter were accepted")
    except ToolFailed as failure:
        checks.equal("exit status", failure.status, 1)
        checks.equal("named in the error", all(f"'{name}'" in failure.output for name in pairs[0]), True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("plan")
    parser.add_argument("names", type=lambda text: text.split(","))
    parser.add_argument("work")
    options, checks = parser.parse_args(), Checks()
    try:
        check(options, checks)
    except ToolFailed as failure:
        print("FAIL:", failure)
        sys.exit(1)
    checks.finish()


if __name__ == "__main__":
    main()
