"""Writes the cases beside it: fused nodes of onnxruntime with its own outputs.

    make_cases.py [--only REGEX] [--each FOLDER]

Needs onnx, onnxruntime and numpy. A folder is a family in the layout of ONNX's
backend tests: one model with a node for each case, whose outputs bear the case's
name, with inputs drawn by the family's name and the outputs that onnxruntime's CPU
kernels gave. `--each` writes a folder for each case instead, to look into one.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import shutil
import zlib
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
OPSET = 17
BATCH, LENGTH, HEADS, SIZE = 2, 4, 2, 4
WIDTH = HEADS * SIZE

Array = np.ndarray
Draw = np.random.Generator


@dataclasses.dataclass
class Case:
    op: str
    inputs: Sequence[Optional[Array]]
    """None: an operand that is left out."""
    fields: Dict[str, Any] = dataclasses.field(default_factory=dict)
    outputs: int = 1
    kept: Optional[Sequence[int]] = None
    """Which results there are, if not the first `outputs`."""
    compared: int = 99
    """Of the first so many: the documentation leaves some elements of others open."""
    domain: str = "com.microsoft"
    judged: Optional["Case"] = None
    """The same meaning, where onnxruntime's CPU kernel does not take the form."""


def floats(draw: Draw, *shape: int) -> Array:
    return draw.standard_normal(shape).astype(np.float32)


def ints(*values: Any) -> Array:
    return np.array(values, np.int32)


def tables(positions: int, half: int) -> Tuple[Array, Array]:
    angles = np.outer(np.arange(positions), 10.0 ** -np.arange(half))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


# ===-- Activations, norms, products ----------------------------------------===#


def pointwise(draw: Draw) -> Dict[str, Case]:
    x = floats(draw, BATCH, LENGTH, WIDTH)
    bias = floats(draw, WIDTH)
    return {
        "gelu": Case("Gelu", [x]),
        "bias_gelu": Case("BiasGelu", [x, bias]),
        "fast_gelu": Case("FastGelu", [x]),
        "fast_gelu_bias": Case("FastGelu", [x, bias]),
        "quick_gelu": Case("QuickGelu", [x]),
        "quick_gelu_alpha": Case("QuickGelu", [x], {"alpha": -1.25}),
    }


def norms(draw: Draw) -> Dict[str, Case]:
    x, skip = floats(draw, BATCH, LENGTH, WIDTH), floats(draw, BATCH, LENGTH, WIDTH)
    gamma, beta, bias = (floats(draw, WIDTH) for _ in range(3))
    small = {"epsilon": 1e-3}
    words, places, kinds = floats(draw, 11, WIDTH), floats(draw, 6, WIDTH), floats(draw, 2, WIDTH)
    ids = draw.integers(0, 11, (BATCH, LENGTH)).astype(np.int32)
    segments = draw.integers(0, 2, (BATCH, LENGTH)).astype(np.int32)
    mask = ints([1, 1, 1, 0], [1, 1, 1, 1])
    own_places = draw.integers(0, 6, (BATCH, LENGTH)).astype(np.int32)
    sums = dict(outputs=4, kept=(0, 3))
    return {
        "layer_norm": Case("LayerNormalization", [x, gamma, beta], small, domain=""),
        "simplified_layer_norm": Case("SimplifiedLayerNormalization", [x, gamma], small, domain=""),
        "skip_layer_norm": Case("SkipLayerNormalization", [x, skip, gamma, beta], small),
        "skip_layer_norm_no_beta": Case("SkipLayerNormalization", [x, skip, gamma], small),
        "skip_layer_norm_sum": Case("SkipLayerNormalization", [x, skip, gamma, beta, bias], small, **sums),
        "skip_layer_norm_broadcast": Case("SkipLayerNormalization", [x, skip[:1], gamma, beta, bias], small),
        "skip_layer_norm_matrix": Case("SkipLayerNormalization", [x, skip[0], gamma, beta], small),
        "skip_rms_norm": Case("SkipSimplifiedLayerNormalization", [x, skip, gamma], small),
        "skip_rms_norm_sum": Case("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], small, **sums),
        "embed_layer_norm": Case(
            "EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta], small, 2
        ),
        "embed_layer_norm_mask": Case(
            "EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta, mask], small, 2
        ),
        "embed_layer_norm_sum": Case(
            "EmbedLayerNormalization", [ids, None, words, places, None, gamma, beta, mask], small, 3
        ),
        "embed_layer_norm_places": Case(
            "EmbedLayerNormalization",
            [ids, segments, words, places, kinds, gamma, beta, None, own_places],
            small, 2,
        ),
    }  # fmt: skip


def products(draw: Draw) -> Dict[str, Case]:
    return {
        "fused_matmul": Case("FusedMatMul", [floats(draw, 2, 3, 5), floats(draw, 2, 5, 4)], {"alpha": 0.5}),
        "fused_matmul_transposed": Case(
            "FusedMatMul", [floats(draw, 2, 5, 3), floats(draw, 2, 4, 5)], {"transA": 1, "transB": 1, "alpha": -2.0}
        ),
        "fused_matmul_broadcast": Case("FusedMatMul", [floats(draw, 2, 3, 5), floats(draw, 4, 5)], {"transB": 1}),
        "fused_matmul_batches": Case(
            "FusedMatMul", [floats(draw, 3, 2, 5), floats(draw, 5, 2, 4)], {"transBatchA": 1, "transBatchB": 1}
        ),
        "fused_matmul_batches_transposed": Case(
            "FusedMatMul", [floats(draw, 5, 2, 3), floats(draw, 2, 5, 4)], {"transBatchA": 1, "transA": 1}
        ),
    }


def convolutions(draw: Draw) -> Dict[str, Case]:
    """Of the standard, which has no case for them among those that we have."""
    line, image, room = floats(draw, BATCH, 4, 9), floats(draw, BATCH, 4, 6, 9), floats(draw, 1, 2, 4, 3, 5)
    bias = floats(draw, 6)

    def case(x: Array, out: int, *kernel: int, bias: Optional[Array] = None, group: int = 1, **fields: Any) -> Case:
        weights = floats(draw, out, x.shape[1] // group, *kernel)
        return Case("Conv", [x, weights] + ([] if bias is None else [bias]), {"group": group, **fields}, domain="")

    return {
        "line": case(line, 6, 3, bias=bias),
        "line_padded": case(line, 6, 3, bias=bias, pads=[1, 1], strides=[2]),
        "line_groups": case(line, 6, 4, bias=bias, group=2, pads=[2, 1]),
        "line_depthwise": case(line, 4, 3, group=4, dilations=[2]),
        "patches": case(image, 6, 3, 3, bias=bias, strides=[3, 3]),
        "patches_that_leave_some": case(image, 6, 4, 2, strides=[4, 2]),
        "patches_padded_groups": case(image, 6, 3, 3, bias=bias, strides=[3, 3], pads=[0, 1, 0, 2], group=2),
        "one_by_one": case(image, 6, 1, 1),
        "image": case(image, 6, 3, 2, bias=bias, strides=[1, 2], pads=[1, 0, 2, 1], dilations=[2, 1]),
        "image_same_upper": case(image, 6, 3, 4, auto_pad="SAME_UPPER", strides=[2, 2]),
        "image_same_lower": case(image, 6, 2, 4, auto_pad="SAME_LOWER"),
        "image_valid": case(image, 6, 2, 3, auto_pad="VALID"),
        "room": case(room, 6, 2, 2, 3, bias=bias, pads=[0, 1, 0, 1, 0, 0]),
    }


# ===-- Attention -----------------------------------------------------------===#


def attention(draw: Draw) -> Dict[str, Case]:
    x, weights, bias = floats(draw, BATCH, LENGTH, 6), floats(draw, 6, 3 * WIDTH), floats(draw, 3 * WIDTH)
    past = floats(draw, 2, BATCH, HEADS, 3, SIZE)
    heads = {"num_heads": HEADS}
    causal = {**heads, "unidirectional": 1}
    keys = ints([1, 1, 1, 0], [1, 1, 1, 1])
    pairs = draw.integers(0, 2, (BATCH, LENGTH, LENGTH)).astype(np.int32)
    pairs[:, :, 0] = 1

    def case(*more: Optional[Array], fields: Dict[str, Any] = heads, outputs: int = 1) -> Case:
        return Case("Attention", [x, weights, bias, *more], fields, outputs)

    return {
        "attention": case(),
        "attention_no_bias": Case("Attention", [x, weights], heads),
        "attention_causal": case(fields=causal),
        "attention_scale": case(fields={**heads, "scale": 0.3}),
        "attention_ends": case(ints(3, 4)),
        "attention_ends_and_starts": case(ints(4, 4, 1, 0)),
        "attention_mask": case(keys),
        "attention_mask_value": case(keys, fields={**heads, "mask_filter_value": -1.5}),
        "attention_mask_causal": case(keys, fields=causal),
        "attention_mask_of_pairs": case(pairs),
        "attention_added": case(None, None, floats(draw, BATCH, HEADS, LENGTH, LENGTH)),
        "attention_added_broadcast": case(keys, None, floats(draw, 1, HEADS, LENGTH, LENGTH)),
        "attention_wide_values": Case(
            "Attention", [x, floats(draw, 6, 2 * WIDTH + 12), floats(draw, 2 * WIDTH + 12)],
            {**heads, "qkv_hidden_sizes": [WIDTH, WIDTH, 12]},
        ),
        "attention_present": case(fields=causal, outputs=2),
        "attention_past": case(None, past, fields=causal, outputs=2),
        "attention_past_mask": case(ints([1] * 6 + [0], [0] + [1] * 6), past, fields=heads, outputs=2),
    }  # fmt: skip


def multi_head(draw: Draw) -> Dict[str, Case]:
    q, k, v = (floats(draw, BATCH, LENGTH, WIDTH) for _ in range(3))
    far_k, far_v = floats(draw, BATCH, 5, WIDTH), floats(draw, BATCH, 5, 12)
    past = [floats(draw, BATCH, HEADS, 3, SIZE) for _ in range(2)]
    split = [floats(draw, BATCH, HEADS, 5, SIZE) for _ in range(2)]
    bias = floats(draw, 3 * WIDTH)
    heads = {"num_heads": HEADS}
    causal = {**heads, "unidirectional": 1}
    keys = ints([1, 1, 1, 0], [1, 1, 1, 1])

    def case(*inputs: Optional[Array], fields: Dict[str, Any] = heads, outputs: int = 1) -> Case:
        return Case("MultiHeadAttention", inputs, fields, outputs)

    def apart(array: Array) -> Array:
        return array.reshape(*array.shape[:2], HEADS, 1, -1)

    packed = np.concatenate((apart(q), apart(k), apart(v)), 3)
    packed_kv = np.concatenate((apart(k), apart(v)), 3)

    return {
        "multi_head": case(q, k, v),
        "multi_head_bias": case(q, k, v, bias),
        "multi_head_scale": case(q, k, v, fields={**heads, "scale": 0.2}),
        "multi_head_causal": case(q, k, v, fields=causal),
        "multi_head_cross": case(q, far_k, far_v),
        "multi_head_cross_split": case(q, *split),
        "multi_head_cross_split_bias": case(q, *split, bias),
        "multi_head_ends": case(q, k, v, None, ints(3, 4)),
        "multi_head_mask": case(q, k, v, bias, keys),
        "multi_head_mask_of_pairs": case(q, k, v, None, np.tril(np.ones((BATCH, LENGTH, LENGTH), np.int32))),
        "multi_head_added": case(q, k, v, None, None, floats(draw, 1, 1, LENGTH, LENGTH)),
        "multi_head_present": case(q, k, v, bias, outputs=3),
        "multi_head_past": case(q, k, v, None, None, None, *past, outputs=3),
        "multi_head_past_causal": case(q, k, v, bias, None, None, *past, fields=causal, outputs=3),
        "multi_head_packed": dataclasses.replace(case(packed, None, None, bias), judged=case(q, k, v, bias)),
        "multi_head_packed_kv": dataclasses.replace(case(q, packed_kv), judged=case(q, k, v)),
    }


def rotary(draw: Draw) -> Dict[str, Case]:
    x, split = floats(draw, BATCH, LENGTH, WIDTH), floats(draw, BATCH, HEADS, LENGTH, SIZE)
    half = tables(9, SIZE // 2)
    wide, part = floats(draw, BATCH, HEADS, LENGTH, 6), tables(9, 2)
    places = draw.integers(0, 9, (BATCH, LENGTH))
    first = np.array([2], np.int64)
    return {
        "rotary": Case("RotaryEmbedding", [x, places, *half]),
        "rotary_first": Case("RotaryEmbedding", [x, first, *half]),
        "rotary_interleaved": Case("RotaryEmbedding", [split, places, *half], {"interleaved": 1}),
        "rotary_split": Case("RotaryEmbedding", [split, first, *half]),
        "rotary_part": Case(
            "RotaryEmbedding", [wide, places, *part], {"rotary_embedding_dim": 4, "num_heads": HEADS}
        ),
    }


def group_query(draw: Draw) -> Dict[str, Case]:
    heads, groups, size, length = 4, 2, 16, 4
    q = floats(draw, BATCH, length, heads * size)
    k, v = (floats(draw, BATCH, length, groups * size) for _ in range(2))
    packed = np.concatenate((q, k, v), -1)
    whole = [None, None, ints(length - 1, length - 1), np.array(length, np.int32)]
    past = [floats(draw, BATCH, groups, 3, size) for _ in range(2)]
    token = [t[:, :1] for t in (q, k, v)]
    later = [*past, ints(3, 3), np.array(4, np.int32)]
    ragged = [*past, ints(2, 3), np.array(4, np.int32)]
    cache = tables(9, size // 2)
    fields = {"num_heads": heads, "kv_num_heads": groups}

    def case(*inputs: Optional[Array], outputs: int = 1, compared: int = 99, **more: Any) -> Case:
        return Case("GroupQueryAttention", inputs, {**fields, **more}, outputs, compared=compared)

    # Without the present as results, onnxruntime's kernel forgets the past.
    last = dict(outputs=3, compared=1)

    return {
        "group_query": case(q, k, v, *whole),
        "group_query_present": case(q, k, v, *whole, outputs=3),
        "group_query_packed": case(packed, None, None, *whole),
        "group_query_scale": case(q, k, v, *whole, scale=0.2),
        "group_query_window": case(q, k, v, *whole, local_window_size=2),
        "group_query_cap": case(q, k, v, *whole, softcap=0.7),
        "group_query_smooth": case(q, k, v, *whole, smooth_softmax=1),
        "group_query_sink": case(q, k, v, *whole, None, None, None, None, floats(draw, heads)),
        "group_query_rotary": case(q, k, v, *whole, *cache, do_rotary=1),
        "group_query_rotary_interleaved": case(packed, None, None, *whole, *cache, do_rotary=1, rotary_interleaved=1),
        "group_query_added": case(q, k, v, *whole, None, None, None, floats(draw, 1, heads, length, length)),
        "group_query_cap_added": case(
            q, k, v, *whole, None, None, None, floats(draw, 1, heads, length, length), softcap=0.7
        ),
        "group_query_later": case(*token, *later, outputs=3),
        "group_query_later_ragged": case(*token, *ragged, **last),
        "group_query_later_rotary": case(*token, *ragged, *cache, do_rotary=1, **last),
        "group_query_later_window": case(*token, *later, local_window_size=1, **last),
    }


def halves(draw: Draw) -> Dict[str, Case]:
    """Some of each family in float16, which onnxruntime computes in float32 and rounds
    once a node (GroupQueryAttention more often); and a Gemm, whose bias comes before that."""
    x, weights, bias = floats(draw, 3, 64), floats(draw, 64, WIDTH), floats(draw, WIDTH)
    cases = {"gemm": Case("Gemm", [x, weights, bias], {"alpha": 0.7, "beta": 1.3}, domain="")}
    kinds = "bias_gelu|skip_layer_norm_sum|skip_rms_norm|fused_matmul|attention_mask|multi_head_past"
    for family in (pointwise, norms, products, attention, multi_head):
        cases.update((name, case) for name, case in family(draw).items() if re.fullmatch(kinds, name))

    def halve(array: Optional[Array]) -> Optional[Array]:
        return array if array is None or array.dtype != np.float32 else array.astype(np.float16)

    return {
        f"half_{name}": dataclasses.replace(case, inputs=[halve(array) for array in case.inputs])
        for name, case in cases.items()
    }


FAMILIES: List[Callable[[Draw], Dict[str, Case]]] = [
    pointwise, norms, products, convolutions, attention, multi_head, rotary, group_query, halves,
]  # fmt: skip


# ===-- Files ---------------------------------------------------------------===#


def value(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def model_of(name: str, cases: Dict[str, Case]) -> Tuple[onnx.ModelProto, Dict[str, Array], List[str]]:
    """With the inputs, and the names of the outputs."""
    given: Dict[str, Array] = {}
    names: Dict[int, str] = {}

    def operand(array: Optional[Array]) -> str:
        if array is None:
            return ""
        if id(array) not in names:
            names[id(array)] = f"x{len(names)}"
            given[names[id(array)]] = array
        return names[id(array)]

    nodes, results = [], []
    for name_of_case, case in cases.items():
        kept = case.kept or range(case.outputs)
        outputs = [(f"{name_of_case}.{i}" if i else name_of_case) if i in kept else "" for i in range(case.outputs)]
        inputs = [operand(array) for array in case.inputs]
        nodes.append(helper.make_node(case.op, inputs, outputs, name=name_of_case, domain=case.domain, **case.fields))
        results += [output for output in outputs[: case.compared] if output]
    graph = helper.make_graph(nodes, name, [value(n, a) for n, a in given.items()], [])
    graph.output.extend(onnx.ValueInfoProto(name=result) for result in results)
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, producer_name="autohet")
    return model, given, results


def write(folder: str, cases: Dict[str, Case]) -> None:
    model, given, results = model_of(os.path.basename(folder), cases)
    judge, operands, _ = model_of("judge", {name: case.judged or case for name, case in cases.items()})
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(judge.SerializeToString(), options, ["CPUExecutionProvider"])
    expected = dict(zip(results, session.run(None, operands)))
    model.graph.ClearField("output")
    model.graph.output.extend(value(name, array) for name, array in expected.items())
    data = os.path.join(folder, "test_data_set_0")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, tensors in (("input", given), ("output", expected)):
        for i, (name, array) in enumerate(tensors.items()):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(np.asarray(array), name).SerializeToString())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--each", metavar="FOLDER")
    options = parser.parse_args()
    for family in FAMILIES:
        name = family.__name__
        cases = family(np.random.default_rng(zlib.crc32(name.encode())))
        if not options.each and re.search(options.only, name):
            write(os.path.join(HERE, name), cases)
        for one in cases if options.each else ():
            if re.search(options.only, one):
                write(os.path.join(options.each, f"test_{one}"), {one: cases[one]})


if __name__ == "__main__":
    main()
