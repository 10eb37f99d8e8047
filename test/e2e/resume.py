"""Saved under one plan at step 20, resumed under another: equal at step 40.

    resume.py MODEL FROM_PLAN TO_PLAN WORK_FOLDER [--optimizer adamw]

The uninterrupted run is under the first plan. Losses of the steps after the
resumption, and for SGD gradients and the weights at the end, are equal as after
a change of plan.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys

import equality
import models
import plan_cases
import plans
from harness import Checks, Run, ToolFailed, tool

SAVED, END = 20, 40
# Over forty steps of lr 0.1 rounding would grow beyond what equality.py allows (and
# in the LLaMA here at any rate that trains).
OPTIONS = {**plan_cases.OPTIONS, "sgd": ["--lr", "0.03"]}


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
            return model.compile_plan(plan, plans.cluster_yaml(plans.device_count(plans.PLANS[name])), name)

        first, second = compiled(options.first), compiled(options.second)
        numbers = OPTIONS[options.optimizer]
        saved = os.path.join(model.folder, "checkpoints")
        shutil.rmtree(saved, ignore_errors=True)
        whole = Run(model.folder, "whole").train(first, *data, END, *numbers)
        Run(model.folder, "begun").train(first, *data, SAVED, *numbers, "--checkpoint", saved)
        tool("autohet-checkpoint", "verify", saved)
        resumed = Run(model.folder, "resumed").train(second, *data, END, *numbers, "--checkpoint", saved, "--resume")
        checks.equal("steps after the resumption", len(resumed.losses), END - SAVED)
        for entries in (whole.losses, whole.norms, whole.gradients):
            del entries[:SAVED]
        equality.check_equal(checks, resumed, whole, models.zero_gradient, options.optimizer, SAVED + 1)
    except ToolFailed as failure:
        print("FAIL:", failure)
        sys.exit(1)
    checks.finish()


if __name__ == "__main__":
    main()
