"""One PyTorch golden case: compile it, train three steps, compare everything.

    torch_cases.py CASE_FOLDER WORK_FOLDER [--or-refused REGEX] [--target-cpu NAME] [--tensor-parallel N] [-- RUN OPTIONS]

Logits, loss, every gradient and the weights after three steps of SGD and of
AdamW, within the tolerances that the cases' README derives from a float64 run.
Dynamic files also run at a second batch size and length. With --tensor-parallel N
ranks share the products, and of the largest parameters each has its part alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

import plans
from harness import Checks, Run, Tensors, ToolFailed, read_safetensors, tool, write_safetensors

LOGITS, LOSS, GRADIENT, ZERO_GRADIENT = 2e-5, 1e-5, 2e-5, 1e-7
SGD_WEIGHT, ADAMW_WEIGHT, ADAMW_NOISE = 1e-5, 2e-5, 6e-3
NOISE_BELOW = 1e-6  # a gradient this small is rounding error, which Adam amplifies

OPTIMIZERS = {
    "sgd": ["--lr", "0.1"],
    "adamw": ["--lr", "1e-3", "--betas", "0.9,0.999", "--weight-decay", "0.01"],
}


class Case:
    def __init__(self, folder: str, compile_options: Sequence[str] = (), ranks: int = 1) -> None:
        self.folder, self.ranks = folder, ranks
        with open(os.path.join(folder, "case.json")) as text:
            self.facts = json.load(text)
        self.expected = self.tensors("expected")
        self.dynamic = self.facts["shapes"] == "dynamic"
        # A model that was exported inside of another has longer names in the file.
        self.prefix = ""
        for constant, origin in self.facts["graph_constants_from_parameters"].items():
            if origin["how"] == "same" and constant.endswith("." + origin["parameter"]):
                self.prefix = constant[: -len(origin["parameter"])]
        loss = self.facts.get("loss_kind", "cross-entropy")
        self.compile_options = [*compile_options, f"--loss={loss}"]
        self.compile_options += [f"--shared={name}" for name in self.facts.get("shared", [])]
        if tables := self.facts.get("constants"):
            self.compile_options.append("--constant=^(" + "|".join(map(re.escape, tables)) + ")$")

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def tensors(self, name: str) -> Tensors:
        return read_safetensors(self.path(name + ".safetensors"))

    def dims(self, inputs: Tensors) -> Tuple[int, Dict[str, int]]:
        """The batch and the other dims that are free in the file, as `inputs` have them."""
        shape = next(iter(inputs.values())).shape
        return shape[0], {"seq": shape[1]} if "seq" in self.facts["dynamic_dims"] else {}

    def ties(self) -> List[str]:
        """`--tie` for each tied weight that the exporter copied."""
        options = []
        for tie in self.facts["tied"].values():
            if tie["form"] == "copies":
                # The constant that bears a parameter's name gives it its name.
                own, *copies = sorted(tie["graph_constants"], key=lambda c: c.startswith(("val_", "onnx::")))
                options += [f"--tie={own}={copy}" for copy in copies]
        return options

    def golden(self, name: str) -> Optional[Tuple[str, Optional[List[int]]]]:
        """The parameter that a tensor of ours is, and the rows of it if not all."""
        parameters = self.facts["parameters"]
        name = name[len(self.prefix) :] if name.startswith(self.prefix) else name
        if name in parameters:
            return name, None
        for parameter, tie in self.facts["tied"].items():
            if name in tie["also"]:
                return parameter, None
        constant = self.facts["graph_constants_from_parameters"].get(name)
        # A transposed constant has to come back under its PyTorch name.
        if constant and constant["how"] in ("same", "rows"):
            return constant["parameter"], constant.get("rows")
        return None


    def offset(self, name: str) -> float:
        """What an exporter that folded `1 + weight` added to the parameter that a tensor of ours is."""
        return self.facts["graph_constants_from_parameters"].get(name, {}).get("offset", 0)


def noise(gradient: np.ndarray) -> np.ndarray:
    """Elements whose gradient is only rounding error (rows of zeros are exact)."""
    small = np.abs(gradient) < NOISE_BELOW
    if gradient.ndim == 2:
        small &= np.any(gradient != 0, axis=1, keepdims=True)
    return small


def compare_parameters(case: Case, checks: Checks, kind: str, actual: Tensors, expected: Tensors, compare, offset_left: float = 0) -> None:
    """Calls compare(name, actual, expected, gradient) for each; all must be there.

    `offset_left`: what is left of a number that is added to a parameter: 0 in gradients.
    """
    seen: Dict[str, str] = {}
    for name, values in actual.items():
        golden = case.golden(name)
        if golden is None:
            if case.facts.get("parameters_lost"):
                continue  # a piece of one, which the exporter folded
            checks.failures.append(f"{kind}: {name} is no parameter of the PyTorch model")
            continue
        parameter, rows = golden
        seen[parameter] = name
        pick = (lambda t: t[rows]) if rows is not None else (lambda t: t)
        while rows is not None and values.ndim > 2 and values.shape[0] == 1:
            values = values[0]  # a folded lookup is a constant of the lookup's shape
        if parameter in case.facts.get("reshaped", []):
            values = values.reshape(expected[parameter].shape)  # a folded view of it
        compare(parameter, values, pick(expected[parameter]) + np.float32(case.offset(name) * offset_left), pick(case.expected["grad." + parameter]))
    checks.equal(f"{kind}: parameters without a tensor", sorted(set(case.facts["parameters"]) - set(seen)), [])


def check_names(case: Case, checks: Checks, weights: Tensors) -> None:
    """A tied parameter is there under each of its names, as a state dict has it."""
    for parameter, tie in case.facts["tied"].items():
        # A bias with the name of the Linear that adds it: nothing in the file says
        # that it is an attribute of another module, too.
        if parameter.endswith(".bias") and tie["graph_constants"] == tie["also"]:
            continue
        for name in tie["also"]:
            names = [case.prefix + name, case.prefix + parameter]
            checks.equal(f"tied names {names}", [n for n in names if n not in weights], [])
            if all(n in weights for n in names):
                checks.near("tied copies", name, weights[names[0]], weights[names[1]], 0.0)


def options_of(case: Case, batch: int, dims: Dict[str, int]) -> List[str]:
    options = [f"--global-batch={batch}", *case.ties(), *case.compile_options]
    if case.dynamic:
        options += [f"--microbatch={batch}", *(f"--dim={name}={value}" for name, value in dims.items())]
    return options


def one_stage(units: Sequence[str], ranks: int, optimizer: str, batch: int) -> dict:
    """All of the model on ranks that share its products."""
    return {
        "format": 1,
        "global_batch": batch,
        "optimizer": optimizer,
        "schedule": "1f1b",
        "replicas": [
            {
                "microbatch_size": batch,
                "microbatches": 1,
                "stages": [{"units": list(units), "devices": [f"n0/{rank}" for rank in range(ranks)]}],
            }
        ],
    }


def compile_case(case: Case, work: str, optimizer: str, batch: int, dims: Dict[str, int]) -> str:
    program = os.path.join(work, optimizer + "".join(f"-{n}{v}" for n, v in dims.items()))
    compile_model = ["autohet-compile", case.path("model.onnx"), *options_of(case, batch, dims)]
    if case.ranks == 1:
        tool(*compile_model, f"--optimizer={optimizer}", "-o", program)
        return program
    table = tool(*compile_model, "--emit=units")
    units = [unit["id"] for unit in json.loads(table[table.index("{\n") :])["units"]]  # remarks come first
    plan, cluster = program + ".plan.json", program + ".cluster.yaml"
    plans.write_plan(plan, one_stage(units, case.ranks, optimizer, batch))
    with open(cluster, "w") as text:
        text.write(plans.cluster_yaml(case.ranks, nodes=1))
    options = [option for option in compile_model if not option.startswith(("--global-batch", "--microbatch"))]
    tool(*options, f"--plan={plan}", f"--cluster={cluster}", "-o", program)
    return program


def check_optimizer(case: Case, work: str, checks: Checks, optimizer: str, extra: List[str]) -> None:
    program = compile_case(case, work, optimizer, *case.dims(case.tensors("inputs")))
    run = Run(work, optimizer).train(
        program, case.path("inputs.safetensors"), case.path("labels.safetensors"), 3, *OPTIMIZERS[optimizer], *extra
    )

    checks.near("logits", "logits", next(iter(run.outputs.values())), case.expected["logits"], LOGITS)
    golden_losses = case.facts[optimizer]["losses"]
    checks.equal(f"{optimizer}: steps", len(run.losses), len(golden_losses))
    # A parameter that the exporter folded away stays as it is: only the first step is PyTorch's.
    lost = bool(case.facts.get("parameters_lost"))
    for step, (actual, expected) in enumerate(zip(run.losses, golden_losses[: 1 if lost else None]), 1):
        # Later losses inherit the weights' difference.
        checks.near("loss", f"{optimizer} step {step}", actual, expected, LOSS if step == 1 else 5 * LOSS)

    zero = set(case.facts["parameters_with_zero_gradient"])

    def gradient(name: str, actual, expected, _) -> None:
        if name in zero:
            checks.near("gradient that is zero", name, actual, expected, ZERO_GRADIENT)
        else:
            checks.near("gradient", name, actual, expected, GRADIENT, float(np.abs(expected).max()))

    def weight(name: str, actual, expected, golden_gradient) -> None:
        if optimizer == "sgd":
            checks.near("weight after sgd", name, actual, expected, SGD_WEIGHT)
            return
        rough = noise(golden_gradient) if name not in zero else np.full(golden_gradient.shape, True)
        checks.near("weight after adamw", name, actual, expected, ADAMW_WEIGHT, where=~rough)
        checks.near("the same, noise", name, actual, expected, ADAMW_NOISE, where=rough)

    golden_gradients = {name: case.expected["grad." + name] for name in case.facts["parameters"]}
    compare_parameters(case, checks, f"{optimizer} gradients", run.gradients[0], golden_gradients, gradient)
    check_names(case, checks, run.weights)
    # Small cases in the repository do without: the later losses tell of the weights.
    if not lost and os.path.exists(case.path(f"after_{optimizer}3.safetensors")):
        # Decoupled decay shrinks the number with the weight that it was added to.
        left = (1 - 1e-3 * 0.01) ** 3 if optimizer == "adamw" else 1
        compare_parameters(case, checks, f"{optimizer} weights", run.weights, case.tensors(f"after_{optimizer}3"), weight, left)


def check_other_shape(case: Case, work: str, checks: Checks, extra: List[str]) -> None:
    other = case.tensors("alt_shape")
    inputs, labels = (os.path.join(work, f"alt-{what}.safetensors") for what in ("inputs", "labels"))
    given = {n[len("inputs.") :]: t for n, t in other.items() if n.startswith("inputs.")}
    write_safetensors(inputs, given)
    write_safetensors(labels, {"labels": other["labels"]})
    program = compile_case(case, work, "sgd", *case.dims(given))
    run = Run(work, "alt").train(program, inputs, labels, 1, *OPTIMIZERS["sgd"], *extra)
    checks.near("logits, other shape", "logits", next(iter(run.outputs.values())), other["logits"], LOGITS)
    checks.near("loss, other shape", "loss", run.losses[0], float(other["loss"].reshape(())), LOSS)


def check_sizes(case: Case, checks: Checks) -> None:
    """A plan may have microbatches of any size: they are one model."""
    _, dims = case.dims(case.tensors("inputs"))
    tables = [json.loads(tool("autohet-compile", case.path("model.onnx"), *options_of(case, batch, dims), "--emit=units")) for batch in (1, 2, 3)]
    for other in tables[1:]:
        checks.equal("structure at other batches", other["structure_hash"], tables[0]["structure_hash"])
        checks.equal("units at other batches", [u["id"] for u in other["units"]], [u["id"] for u in tables[0]["units"]])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("work")
    parser.add_argument("--or-refused", metavar="REGEX", help="a compile error that matches is as good")
    parser.add_argument("--optimizers", default="sgd,adamw")
    parser.add_argument("--tensor-parallel", type=int, default=1, metavar="N", help="ranks that share the products")
    parser.add_argument("--target-cpu", help="compile for this one, not for this machine")
    parser.add_argument("extra", nargs="*", help="options for autohet-run, after --")
    options = parser.parse_args()

    compile_options = [f"--target-cpu={options.target_cpu}"] if options.target_cpu else []
    case, checks = Case(options.case, compile_options, options.tensor_parallel), Checks()
    os.makedirs(options.work, exist_ok=True)
    try:
        for optimizer in options.optimizers.split(","):
            check_optimizer(case, options.work, checks, optimizer, options.extra)
        if case.dynamic:
            check_other_shape(case, options.work, checks, options.extra)
            check_sizes(case, checks)
    except ToolFailed as failure:
        if options.or_refused and failure.status == 1 and re.search(options.or_refused, failure.output):
            print("refused by name:", failure.output.strip().splitlines()[0])
            return
        print("FAIL:", failure)
        sys.exit(1)
    checks.finish()


if __name__ == "__main__":
    main()
