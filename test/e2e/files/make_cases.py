"""Writes the cases beside it: what a file may hold besides plain nodes.

    make_cases.py [--only REGEX] [--list]

Needs onnx, onnxruntime and numpy. Functions, branches and loops, shapes that are computed
in every way, constants of every element type in every field: a folder each, in the layout
of ONNX's backend tests, with onnxruntime's outputs, or, where it refuses the file, those
of ONNX's own evaluator.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import zlib
from typing import Callable, Dict, List, Optional, Tuple

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import spellings
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

HERE = os.path.dirname(os.path.abspath(__file__))
Array = np.ndarray
MODELS: Dict[str, Callable[[], onnx.ModelProto]] = {}


def text(name: str, source: str, edit: Optional[Callable[[onnx.ModelProto], None]] = None) -> None:
    """A model in ONNX's text form."""

    def make() -> onnx.ModelProto:
        model = parser.parse_model(source)
        if edit:
            edit(model)
        return model

    MODELS[name] = make


def head(opset: int = 17, ir: int = 8, **others: int) -> str:
    imports = ", ".join(f'"{domain}" : {version}' for domain, version in {"": opset, **others}.items())
    return f"<ir_version: {ir}, opset_import: [{imports}]>\n"


# ===-- Functions -----------------------------------------------------------===#

text("functions_nested", head(local=1) + """
nested (float[2,3] x) => (float[2,3] y, float[2,3] z) {
  y = local.outer <slope = 0.25> (x)
  z = local.outer (x)
}
<domain: "local", opset_import: ["" : 17, "local" : 1]>
outer <slope: float = 0.5> (a) => (b) {
  t = local.inner <alpha: float = @slope> (a)
  b = local.inner (t)
}
<domain: "local", opset_import: ["" : 17]>
inner <alpha: float = 0.125> (a) => (b) {
  b = LeakyRelu <alpha: float = @alpha> (a)
}
""")  # fmt: skip

text("functions_attributes", head(local=1) + """
attributes (float[2,3,4] x) => (float[4,3,2] y, float[2,12] z, float[2,3,4] w, float[2,3,4] left) {
  y = local.turn <perm = [2, 1, 0]> (x)
  z = local.shaped <shape = [2, -1]> (x)
  w = local.plus <by = 2.5> (x)
  left = local.scaled (x)
}
<domain: "local", opset_import: ["" : 17]>
turn <perm> (a) => (b) { b = Transpose <perm: ints = @perm> (a) }
<domain: "local", opset_import: ["" : 17]>
shaped <shape> (a) => (b) {
  s = Constant <value_ints: ints = @shape> ()
  b = Reshape (a, s)
}
<domain: "local", opset_import: ["" : 17]>
plus <by> (a) => (b) {
  s = Constant <value_float: float = @by> ()
  b = Add (a, s)
}
<domain: "local", opset_import: ["" : 17]>
scaled <alpha> (a) => (b) { b = Elu <alpha: float = @alpha> (a) }
""")  # fmt: skip

text("functions_optional", head(local=1) + """
optional (float[2,3] x, float low, float high) => (float[2,3] a, float[2,3] b, float[2,3] c, float[2,2] d) {
  a = local.clamp (x, low)
  b = local.clamp (x, , high)
  c = local.clamp (x, low, high)
  d, e = local.best (x)
}
<domain: "local", opset_import: ["" : 17]>
clamp (x, low, high) => (y) { y = Clip (x, low, high) }
<domain: "local", opset_import: ["" : 17]>
best (x) => (y, place) {
  k = Constant <value_ints: ints = [2]> ()
  y, place = TopK (x, k)
}
""")  # fmt: skip

# The function's own opset says what form a node has.
text("functions_opset", head(local=1) + """
opset (float[2,3,4] x) => (float[2,3] y, float[2,4] z) {
  y = local.old (x)
  axis = Constant <value_ints = [1]> ()
  z = ReduceSum <keepdims = 0> (x, axis)
}
<domain: "local", opset_import: ["" : 11]>
old (a) => (b) { b = ReduceSum <axes = [2], keepdims = 0> (a) }
""")  # fmt: skip

text("functions_branch", head(local=1) + """
branch (float[2,3] x) => (float[2,3] y, float[2,3] z) {
  y = local.either <up = 1> (x)
  z = local.either <up = 0> (x)
}
<domain: "local", opset_import: ["" : 17, "local" : 1]>
either <up: int> (a) => (b) {
  number = Constant <value_int: int = @up> ()
  is = Cast <to = 9> (number)
  b = If (is) <
    then_branch = g1 () => (c) { c = local.twice (a) },
    else_branch = g2 () => (d) { e = Neg (a)  d = Elu <alpha = 0.5> (e) }
  >
}
<domain: "local", opset_import: ["" : 17]>
twice (a) => (b) { b = Add (a, a) }
""")  # fmt: skip

def overload(model: onnx.ModelProto) -> None:
    for node, name in zip(model.graph.node, ("", "b")):
        node.overload = name
    model.functions[1].name = "f"
    model.functions[1].overload = "b"


text("functions_overload", head(17, 10, local=1) + """
overload (float[2,3] x) => (float[2,3] y, float[2,3] z) {
  y = local.f (x)
  z = local.f (x)
}
<domain: "local", opset_import: ["" : 17]>
f (a) => (b) { b = Neg (a) }
<domain: "local", opset_import: ["" : 17]>
g (a) => (b) { b = Exp (a) }
""", overload)  # fmt: skip

# ===-- Shapes --------------------------------------------------------------===#

# Half the length, rounded up, through floats; the root of an area; products and remainders.
text("shapes_floats", head() + """
floats (float[2,9,4] x) => (float[2,5,4] half, float[2,6,6] square, float[2,3,12] parts, float[4] ramp) {
  shape = Shape (x)
  one = Constant <value_ints = [1]> ()
  zero = Constant <value_ints = [0]> ()
  two = Constant <value_ints = [2]> ()
  last = Constant <value_ints = [-1]> ()
  length = Gather <axis = 0> (shape, one)
  width = Gather (shape, last)
  number = Cast <to = 1> (length)
  halves = Constant <value_floats = [2.0]> ()
  quotient = Div (number, halves)
  up = Ceil (quotient)
  end = Cast <to = 7> (up)
  half = Slice (x, zero, end, one)
  area = Mul (length, width)
  areas = Cast <to = 11> (area)
  side = Sqrt (areas)
  down = Floor (side)
  sides = Cast <to = 7> (down)
  batch = Gather (shape, zero)
  s = Concat <axis = 0> (batch, sides, sides)
  square = Reshape (x, s)
  three = Cast <to = 1> (sides)
  third = Mul (three, halfs)
  rounded = Round (third)
  t = Cast <to = 7> (rounded)
  p = Concat <axis = 0> (batch, t, last)
  parts = Reshape (x, p)
  width0 = Squeeze (width)
  stop = Cast <to = 1> (width0)
  start = Constant <value_float = 0.0> ()
  step = Constant <value_float = 1.0> ()
  ramp = Range (start, stop, step)
}
""".replace("halfs", "half_of")
    .replace("  third = ", "  half_of = Constant <value_floats = [0.5]> ()\n  third = "))  # fmt: skip

# What TorchScript writes for expand and its kin.
text("shapes_expand", head() + """
expand (float[1,3,1] x, int64[2,4] ids) => (float[2,3,4] y, float[2,1,4,4] mask, int64[2,4] places) {
  shape = Shape (ids)
  zero = Constant <value_ints = [0]> ()
  one = Constant <value_ints = [1]> ()
  minus = Constant <value_ints = [-1]> ()
  batch = Gather (shape, zero)
  length = Gather (shape, one)
  wanted = Concat <axis = 0> (batch, minus, length)
  rank = Shape (wanted)
  ones = ConstantOfShape <value: tensor = int64[1] {1}> (rank)
  negative = Mul (ones, minus)
  keeps = Equal (wanted, negative)
  target = Where (keeps, ones, wanted)
  y = Expand (x, target)
  square = Concat <axis = 0> (length, length)
  low = ConstantOfShape <value: tensor = float[1] {-100.0}> (square)
  first = Constant <value_int = 1> ()
  triangle = Trilu <upper = 1> (low, first)
  front = Constant <value_ints = [0, 1]> ()
  wide = Unsqueeze (triangle, front)
  whole = Concat <axis = 0> (batch, one, length, length)
  mask = Expand (wide, whole)
  start = Constant <value_int = 0> ()
  step = Constant <value_int = 1> ()
  end = Squeeze (length)
  line = Range (start, end, step)
  row = Unsqueeze (line, zero)
  places = Expand (row, shape)
}
""")  # fmt: skip

# Products, least and greatest, running sums and places of constants are constants.
text("shapes_arithmetic", head() + """
arithmetic (float[2,3,4] x) => (float[24] flat, float[4,6] a, float[6,4] b, float[2,1,3,4] c, float[2,3] d) {
  shape = Shape (x)
  zero = Constant <value_ints = [0]> ()
  all = ReduceProd <keepdims = 1> (shape)
  flat = Reshape (x, all)
  most = ReduceMax <axes = [0], keepdims = 1> (shape)
  rest = Div (all, most)
  s = Concat <axis = 0> (most, rest)
  a = Reshape (x, s)
  places, order = TopK <largest = 0> (s, two)
  sums = CumSum (shape, first)
  last = Constant <value_ints = [-1]> ()
  nine = Gather (sums, last)
  three = Constant <value_ints = [3]> ()
  six = Sub (nine, three)
  four = Mod (ten, six)
  t = Concat <axis = 0> (six, four)
  b = Reshape (x, t)
  place = ArgMin <axis = 0> (shape)
  added = Constant <value_ints = [1]> ()
  inserted = Add (place, added)
  c = Unsqueeze (x, inserted)
  least = Min (shape, three)
  sum = ReduceSum (least, zero)
  eight = Constant <value_ints = [8]> ()
  isEight = Equal (sum, eight)
  whole = ReduceMin <keepdims = 0> (shape)
  end = Where (isEight, added, nine)
  cut = Slice (x, zero, end, minus)
  dropped = Constant <value_ints = [2]> ()
  d = Squeeze (cut, dropped)
}
""".replace("  places, order", "  two = Constant <value_ints = [2]> ()\n  first = Constant <value_int = 0> ()\n"
            "  ten = Constant <value_ints = [10]> ()\n  minus = Constant <value_ints = [-1]> ()\n  places, order"))  # fmt: skip

text("shapes_nonzero", head() + """
nonzero (float[2,3,4] x) => (float[2,2,4] y) {
  keep = Constant <value: tensor = bool[3] {1, 0, 1}> ()
  places = NonZero (keep)
  axis = Constant <value_ints = [0]> ()
  rows = Squeeze (places, axis)
  y = Gather <axis = 1> (x, rows)
}
""")  # fmt: skip

# ===-- Branches and loops --------------------------------------------------===#

text("control_branches", head() + """
branches (float[1,3] x, float[2,3] y) => (float[3] a, float[2,3] b, float[2,3] c) {
  shape = Shape (x)
  zero = Constant <value_ints = [0]> ()
  one = Constant <value_ints = [1]> ()
  count = Gather (shape, zero)
  isOne = Equal (count, one)
  a = If (isOne) <
    then_branch = g1 () => (s) { s = Squeeze (x, zero) },
    else_branch = g2 () => (t) { t = Identity (x) }
  >
  b = If (isOne) <
    then_branch = g3 () => (u) {
      other = Shape (y)
      rows = Gather (other, zero)
      same = Equal (rows, one)
      v = Add (y, x)
      u = If (same) <
        then_branch = g5 () => (p) { p = Neg (v) },
        else_branch = g6 () => (q) { q = Mul (v, y) }
      >
    },
    else_branch = g4 () => (w) { w = Identity (y) }
  >
  larger = Greater (y, x)
  any = Cast <to = 1> (larger)
  most = ReduceMax <keepdims = 0> (any)
  condition = Cast <to = 9> (most)
  c = If (condition) <
    then_branch = g7 () => (m) { m = Add (y, b) },
    else_branch = g8 () => (n) { n = Sub (y, b) }
  >
}
""")  # fmt: skip

text("control_loops", head() + """
loops (float[2,3] x) => (float[2,3] sum, float[4,2,3] rows, float[6,3] grown, float[2,3] early, float[2,3] nested) {
  four = Constant <value_int = 4> ()
  two = Constant <value_int = 2> ()
  yes = Constant <value: tensor = bool {1}> ()
  sum, rows = Loop (four, yes, x) <body = one (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t, float[2,3] row) {
    d = Identity (c)
    number = Cast <to = 1> (i)
    row = Mul (x, number)
    t = Add (s, row)
  }>
  grown = Loop (two, yes, x) <body = two_body (int64 i, bool c, float[n,3] s) => (bool d, float[m,3] t) {
    d = Identity (c)
    shape = Shape (s)
    zero = Constant <value_ints = [0]> ()
    count = Gather (shape, zero)
    first = Slice (s, zero, base, zero)
    t = Concat <axis = 0> (s, first)
  }>
  early = Loop (, yes, x) <body = three (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t) {
    limit = Constant <value_int = 3> ()
    d = Less (i, limit)
    t = Add (s, x)
  }>
  nested = Loop (two, yes, x) <body = four_body (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t) {
    d = Identity (c)
    inner = Loop (i, c, s) <body = five (int64 j, bool e, float[2,3] u) => (bool f, float[2,3] v) {
      f = Identity (e)
      w = Add (s, x)
      v = Add (u, w)
    }>
    t = Mul (inner, x)
  }>
}
""".replace("  four = Constant <value_int = 4> ()", "  four = Constant <value_int = 4> ()\n  base = Constant <value_ints = [2]> ()"))  # fmt: skip

# ===-- Element types -------------------------------------------------------===#

TYPED = {
    "FLOAT": "float_data", "DOUBLE": "double_data", "INT64": "int64_data", "UINT64": "uint64_data", "UINT32": "uint64_data",
    "INT32": "int32_data", "INT16": "int32_data", "INT8": "int32_data", "UINT16": "int32_data", "UINT8": "int32_data",
    "BOOL": "int32_data", "FLOAT16": "int32_data", "BFLOAT16": "int32_data", "FLOAT8E4M3FN": "int32_data",
    "FLOAT8E4M3FNUZ": "int32_data", "FLOAT8E5M2": "int32_data", "FLOAT8E5M2FNUZ": "int32_data", "INT4": "int32_data",
    "UINT4": "int32_data", "FLOAT4E2M1": "int32_data",
}  # fmt: skip
BITS = {"FLOAT16": np.uint16, "BFLOAT16": np.uint16}


def numbers_of(kind: str) -> List[float]:
    if kind == "BOOL":
        return [1, 0, 1]
    if kind.startswith(("UINT2", "UINT4")):
        return [0, 3, 2]
    if kind.startswith("UINT"):
        return [0, 3, 200]
    if kind.startswith("INT4"):
        return [-8, 3, 7]
    if kind.startswith("INT"):
        return [-100, 3, 7]
    return [-1.5, 0.5, 3]


def constant(kind: str, name: str, values: List[float], dims: List[int], raw: bool) -> onnx.TensorProto:
    number = getattr(TensorProto, kind)
    array = np.array(values).astype(helper.tensor_dtype_to_np_dtype(number)).reshape(dims)
    packed = numpy_helper.from_array(array, name)
    if raw:
        return packed
    tensor = TensorProto(name=name, data_type=number, dims=dims)
    wide = {"FLOAT": np.float32, "DOUBLE": np.float64, "INT64": np.int64, "UINT64": np.uint64, "UINT32": np.uint32,
            "INT32": np.int32, "INT16": np.int16, "INT8": np.int8, "UINT16": np.uint16}.get(kind, BITS.get(kind, np.uint8))  # fmt: skip
    getattr(tensor, TYPED[kind]).extend(np.frombuffer(packed.raw_data, wide).tolist())
    return tensor


def types_model(kinds: List[str], opset: int) -> onnx.ModelProto:
    """Each kind as a vector, a number and an empty tensor, in its field and raw; as floats."""
    constants, nodes, outputs = [], [], []
    for kind in kinds:
        for raw in (False, True):
            for part, values in (("vector", numbers_of(kind)), ("number", numbers_of(kind)[:1]), ("empty", [])):
                name = f"{kind}.{part}.{'raw' if raw else 'field'}"
                dims = [] if part == "number" else [len(values)]
                constants.append(constant(kind, name, values, dims, raw))
                nodes.append(helper.make_node("Cast", [name], [f"{name}.float"], to=TensorProto.FLOAT))
                if part == "empty":
                    nodes.append(helper.make_node("Concat", [f"{name}.float", "x"], [f"{name}.y"], axis=0))
                else:
                    nodes.append(helper.make_node("Add", [f"{name}.float", "x"], [f"{name}.y"]))
                outputs.append(f"{name}.y")
    nodes.append(helper.make_node("Concat", outputs, ["y"], axis=0))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    graph = helper.make_graph(nodes, "types", [x], [onnx.ValueInfoProto(name="y")], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


PLAIN = [kind for kind in TYPED if not kind.startswith(("FLOAT8", "FLOAT4", "INT4", "UINT4"))]
MODELS["types_plain"] = lambda: types_model(PLAIN, 17)
MODELS["types_small"] = lambda: types_model([kind for kind in TYPED if kind not in PLAIN], 23)

# ===-- Names ---------------------------------------------------------------===#

NAMES = {
    "in": "entrée \"x\"'s\t輸入/🙂", "table": "../块.0/w \"e\" ight%s\\n", "weight": "..", "head": "голова/..",
    "node": "узел {0}", "out": "выход: \"а\"\nб", "dim": "размер, 1",
}  # fmt: skip


def names_model() -> onnx.ModelProto:
    """Names that mean something to a shell, a path, a printer or a parser, and are none of it here."""
    rng = np.random.default_rng(1)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), NAMES[name])

    nodes = [
        helper.make_node("Gather", [NAMES["table"], NAMES["in"]], ["\n"], name=NAMES["node"]),
        helper.make_node("MatMul", ["\n", NAMES["weight"]], ["h\"h"], name=NAMES["node"]),
        helper.make_node("Tanh", ["h\"h"], ["%0"], name=""),
        helper.make_node("MatMul", ["%0", NAMES["head"]], [NAMES["out"]], name="/"),
    ]
    x = helper.make_tensor_value_info(NAMES["in"], TensorProto.INT64, [2, NAMES["dim"]])
    y = helper.make_tensor_value_info(NAMES["out"], TensorProto.FLOAT, [2, NAMES["dim"], 7])
    weights = [weight("table", 7, 4), weight("weight", 4, 6), weight("head", 6, 7)]
    graph = helper.make_graph(nodes, "имена", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS["names"] = names_model
MODELS.update(spellings.MODELS)


# ===-- Files ---------------------------------------------------------------===#


def inputs_of(model: onnx.ModelProto) -> Dict[str, Array]:
    given = {}
    for i, value in enumerate(model.graph.input):
        kind = value.type.tensor_type
        shape = [dim.dim_value or 3 for dim in kind.shape.dim]
        rng = np.random.default_rng(i + 7)
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        given[value.name] = rng.standard_normal(shape).astype(dtype)
        if np.issubdtype(dtype, np.integer):
            given[value.name] = rng.integers(0, 5, shape).astype(dtype)
    return given


def judged(model: onnx.ModelProto, given: Dict[str, Array]) -> Tuple[List[Array], str]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return session.run(None, given), "onnxruntime"
    except Exception as problem:
        reason = str(problem).splitlines()[0][:90]
    return ReferenceEvaluator(model).run(None, given), f"ONNX's evaluator ({reason})"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only", default="", metavar="REGEX")
    arguments.add_argument("--list", action="store_true", help="say who judged each case")
    options = arguments.parse_args()
    for name, make in MODELS.items():
        if not re.search(options.only, name):
            continue
        model = make()
        given = inputs_of(model)
        results, judge = judged(model, given)
        if options.list:
            print(f"{name}: {judge}")
        names = [output.name for output in model.graph.output]
        folder = os.path.join(HERE, name)
        data = os.path.join(folder, "test_data_set_0")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(data)
        onnx.save(model, os.path.join(folder, "model.onnx"))
        for kind, tensors in (("input", given.items()), ("output", zip(names, results))):
            for i, (tensor, array) in enumerate(tensors):
                with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as stream:
                    stream.write(numpy_helper.from_array(np.asarray(array), tensor).SerializeToString())


if __name__ == "__main__":
    main()
