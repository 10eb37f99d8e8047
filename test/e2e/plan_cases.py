"""One model under one plan equals the same model in one process.

    plan_cases.py PLAN MODEL WORK_FOLDER [--optimizers sgd,adamw] [--schedules 1f1b,gpipe]
        [--exchanges direct,hierarchical] [--steps 10] [--clip-norm NORM]

Loss, gradient norm and each gradient of every step, and the weights after the
last, within the tolerances of equality.py; all copies of a slice bit-equal.
Several plans, models, optimizers, schedules or exchanges, joined by commas, make a product;
the reference runs once a model and optimizer.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from typing import List

import equality
import models
import plans
from harness import Checks, Run, ToolFailed, tool

OPTIONS = {"sgd": ["--lr", "0.1"], "adamw": ["--lr", "1e-3", "--weight-decay", "0.01"]}
BLOCKS = 2  # global batches in the data: steps use them in turn


class Model:
    """A model with data, and its run in one process under each optimizer."""

    compile_options: List[str] = []
    run_options: List[str] = []

    def __init__(self, name: str, folder: str, batch: int, steps: int) -> None:
        self.name, self.steps, self.batch = name, steps, batch
        self.folder = os.path.join(folder, f"{name}-{batch}")
        os.makedirs(self.folder, exist_ok=True)
        self.onnx = os.path.join(self.folder, "model.onnx")
        self.write()
        self.references = {}
        table = tool(
            "autohet-compile", self.onnx, *self.compile_options, f"--global-batch={batch}", f"--microbatch={batch}", "--emit=units"
        )  # fmt: skip
        self.units: List[str] = [unit["id"] for unit in json.loads(table)["units"]]

    def write(self) -> None:
        models.write_model(self.name, self.onnx)
        models.write_data(self.name, self.folder, self.batch, BLOCKS)

    def run(self, program: str, name: str, optimizer: str) -> Run:
        return Run(self.folder, name).train(
            program,
            os.path.join(self.folder, "inputs.safetensors"),
            os.path.join(self.folder, "labels.safetensors"),
            self.steps,
            *OPTIONS[optimizer],
            *self.run_options,
        )

    def compile_alone(self, optimizer: str) -> str:
        program = os.path.join(self.folder, "one-" + optimizer)
        tool(
            "autohet-compile", self.onnx, *self.compile_options, f"--global-batch={self.batch}",
            f"--microbatch={self.batch}", f"--optimizer={optimizer}", "-o", program,
        )  # fmt: skip
        return program

    def reference(self, optimizer: str) -> Run:
        if optimizer not in self.references:
            self.references[optimizer] = self.run(self.compile_alone(optimizer), "one-" + optimizer, optimizer)
        return self.references[optimizer]

    def compile_plan(self, plan: dict, cluster: str, name: str) -> str:
        """The folder; plan and cluster stay beside it, to be looked at."""
        plan_path, cluster_path = (os.path.join(self.folder, f"{name}.{end}") for end in ("plan.json", "cluster.yaml"))
        plans.write_plan(plan_path, plan)
        with open(cluster_path, "w") as file:
            file.write(cluster)
        program = os.path.join(self.folder, name)
        tool(
            "autohet-compile", self.onnx, *self.compile_options, "--cluster", cluster_path, "--plan", plan_path,
            f"--global-batch={plan['global_batch']}", f"--optimizer={plan['optimizer']}", "-o", program,
        )  # fmt: skip
        return program


def check(model: Model, plan: dict, cluster: str, name: str) -> Checks:
    checks, optimizer = Checks(), plan["optimizer"]
    reference = model.reference(optimizer)
    run = model.run(model.compile_plan(plan, cluster, name), name, optimizer)
    equality.check_equal(checks, run, reference, models.zero_gradient, optimizer)
    return checks


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("plans")
    parser.add_argument("models")
    parser.add_argument("work")
    parser.add_argument("--optimizers", default="sgd")
    parser.add_argument("--schedules", default="1f1b")
    parser.add_argument("--exchanges", default="direct")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--clip-norm", help="of all gradients; as autohet-run takes it")
    options = parser.parse_args()

    names = list(plans.PLANS) if options.plans == "all" else options.plans.split(",")
    model_names = list(models.NAMES) if options.models == "all" else options.models.split(",")
    total = Checks()
    for model_name in model_names:
        model = Model(model_name, options.work, plans.GLOBAL_BATCH, options.steps)
        if options.clip_norm:
            model.run_options = [*model.run_options, "--clip-norm", options.clip_norm]
        choices = (options.schedules.split(","), options.exchanges.split(","), options.optimizers.split(","))
        for plan_name, schedule, exchange, optimizer in itertools.product(names, *choices):
            replicas = plans.PLANS[plan_name]
            if schedule != "1f1b" and "1f1b" in options.schedules and all(len(r.stages) == 1 for r in replicas):
                continue  # one stage has one order
            plan = plans.plan_json(replicas, model.units, optimizer, schedule, exchange=exchange)
            label = f"{plan_name}-{schedule}-{exchange}-{optimizer}"
            try:
                total.add(f"{model_name} {label}", check(model, plan, plans.cluster_yaml(plans.device_count(replicas)), label))
            except ToolFailed as failure:
                total.failures.append(f"{model_name} {label}: {failure}")
    total.finish()


if __name__ == "__main__":
    main()
