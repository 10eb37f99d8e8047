"""Who is nearer to the truth where two evaluations of a model differ.

    exact.py CASE...

CASE is a folder that draw.py wrote, with onnxruntime's outputs. The model is compiled
and run here, and evaluated in float64, twice: *as written*, with every float16 value
rounded to its type as the operators' definitions have it, and *unrounded*. Printed are,
of each output, the largest error of either beside both, as a fraction of the largest
value. Needs onnx, and autohet-compile and autohet-run in PATH.
"""

from __future__ import annotations

import glob
import math
import os
import subprocess
import sys
import tempfile
from typing import Dict, List

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

WIDE = TensorProto.DOUBLE
NARROW = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


class LayerNormalization(OpRun):
    """Below opset 17, as onnxruntime's optimiser writes it."""

    def _run(self, x, scale, bias=0.0, axis=-1, epsilon=1e-5, stash_type=None, epsion=None):
        axes = tuple(range(axis % x.ndim, x.ndim))
        centered = x - x.mean(axes, keepdims=True)
        return (centered / np.sqrt((centered**2).mean(axes, keepdims=True) + epsilon) * scale + bias,)


class SkipLayerNormalization(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x, skip, gamma, beta=0.0, bias=0.0, epsilon=1e-12):
        x = x + skip + bias
        centered = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon)
        return (centered / deviation * gamma + beta, centered, deviation, x)[: len(self.onnx_node.output)]


class BiasGelu(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x, bias):
        x = x + bias
        return (x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),)


def split_heads(x: np.ndarray, heads: int) -> np.ndarray:
    return x if x.ndim == 4 else x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def order(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    rows, columns = query.shape[2], key.shape[2]
    return np.where(np.tri(rows, columns, columns - rows), 0.0, -np.inf)


def attend(query: np.ndarray, key: np.ndarray, value: np.ndarray, added: np.ndarray | float) -> np.ndarray:
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]) + added
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result = weights / weights.sum(-1, keepdims=True) @ value
    return result.transpose(0, 2, 1, 3).reshape(query.shape[0], query.shape[2], -1)


class Attention(OpRun):
    """With or without a mask of 0 and 1 by position, and no past."""

    op_domain = "com.microsoft"

    def _run(self, x, weight, bias, mask=None, num_heads=1, unidirectional=0, mask_filter_value=-10000.0, **_fields):
        query, key, value = (split_heads(part, num_heads) for part in np.split(x @ weight + bias, 3, axis=-1))
        added = 0.0 if mask is None else np.where(mask[:, None, None, :] > 0, 0.0, mask_filter_value or -10000.0)
        if unidirectional:
            added = added + order(query, key)
        return (attend(query, key, value, added), np.stack((key, value)))[: len(self.onnx_node.output)]


class MultiHeadAttention(OpRun):
    """With or without biases and a past."""

    op_domain = "com.microsoft"

    def _run(self, query, key, value, bias=None, mask=None, added=None, past_key=None, past_value=None,
             num_heads=1, unidirectional=0, **_fields):  # fmt: skip
        parts = [query, key, value]
        if mask is not None:
            raise NotImplementedError("a mask")
        if bias is not None:
            ends = np.cumsum([part.shape[-1] if part.ndim == 3 else 0 for part in parts])
            parts = [part + own if part.ndim == 3 else part for part, own in zip(parts, np.split(bias, ends[:-1]))]
        query, key, value = (split_heads(part, num_heads) for part in parts)
        if past_key is not None:
            key, value = np.concatenate((past_key, key), 2), np.concatenate((past_value, value), 2)
        added = 0.0 if added is None else added
        if unidirectional:
            added = added + order(query, key)
        return (attend(query, key, value, added), key, value)[: len(self.onnx_node.output)]


class Half(OpRun):
    op_domain = "exact"

    def _run(self, x):
        return (x.astype(np.float16).astype(np.float64),)


def sort_nodes(graph: onnx.GraphProto) -> None:
    """Files of onnxruntime's optimiser have them in any order."""
    known = {"", *(tensor.name for tensor in graph.initializer), *(value.name for value in graph.input)}
    left, ordered = list(graph.node), []
    while left:
        ready = [node for node in left if known.issuperset(node.input)]
        ordered += ready
        known.update(name for node in ready for name in node.output)
        left = [node for node in left if node not in ready]
    # The evaluator would take a result without a name for every operand without one.
    for number, node in enumerate(ordered):
        node.output[:] = [name or f"unused.{number}.{i}" for i, name in enumerate(node.output)]
    del graph.node[:]
    graph.node.extend(ordered)


def round_halves(model: onnx.ModelProto) -> None:
    """Behind every node whose result is float16, and every weight and input."""
    typed = onnx.shape_inference.infer_shapes(model)
    halves = {
        value.name
        for value in [*typed.graph.value_info, *typed.graph.output]
        if value.type.tensor_type.elem_type == TensorProto.FLOAT16
    }
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        for i, name in enumerate(node.output):
            if name in halves:
                node.output[i] = name + "/exact"
                nodes.append(onnx.helper.make_node("Half", [name + "/exact"], [name], domain="exact"))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.opset_import.append(onnx.helper.make_opsetid("exact", 1))


def widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type in NARROW:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def evaluator_of(path: str, is_rounded: bool) -> ReferenceEvaluator:
    model = onnx.load(path)
    for opset in model.opset_import:
        opset.domain = "" if opset.domain == "ai.onnx" else opset.domain
    sort_nodes(model.graph)
    if is_rounded:
        round_halves(model)
    for tensor in model.graph.initializer:
        widen_tensor(tensor)
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type in NARROW:
            value.type.tensor_type.elem_type = WIDE
    del model.graph.value_info[:]
    for node in model.graph.node:
        for field in node.attribute:
            if field.name == "to" and field.i in NARROW:
                field.i = WIDE
            if field.type == onnx.AttributeProto.TENSOR:
                widen_tensor(field.t)
    versions = {opset.domain: opset.version for opset in model.opset_import}
    own = [SkipLayerNormalization, BiasGelu, Attention, MultiHeadAttention, Half]
    if versions.get("", 0) < 17:
        own.append(LayerNormalization)
    return ReferenceEvaluator(model, new_ops=own)


def read(pattern: str) -> Dict[str, np.ndarray]:
    found = {}
    for path in sorted(glob.glob(pattern)):
        tensor = onnx.load_tensor(path)
        found[tensor.name] = numpy_helper.to_array(tensor)
    return found


def run_here(case: str) -> Dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "out")
        model = os.path.join(case, "model.onnx")
        subprocess.run(["autohet-compile", model, "--mode=inference", "--batch-dim=none", "-o", out], check=True, stdout=subprocess.DEVNULL)
        inputs: List[str] = []
        for path in glob.glob(os.path.join(case, "test_data_set_0", "input_*.pb")):
            inputs += ["--inputs", f"{onnx.load_tensor(path).name}={path}"]
        results = os.path.join(work, "{name}.pb")
        subprocess.run(["autohet-run", out, *inputs, "--save-outputs", results], check=True, stdout=subprocess.DEVNULL)
        return read(os.path.join(work, "*.pb"))


def error(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(found.astype(np.float64) - exact).max() / np.abs(exact).max())


def main() -> None:
    print("| file | output | as written: ours | onnxruntime | unrounded: ours | onnxruntime |\n|---|---|---|---|---|---|")
    for case in sys.argv[1:]:
        data = os.path.join(case, "test_data_set_0")
        inputs, theirs, ours = read(os.path.join(data, "input_*.pb")), read(os.path.join(data, "output_*.pb")), run_here(case)
        wide = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in inputs.items()}
        errors: Dict[str, List[str]] = {name: [] for name in ours}
        for is_rounded in (True, False):
            evaluator = evaluator_of(os.path.join(case, "model.onnx"), is_rounded)
            for name, exact in zip(evaluator.output_names, evaluator.run(None, wide)):
                errors[name] += [f"{error(of[name], exact):.1e}" for of in (ours, theirs)]
        for name, cells in errors.items():
            print(f"| {os.path.basename(case.rstrip('/'))} | {name}: {ours[name].dtype} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
