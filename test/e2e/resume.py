"""Saved under one plan at step 20, resumed under another: equal at step 40.

    resume.py MODEL FROM_PLAN TO_PLAN WORK_FOLDER [--optimizer adamw]

The uninterrupted run is under the first plan. Losses of the steps after the
resumption, and for SGD the weights at the end, are those of a change of plan.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys

import equality
import plan_cases
import plans
from harness import Checks, Run, ToolFailed, tool

SAVED, END = 20, 40


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("work")
    parser.add_argument("--optimizer", default="adamw")
    options = parser.parse_args()
    checks = Checks()
    try:
        model = plan_cases.Model(options.model, options.work, plans.GLOBAL_BATCH, END)
        data = [os.path.join(model.folder, name) for name in ("inputs.safetensors", "labels.safetensors")]

        def compiled(name: str) -> str:
            plan = plans.plan_json(plans.PLANS[name], model.units, options.optimizer)
            path = os.path.join(model.folder, name)
            plans.write_plan(path + ".plan.json", plan)
            with open(path + ".cluster.yaml", "w") as file:
                file.write(plans.cluster_yaml(plans.device_count(plans.PLANS[name])))
            tool(
                "autohet-compile", model.onnx, "--cluster", path + ".cluster.yaml", "--plan", path + ".plan.json",
                f"--global-batch={plans.GLOBAL_BATCH}", f"--optimizer={options.optimizer}", "-o", path,
            )  # fmt: skip
            return path

        first, second = compiled(options.first), compiled(options.second)
        numbers = plan_cases.OPTIONS[options.optimizer]
        saved = os.path.join(model.folder, "checkpoints")
        shutil.rmtree(saved, ignore_errors=True)
        whole = Run(model.folder, "whole").train(first, *data, END, *numbers)
        Run(model.folder, "begun").train(first, *data, SAVED, *numbers, "--checkpoint", saved)
        tool("autohet-checkpoint", "verify", saved)
        resumed = Run(model.folder, "resumed").train(second, *data, END, *numbers, "--checkpoint", saved, "--resume")
        checks.equal("steps after the resumption", len(resumed.losses), END - SAVED)
        whole.losses = whole.losses[SAVED:]
        # Gradients are of the first step of a run: of step 1 here, of step 21 there.
        whole.gradients = resumed.gradients = {}
        equality.check_equal(checks, resumed, whole, optimizer=options.optimizer)
    except ToolFailed as failure:
        print("FAIL:", failure)
        sys.exit(1)
    checks.finish()


if __name__ == "__main__":
    main()
