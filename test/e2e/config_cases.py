"""One PyTorch golden case, built from its config.json instead of its ONNX file.

    config_cases.py CASE_FOLDER WORK_FOLDER

The config says all but the weights: these are those that transformers wrote, in
`weights`, or they come from the case's ONNX file, under PyTorch's names. Then logits, loss, every gradient and the weights after
three steps of SGD and of AdamW must be those of PyTorch, as in torch_cases.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Dict, List, Optional, Tuple

import numpy as np

import torch_cases
from harness import Checks, Run, Tensors, ToolFailed, tool, write_safetensors


compile_onnx_case = torch_cases.compile_case


class ConfigCase(torch_cases.Case):
    """Parameters bear PyTorch's names already."""

    work = ""

    def path(self, name: str) -> str:
        # Without the inputs that the config's model does not have.
        return os.path.join(self.work if self.work and name == "inputs.safetensors" else self.folder, name)

    def golden(self, name: str) -> Optional[Tuple[str, Optional[List[int]]]]:
        for parameter, tie in self.facts["tied"].items():
            if name in tie["also"]:
                return parameter, None
        return (name, None) if name in self.facts["parameters"] else None

    def compile(self, work: str, optimizer: str, batch: int) -> str:
        length = self.tensors("inputs")["input_ids"].shape[1]
        program = os.path.join(work, "config-" + optimizer)
        config = os.path.join(work, "config.json")
        with open(config, "w") as text:
            json.dump(self.facts["config"], text)
        options = [f"--global-batch={batch}", f"--microbatch={batch}", f"--optimizer={optimizer}"]
        if self.facts["config"]["model_type"] == "bert":
            options.append("--objective=given")
        elif "attention_mask" in self.facts["inputs"]:
            options.append("--padding-mask")
        tool("autohet-compile", config, f"--seq-len={length}", "--no-dropout", *options, "-o", program)
        return program


def first_weights(folder: str, work: str) -> Tensors:
    """The weights of the ONNX file under PyTorch's names: a step of rate 0 leaves them as they are."""
    case = torch_cases.Case(folder)
    ids = case.tensors("inputs")["input_ids"]
    program = compile_onnx_case(case, work, "sgd", len(ids), {"seq": ids.shape[1]} if case.dynamic else {})
    run = Run(work, "first").train(
        program, case.path("inputs.safetensors"), case.path("labels.safetensors"), 1, "--lr", "0"
    )
    weights: Tensors = {}
    for name, values in run.weights.items():
        golden = case.golden(name)
        if golden is None:
            sys.exit(f"{name} is no parameter of the PyTorch model")
        parameter, rows = golden
        if rows is not None:  # no token uses the other rows, of which the file has nothing
            whole = np.zeros_like(case.expected["grad." + parameter])
            whole[rows] = values.reshape(len(rows), -1)
            values = whole
        weights[parameter] = values
    return weights


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("work")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    case, checks = ConfigCase(options.case), Checks()
    case.prefix = ""  # that of the module which the exporter was given
    weights = case.path("weights")
    has_own = os.path.exists(weights)
    if not has_own:
        weights = os.path.join(options.work, "weights.safetensors")
    given = case.tensors("inputs")
    positions = given.pop("position_ids", None)
    if positions is not None:
        checks.equal("positions that count up", bool((positions == np.arange(positions.shape[1])).all()), True)
    try:
        if not has_own:
            write_safetensors(weights, first_weights(options.case, options.work))
        write_safetensors(os.path.join(options.work, "inputs.safetensors"), given)
        case.work = options.work
        torch_cases.compile_case = lambda case, work, optimizer, batch, _: case.compile(work, optimizer, batch)
        for optimizer in torch_cases.OPTIMIZERS:
            torch_cases.check_optimizer(case, options.work, checks, optimizer, ["--weights", weights])
    except ToolFailed as failure:
        print("FAIL:", failure)
        sys.exit(1)
    checks.finish()


if __name__ == "__main__":
    main()
