"""A model whose loss has a term of each microbatch as a whole, under plans that cut the batch.

    balance_cases.py CASE_FOLDER WORK_FOLDER

The case is one of config_cases.py with what PyTorch makes of cut batches: each microbatch
has the loss of the model's own code and weighs as much as its labels. Stages, ranks that
share products and replicas must not change that, nor what is whole.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from typing import Dict, List, Tuple

import plans
import torch_cases
from config_cases import ConfigCase
from harness import Checks, Run, ToolFailed, read_safetensors, tool
from plans import Replica, pipeline

# The cut, and a plan that cuts so: of two blocks.
PLANS: Dict[str, Tuple[str, List[Replica]]] = {
    "stages": ("", [Replica(4, 1, pipeline([1, 1]))]),
    "tensor": ("", [Replica(4, 1, pipeline([2], [(1, 1)]))]),
    "microbatches": ("2+2", [Replica(2, 2, pipeline([2]))]),
    # The last stage has no router.
    "stages-microbatches": ("2+2", [Replica(2, 2, pipeline([1, 1, 0]))]),
    "replicas": ("2+2", [Replica(2, 1, pipeline([2])), Replica(2, 1, pipeline([1, 1]))]),
    "all": ("2+1+1", [Replica(2, 1, pipeline([2], [(2, 1)])), Replica(1, 2, pipeline([1, 1], [(1,), (1, 1)]))]),
}


class Cut(ConfigCase):
    """As the case is, with the expectations of a cut."""

    def __init__(self, folder: str, work: str, cut: str, replicas: List[Replica], inner: bool) -> None:
        super().__init__(folder)
        self.replicas, self.inner, self.prefix = replicas, inner, ""
        self.work = ""  # inputs are the case's own
        if cut:
            self.expected = read_safetensors(self.path(f"expected-{cut}.safetensors"))
            for optimizer, losses in self.facts["cuts"][cut].items():
                self.facts[optimizer] = {"losses": losses}

    def compile(self, work: str, optimizer: str, batch: int) -> str:
        config, program = (os.path.join(work, name) for name in ("config.json", optimizer))
        with open(config, "w") as text:
            json.dump(self.facts["config"], text)
        length = self.tensors("inputs")["input_ids"].shape[1]
        common = ["autohet-compile", config, f"--seq-len={length}", "--no-dropout"]
        table = tool(*common, f"--global-batch={batch}", "--microbatch=1", "--emit=units")
        units = [unit["id"] for unit in json.loads(table)["units"]]
        plan = plans.plan_json(self.replicas, units, optimizer)
        if self.inner:
            cut_layers(plan)
        plans.write_plan(program + ".plan.json", plan)
        with open(program + ".cluster.yaml", "w") as text:
            text.write(plans.cluster_yaml(plans.device_count(self.replicas)))
        tool(*common, f"--plan={program}.plan.json", f"--cluster={program}.cluster.yaml", "-o", program)
        return program


def cut_layers(plan: dict) -> None:
    """Has the first stage of a pipeline give its last unit, a router's, to the next one."""
    for replica in plan["replicas"]:
        first, second = replica["stages"][:2]
        second["units"].insert(0, first["units"].pop())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("work")
    options = parser.parse_args()
    total = Checks()
    torch_cases.compile_case = lambda case, work, optimizer, batch, _: case.compile(work, optimizer, batch)
    for (name, (cut, replicas)), optimizer in itertools.product(PLANS.items(), torch_cases.OPTIMIZERS):
        for inner in (False, True) if name.startswith("stages") else (False,):
            label = f"{name}{'-inner' if inner else ''}-{optimizer}"
            work, checks = os.path.join(options.work, label), Checks()
            os.makedirs(work, exist_ok=True)
            try:
                case = Cut(options.case, work, cut, replicas, inner)
                torch_cases.check_optimizer(case, work, checks, optimizer, ["--weights", case.path("weights")])
                total.add(label, checks)
            except ToolFailed as failure:
                total.failures.append(f"{label}: {failure}")
    total.finish()


if __name__ == "__main__":
    main()
