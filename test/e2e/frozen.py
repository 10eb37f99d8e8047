"""Frozen parameters are saved, exported and resumed like all others.

    frozen.py MODEL PLAN REGEX WORK_FOLDER

The weights that a run starts from are not the model's own, so that only the
checkpoint can bring the frozen ones back.
"""

from __future__ import annotations

import argparse
import os
import re
import sys

import numpy as np

import plan_cases
import plans
from harness import Checks, Run, ToolFailed, read_safetensors, tool, write_safetensors

SAVED, END = 2, 4


def check(options: argparse.Namespace, checks: Checks) -> None:
    model = plan_cases.Model(options.model, options.work, plans.GLOBAL_BATCH, END)
    model.compile_options = [f"--freeze={options.pattern}"]
    replicas = plans.PLANS[options.plan]
    plan = plans.plan_json(replicas, model.units, "adamw")
    program = model.compile_plan(plan, plans.cluster_yaml(plans.device_count(replicas)), "frozen-" + options.plan)
    alone = model.compile_alone("adamw")
    data = [os.path.join(model.folder, name) for name in ("inputs.safetensors", "labels.safetensors")]
    checkpoints, exported, given = (os.path.join(model.folder, name) for name in ("frozen.checkpoints", "exported.safetensors", "given.safetensors"))

    # All names, from a run that changes nothing.
    all_weights = Run(model.folder, "all").train(alone, *data, 1, "--lr", "0").weights
    write_safetensors(given, {name: values * np.float32(0.5) for name, values in all_weights.items()})
    is_frozen = lambda name: re.search(options.pattern, name) is not None
    checks.equal("something is frozen, not all", len({is_frozen(name) for name in all_weights}), 2)

    whole = Run(model.folder, "whole").train(alone, *data, END, "--weights", given)
    tool("rm", "-rf", checkpoints)
    Run(model.folder, "begun").train(program, *data, SAVED, "--weights", given, "--checkpoint", checkpoints)
    tool("autohet-checkpoint", "verify", checkpoints)
    tool("autohet-checkpoint", "export", checkpoints, exported)
    written = read_safetensors(exported)
    checks.equal("names of the export", sorted(written), sorted(all_weights))
    for name in filter(is_frozen, written):
        checks.near("frozen", name, written[name], all_weights[name] * np.float32(0.5), 0.0)
        checks.equal(f"gradient of {name}", name in whole.gradients[0], False)
    resumed = Run(model.folder, "resumed").train(alone, *data, END, "--checkpoint", checkpoints, "--resume")
    for step, (actual, expected) in enumerate(zip(resumed.losses, whole.losses[SAVED:]), SAVED):
        checks.near("loss", f"step {step}", actual, expected, 1e-5)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("plan")
    parser.add_argument("pattern")
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
