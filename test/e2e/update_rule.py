"""On equal gradients, updates are bit-equal under every plan.

    update_rule.py WORK_FOLDER [--plans P,Q,...] [--optimizers sgd,adam,adamw]

Sums of floats depend on their order, but not where all numbers are small
integers. Here is a model of that kind: residual blocks of sparse products and
rectifiers with weights -1, 0 and 1, a squared error over a power of two of
elements. Three steps at rate 0 fill the optimizer's state from three unlike
gradients; the job saves, resumes and makes one real step, with clipping, decay
and parameters without decay. Gradients, norms and the weights are then those of
one process, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import shutil
from typing import List

import numpy as np

import plan_cases
import plans
from harness import Checks, Run, ToolFailed, write_safetensors

PLANS = "tensor3,extents-1-2,pipeline3-ends,replicas-unlike-depths,replicas-tensor2-tensor1,all-at-once"
STILL, STEPS = 3, 4
VOCABULARY, LENGTH, HIDDEN, INNER, OUT, BLOCKS = 17, 4, 10, 22, 8, 8
NUMBERS = ["--clip-norm", "0.5", "--weight-decay", "0.05", "--no-decay", "bias$"]


def sparse(draw: np.random.Generator, rows: int, columns: int, density: float) -> np.ndarray:
    """One -1 or 1 in some of the columns: products that stay small."""
    weight = np.zeros((rows, columns), np.float32)
    for column in range(columns):
        if draw.random() < density:
            weight[draw.integers(rows), column] = draw.choice([-1, 1])
    return weight


class ExactModel(plan_cases.Model):
    compile_options = ["--loss=mse"]

    def write(self) -> None:
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        draw = np.random.default_rng(1)
        weights = {"embedding.weight": draw.integers(-1, 2, (VOCABULARY, HIDDEN))}
        nodes = [helper.make_node("Gather", ["embedding.weight", "input_ids"], ["x0"], name="embedding")]

        def add(kind: str, *inputs: str, output: str) -> str:
            nodes.append(helper.make_node(kind, inputs, [output], name=output))
            return output

        for i in range(BLOCKS):
            block = f"block{i}."
            weights[block + "up.weight"] = sparse(draw, HIDDEN, INNER, 1.0)
            weights[block + "up.bias"] = draw.integers(-1, 2, INNER)
            weights[block + "down.weight"] = sparse(draw, INNER, HIDDEN, 0.5)
            weights[block + "down.bias"] = draw.integers(-1, 2, HIDDEN)
            up = add("MatMul", f"x{i}", block + "up.weight", output=block + "up.product")
            inner = add("Relu", add("Add", up, block + "up.bias", output=block + "up"), output=block + "relu")
            down = add("MatMul", inner, block + "down.weight", output=block + "down.product")
            add("Add", f"x{i}", add("Add", down, block + "down.bias", output=block + "down"), output=f"x{i + 1}")
        weights["head.weight"] = sparse(draw, HIDDEN, OUT, 1.0)
        add("MatMul", f"x{BLOCKS}", "head.weight", output="prediction")
        graph = helper.make_graph(
            nodes, "exact",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", LENGTH])],
            [helper.make_tensor_value_info("prediction", TensorProto.FLOAT, ["batch", LENGTH, OUT])],
            [numpy_helper.from_array(np.asarray(values, np.float32), name) for name, values in weights.items()],
        )  # fmt: skip
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.onnx)
        samples = self.batch * STEPS  # unlike ones for each step
        inputs = draw.integers(0, VOCABULARY, (samples, LENGTH))
        labels = draw.integers(-3, 4, (samples, LENGTH, OUT)).astype(np.float32)
        write_safetensors(os.path.join(self.folder, "inputs.safetensors"), {"input_ids": inputs})
        write_safetensors(os.path.join(self.folder, "labels.safetensors"), {"labels": labels})

    def train(self, program: str, name: str) -> List[Run]:
        """The steps at rate 0, and the one that moves the weights."""
        data = [os.path.join(self.folder, what + ".safetensors") for what in ("inputs", "labels")]
        saved = os.path.join(self.folder, name + ".checkpoints")
        shutil.rmtree(saved, ignore_errors=True)
        still = Run(self.folder, name + ".still").train(program, *data, STILL, *NUMBERS, "--lr=0", "--checkpoint", saved)
        moved = Run(self.folder, name).train(program, *data, STEPS, "--lr=0.01", "--checkpoint", saved, "--resume")
        return [still, moved]


def check_bits(checks: Checks, label: str, run: Run, expected: Run) -> None:
    checks.equal(f"{label}: norms", run.norms, expected.norms)
    checks.equal(f"{label}: steps", len(run.gradients), len(expected.gradients))
    pairs = [(f"gradients {i}", *both) for i, both in enumerate(zip(run.gradients, expected.gradients))]
    for what, actual, wanted in [*pairs, ("weights", run.weights, expected.weights)]:
        checks.equal(f"{label}: names of {what}", sorted(actual), sorted(wanted))
        for name in wanted:
            # As bytes: 0 and -0 are not the same bits.
            unlike = np.argwhere(actual[name].view(np.uint32) != wanted[name].view(np.uint32))
            checks.equal(f"{label}: {what}, elements of {name} that differ", unlike[:3].tolist(), [])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--plans", default=PLANS)
    parser.add_argument("--optimizers", default="sgd,adam,adamw")
    options = parser.parse_args()
    checks = Checks()
    try:
        model = ExactModel("exact", options.work, plans.GLOBAL_BATCH, STEPS)
        for optimizer in options.optimizers.split(","):
            alone = model.train(model.compile_alone(optimizer), "one-" + optimizer)
            for name, begun in alone[0].weights.items():
                checks.equal(f"{optimizer}: {name} moved", bool(np.any(alone[1].weights[name] != begun)), True)
            for name in options.plans.split(","):
                replicas = plans.PLANS[name]
                plan = plans.plan_json(replicas, model.units, optimizer)
                program = model.compile_plan(plan, plans.cluster_yaml(plans.device_count(replicas)), f"{name}-{optimizer}")
                for phase, run, expected in zip(("at rate 0", "moved"), model.train(program, f"{name}-{optimizer}"), alone):
                    check_bits(checks, f"{optimizer} {name} {phase}", run, expected)
    except ToolFailed as failure:
        checks.failures.append(str(failure))
    checks.finish()


if __name__ == "__main__":
    main()
