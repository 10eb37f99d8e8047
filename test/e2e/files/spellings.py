"""Norms, activations, attention and rotary embeddings in the words of many exporters.

Each function returns a model with one output for each spelling, on operands of its own:
equal ones would be computed once. `make_cases.py` writes them; that each spelling becomes
the fused op is counted in spellings.test.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18


class Graph:
    """Nodes with names of their own; numbers become constants."""

    def __init__(self, **inputs: Any):
        self.inputs = [
            helper.make_tensor_value_info(
                name, TensorProto.FLOAT if isinstance(shape, tuple) else shape[0], shape if isinstance(shape, tuple) else shape[1]
            )
            for name, shape in inputs.items()
        ]
        self.nodes: List[onnx.NodeProto] = []
        self.constants: List[onnx.TensorProto] = []
        self.outputs: List[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        name = self.name()
        dtype = np.float32 if isinstance(value, float) else np.int64 if isinstance(value, (int, list)) else None
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def parameter(self, name: str, *shape: int) -> str:
        values = np.random.default_rng(len(self.constants)).standard_normal(shape).astype(np.float32)
        self.constants.append(numpy_helper.from_array(values / 2, name))
        return name

    def __call__(self, op: str, *operands: Any, outputs: int = 1, **fields: Any) -> Any:
        names = [o if isinstance(o, str) else self.constant(o) for o in operands]
        results = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, names, results, name=results[0], **fields))
        return results[0] if outputs == 1 else results

    def own(self, name: str) -> str:
        """An input, a little different each time."""
        return self("Add", name, 0.01 * self.count)

    def output(self, name: str, value: str) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(name)

    def model(self) -> onnx.ModelProto:
        outputs = [onnx.ValueInfoProto(name=name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "spellings", self.inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


# ===-- Norms ---------------------------------------------------------------===#

SQUARES: Dict[str, Callable[[Graph, str], str]] = {
    "pow": lambda g, x: g("Pow", x, 2.0),
    "mul": lambda g, x: g("Mul", x, x),
    "pow_int": lambda g, x: g("Pow", x, 2),
}
MEANS: Dict[str, Callable[[Graph, str, int], str]] = {
    "mean": lambda g, x, n: g("ReduceMean", x, [-1]),
    "positive": lambda g, x, n: g("ReduceMean", x, [2]),
    "unsqueeze": lambda g, x, n: g("Unsqueeze", g("ReduceMean", x, [-1], keepdims=0), [-1]),
    "sum_div": lambda g, x, n: g("Div", g("ReduceSum", x, [-1]), float(n)),
    "sum_mul": lambda g, x, n: g("Mul", 1.0 / n, g("ReduceSum", x, [-1])),
}
QUOTIENTS: Dict[str, Callable[[Graph, str, str], str]] = {
    "sqrt_div": lambda g, d, v: g("Div", d, g("Sqrt", v)),
    "reciprocal": lambda g, d, v: g("Mul", d, g("Reciprocal", g("Sqrt", v))),
    "reciprocal_left": lambda g, d, v: g("Mul", g("Reciprocal", g("Sqrt", v)), d),
    "one_over": lambda g, d, v: g("Mul", d, g("Div", 1.0, g("Sqrt", v))),
    "pow_minus_half": lambda g, d, v: g("Mul", d, g("Pow", v, -0.5)),
    "pow_half": lambda g, d, v: g("Div", d, g("Pow", v, 0.5)),
    "sqrt_of_reciprocal": lambda g, d, v: g("Mul", d, g("Sqrt", g("Reciprocal", v))),
}


def affine(g: Graph, value: str, scale: str, bias: str, turned: bool) -> str:
    if turned:
        return g("Add", bias, g("Mul", scale, value))
    return g("Add", g("Mul", value, scale), bias)


def norms() -> onnx.ModelProto:
    """19 layer norms and 13 RMS norms."""
    n = 8
    g = Graph(x=(2, 3, n))
    scale, bias = g.parameter("scale", n), g.parameter("bias", n)

    def layer(name: str, square: str = "pow", mean: str = "mean", quotient: str = "sqrt_div", turned: bool = False,
              twice: bool = False) -> None:  # fmt: skip
        x = g.own("x")
        mu = MEANS[mean](g, x, n)
        d = g("Sub", x, mu)
        variance = MEANS[mean](g, SQUARES[square](g, d), n)
        plus = g("Add", 1e-5, variance) if turned else g("Add", variance, 1e-5)
        over = g("Sub", x, mu) if twice else d
        g.output(f"layer.{name}", affine(g, QUOTIENTS[quotient](g, over, plus), scale, bias, turned))

    for square in SQUARES:
        layer(f"square_{square}", square=square)
    for mean in MEANS:
        layer(f"mean_{mean}", mean=mean)
    for quotient in QUOTIENTS:
        layer(f"quotient_{quotient}", quotient=quotient)
    layer("turned", turned=True)
    layer("twice", twice=True)
    # As TensorFlow's batch_normalization writes it: x * inv + (bias - mean * inv).
    x = g.own("x")
    mu = g("ReduceMean", x, [-1])
    d = g("Sub", x, mu)
    inverse = g("Reciprocal", g("Sqrt", g("Add", g("ReduceMean", g("Mul", d, d), [-1]), 1e-5)))
    factor = g("Mul", inverse, scale)
    g.output("layer.factored", g("Add", g("Mul", x, factor), g("Sub", bias, g("Mul", mu, factor))))
    # Through float32 and back, which here is the type already.
    wide = g("Cast", g.own("x"), to=TensorProto.FLOAT)
    d = g("Sub", wide, g("ReduceMean", wide, [-1]))
    narrow = g("Cast", g("Div", d, g("Sqrt", g("Add", g("ReduceMean", g("Pow", d, 2.0), [-1]), 1e-5))), to=TensorProto.FLOAT)
    g.output("layer.cast", affine(g, narrow, scale, bias, False))

    def rms(name: str, square: str = "pow", mean: str = "mean", quotient: str = "reciprocal", right: bool = False) -> None:
        x = g.own("x")
        plus = g("Add", MEANS[mean](g, SQUARES[square](g, x), n), 1e-6)
        value = QUOTIENTS[quotient](g, x, plus)
        g.output(f"rms.{name}", g("Mul", value, scale) if right else g("Mul", scale, value))

    for square in SQUARES:
        rms(f"square_{square}", square=square)
    for quotient in QUOTIENTS:
        rms(f"quotient_{quotient}", quotient=quotient)
    rms("right", right=True)
    rms("sum", mean="sum_div")
    x = g.own("x")
    value = QUOTIENTS["reciprocal"](g, x, g("Add", g("ReduceMean", g("Pow", x, 2.0), [-1]), 1e-6))
    g.output("rms.gemma", g("Mul", value, g("Add", scale, 1.0)))
    return g.model()


# ===-- Activations ---------------------------------------------------------===#


def activations() -> onnx.ModelProto:
    """8 gelus by erf, 9 by tanh, 3 silus."""
    g = Graph(x=(2, 3, 8))
    root, half_root = math.sqrt(2.0), math.sqrt(0.5)
    c, s = 0.044715, math.sqrt(2 / math.pi)

    def erf(x: str) -> str:
        return g("Erf", g("Div", x, root))

    def whole(x: str, step: str) -> str:
        return g("Mul", g("Mul", x, g("Add", step, 1.0)), 0.5)

    def tanh(x: str, cube: str) -> str:
        return g("Tanh", g("Mul", g("Add", x, g("Mul", cube, c)), s))

    def turned(x: str) -> str:
        return g("Tanh", g("Mul", s, g("Add", g("Mul", c, g("Pow", x, 3.0)), x)))

    def factored(x: str) -> str:
        one = g("Add", g("Mul", g("Mul", x, c), x), 1.0)
        return g("Mul", g("Mul", x, 0.5), g("Add", g("Tanh", g("Mul", g("Mul", x, s), one)), 1.0))

    def root_written_out(x: str) -> str:
        inner = g("Mul", g("Sqrt", g("Div", 2.0, math.pi)), g("Add", x, g("Mul", g("Pow", x, 3.0), c)))
        return g("Mul", g("Mul", x, 0.5), g("Add", g("Tanh", inner), 1.0))

    for name, spell in {
        "erf.div": lambda x: whole(x, erf(x)),
        "erf.mul": lambda x: whole(x, g("Erf", g("Mul", x, half_root))),
        "erf.mul_left": lambda x: whole(x, g("Erf", g("Mul", half_root, x))),
        "erf.sqrt": lambda x: whole(x, g("Erf", g("Div", x, g("Sqrt", 2.0)))),
        "erf.half_first": lambda x: g("Mul", g("Mul", 0.5, x), g("Add", 1.0, erf(x))),
        "erf.half_last": lambda x: g("Mul", x, g("Mul", g("Add", erf(x), 1.0), 0.5)),
        "erf.half_sum": lambda x: g("Mul", x, g("Add", g("Mul", erf(x), 0.5), 0.5)),
        "erf.div_by_two": lambda x: g("Div", g("Mul", g("Add", 1.0, erf(x)), x), 2.0),
        "tanh.pow": lambda x: whole(x, tanh(x, g("Pow", x, 3.0))),
        "tanh.pow_int": lambda x: whole(x, tanh(x, g("Pow", x, 3))),
        "tanh.square_times": lambda x: whole(x, tanh(x, g("Mul", g("Mul", x, x), x))),
        "tanh.times_square": lambda x: whole(x, tanh(x, g("Mul", x, g("Mul", x, x)))),
        "tanh.turned": lambda x: g("Mul", g("Add", 1.0, turned(x)), g("Mul", 0.5, x)),
        "tanh.half_last": lambda x: g("Mul", x, g("Mul", 0.5, g("Add", 1.0, turned(x)))),
        "tanh.half_whole": lambda x: g("Mul", 0.5, g("Mul", x, g("Add", 1.0, turned(x)))),
        "tanh.factored": factored,
        "tanh.root_written_out": root_written_out,
        "silu.sigmoid": lambda x: g("Mul", x, g("Sigmoid", x)),
        "silu.left": lambda x: g("Mul", g("Sigmoid", x), x),
        "silu.quotient": lambda x: g("Div", x, g("Add", 1.0, g("Exp", g("Neg", x)))),
    }.items():
        g.output(name, spell(g.own("x")))
    return g.model()


# ===-- Attention -----------------------------------------------------------===#

BATCH, HEADS, LENGTH, SIZE = 2, 2, 4, 8
LEAST = float(np.finfo(np.float32).min)


def attention() -> onnx.ModelProto:
    """12 attentions without a mask, 9 causal ones, 6 padded ones, 7 that are both."""
    width = HEADS * SIZE
    g = Graph(q=(BATCH, LENGTH, width), k=(BATCH, LENGTH, width), v=(BATCH, LENGTH, width), seen=[TensorProto.INT64, (BATCH, LENGTH)])
    scale = 1 / math.sqrt(SIZE)

    def heads(x: str, perm: Sequence[int] = (0, 2, 1, 3)) -> str:
        return g("Transpose", g("Reshape", x, [0, 0, HEADS, SIZE]), perm=list(perm))

    def joined(x: str) -> str:
        return g("Reshape", g("Transpose", x, perm=[0, 2, 1, 3]), [0, 0, width])

    def scaled(score: str) -> str:
        return g("Mul", score, scale)

    def scores() -> str:
        return scaled(g("MatMul", heads(g.own("q")), heads("k", (0, 2, 3, 1))))

    def finish(name: str, score: str, axis: int = -1) -> None:
        g.output(name, joined(g("MatMul", g("Softmax", score, axis=axis), heads("v"))))

    # Where the scale is.
    finish("plain.mul", scores())
    finish("plain.axis", scores(), axis=3)
    finish("plain.div", g("Div", g("MatMul", heads(g.own("q")), heads("k", (0, 2, 3, 1))), math.sqrt(SIZE)))
    finish("plain.query", g("MatMul", g("Mul", heads(g.own("q")), scale), heads("k", (0, 2, 3, 1))))
    finish("plain.query_before", g("MatMul", heads(g("Mul", g.own("q"), scale)), heads("k", (0, 2, 3, 1))))
    finish("plain.key", g("MatMul", heads(g.own("q")), g("Mul", scale, heads("k", (0, 2, 3, 1)))))
    root = math.sqrt(scale)
    finish("plain.both", g("MatMul", g("Mul", heads(g.own("q")), root), g("Mul", heads("k", (0, 2, 3, 1)), root)))
    turned = g("Transpose", heads("k"), perm=[0, 1, 3, 2])
    finish("plain.transposed_twice", scaled(g("MatMul", heads(g.own("q")), turned)))
    size = g("Cast", g("Gather", g("Shape", "q"), -1), to=TensorProto.FLOAT)
    by_shape = g("Sqrt", g("Div", size, float(HEADS)))
    finish("plain.scale_of_shape", g("Div", g("MatMul", heads(g.own("q")), turned), by_shape))
    wide = g("Cast", g("Softmax", g("Cast", scores(), to=TensorProto.FLOAT), axis=-1), to=TensorProto.FLOAT)
    g.output("plain.cast", joined(g("MatMul", wide, heads("v"))))
    p = g("Softmax", scaled(g("Einsum", heads(g.own("q")), heads("k"), equation="bhid,bhjd->bhij")), axis=-1)
    g.output("plain.einsum", joined(g("Einsum", p, heads("v"), equation="bhij,bhjd->bhid")))

    # Batch and heads as one dim, as batched products of matrices need it.
    def flat(x: str) -> str:
        return g("Reshape", heads(x), [BATCH * HEADS, LENGTH, SIZE])

    p = g("Softmax", scaled(g("MatMul", flat(g.own("q")), g("Transpose", flat("k"), perm=[0, 2, 1]))), axis=-1)
    g.output("plain.flat", joined(g("Reshape", g("MatMul", p, flat("v")), [BATCH, HEADS, LENGTH, SIZE])))

    # Causal.
    ones = g("ConstantOfShape", [LENGTH, LENGTH], value=helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0]))
    below = g("Cast", g("Trilu", ones, upper=0), to=TensorProto.BOOL)
    line = g("Range", 0, LENGTH, 1)
    row, column = g("Unsqueeze", line, [1]), g("Unsqueeze", line, [0])
    by_place = g("LessOrEqual", column, row)
    least = g("Trilu", g("Expand", LEAST, [LENGTH, LENGTH]), 1, upper=1)
    finish("causal.where", g("Where", below, scores(), -math.inf))
    finish("causal.where_least", g("Where", below, scores(), LEAST))
    finish("causal.where_not", g("Where", g("Not", below), -math.inf, scores()))
    finish("causal.places", g("Where", by_place, scores(), LEAST))
    finish("causal.places_greater", g("Where", g("Greater", column, row), LEAST, scores()))
    finish("causal.added", g("Add", scores(), least))
    finish("causal.added_left", g("Add", g("Unsqueeze", least, [0, 1]), scores()))
    finish("causal.added_where", g("Add", scores(), g("Where", below, 0.0, LEAST)))
    buffer = np.tril(np.ones((1, 1, 2 * LENGTH, 2 * LENGTH), bool))
    cut = g("Slice", g("Slice", g.constant(buffer), [0], [LENGTH], [2]), [0], [LENGTH], [3])
    finish("causal.buffer", g("Where", cut, scores(), -math.inf))

    # Padding, which data say.
    seen = g("Cast", "seen", to=TensorProto.FLOAT)
    wide_seen = g("Unsqueeze", seen, [1, 2])
    hidden = g("Sub", 1.0, wide_seen)
    finish("padded.ten_thousand", g("Add", scores(), g("Mul", hidden, -10000.0)))
    finish("padded.least", g("Add", scores(), g("Mul", hidden, LEAST)))
    is_seen = g("Cast", g("Unsqueeze", "seen", [1, 2]), to=TensorProto.BOOL)
    finish("padded.where", g("Where", is_seen, scores(), -math.inf))
    finish("padded.added_where", g("Add", g("Where", is_seen, 0.0, -math.inf), scores()))
    finish("padded.filled", g("Where", g("Cast", hidden, to=TensorProto.BOOL), LEAST, scores()))
    finish("padded.filled_zeros", g("Add", scores(), g("Where", g("Cast", hidden, to=TensorProto.BOOL), LEAST, hidden)))

    # Both.
    finish("both.and", g("Where", g("And", below, is_seen), scores(), -math.inf))
    finish("both.and_least", g("Add", scores(), g("Where", g("And", below, is_seen), 0.0, LEAST)))
    finish("both.filled", g("Where", is_seen, g("Where", below, scores(), -math.inf), -math.inf))
    padding = g("Where", g("Cast", hidden, to=TensorProto.BOOL), LEAST, 0.0)
    finish("both.least_twice", g("Add", g("Add", scores(), least), padding))
    finish("both.max", g("Add", scores(), g("Max", g("Add", g("Unsqueeze", least, [0, 1]), padding), LEAST)))
    combined = g("Where", g("Equal", g("Add", g("Unsqueeze", least, [0, 1]), wide_seen), 0.0), LEAST, g("Unsqueeze", least, [0, 1]))
    finish("both.equal_zero", g("Add", scores(), combined))
    finish("both.ten_thousand", g("Add", g("Where", below, scores(), LEAST), g("Mul", hidden, -10000.0)))
    return g.model()


def repeated() -> onnx.ModelProto:
    """Attention whose key/value heads are fewer, in four spellings."""
    queries, groups, size, length = 4, 2, 8, 3
    g = Graph(q=(2, queries, length, size), k=(2, groups, length, size), v=(2, groups, length, size))

    def expanded(x: str) -> str:
        wide = g("Expand", g("Unsqueeze", x, [2]), [2, groups, queries // groups, length, size])
        return g("Reshape", wide, [2, queries, length, size])

    def tiled(x: str) -> str:
        return g("Reshape", g("Tile", g("Unsqueeze", x, [2]), [1, 1, 2, 1, 1]), [0, queries, length, size])

    def gathered(x: str) -> str:
        return g("Gather", x, [0, 0, 1, 1], axis=1)

    def joined(x: str) -> str:
        pair = g("Concat", g("Unsqueeze", x, [2]), g("Unsqueeze", x, [2]), axis=2)
        return g("Reshape", pair, [2, queries, length, size])

    for name, repeat in {"expand": expanded, "tile": tiled, "gather": gathered, "concat": joined}.items():
        score = g("Mul", g("MatMul", g.own("q"), g("Transpose", repeat("k"), perm=[0, 1, 3, 2])), 1 / math.sqrt(size))
        g.output(f"repeated.{name}", g("MatMul", g("Softmax", score, axis=-1), repeat("v")))
    return g.model()


# ===-- Rotary --------------------------------------------------------------===#


def rotary() -> onnx.ModelProto:
    """Rotary embeddings, 8 by halves and 3 by neighbours."""
    size, length = 8, 4
    g = Graph(x=(2, 2, length, size))
    rates = g("Div", 1.0, g("Pow", 10000.0, g("Div", g("Cast", g("Range", 0, size, 2), to=TensorProto.FLOAT), float(size))))
    places = g("Cast", g("Range", 0, length, 1), to=TensorProto.FLOAT)
    angles = g("Mul", g("Unsqueeze", places, [1]), g("Unsqueeze", rates, [0]))
    twice = g("Concat", angles, angles, axis=-1)
    cos, sin = g("Cos", twice), g("Sin", twice)

    c, s = g("Cos", angles), g("Sin", angles)
    wide_cos, wide_sin = (g("Unsqueeze", t, [0, 1]) for t in (cos, sin))
    half_cos, half_sin = (g("Slice", t, [0], [2], [1]) for t in (c, s))
    each_cos, each_sin = (
        g("Reshape", g("Expand", g("Unsqueeze", t, [-1]), [length, size // 2, 2]), [length, size]) for t in (c, s)
    )

    def halves(x: str) -> List[str]:
        return [g("Slice", x, [0], [size // 2], [3]), g("Slice", x, [size // 2], [1000], [-1])]

    def neighbours(x: str) -> List[str]:
        return [g("Slice", x, [0], [1000], [3], [2]), g("Slice", x, [1], [1000], [3], [2])]

    def pairs(x: str) -> List[str]:
        apart = g("Reshape", x, [0, 0, 0, size // 2, 2])
        return [g("Gather", apart, 0, axis=4), g("Gather", apart, 1, axis=4)]

    def turned(x: str) -> str:
        first, second = halves(x)
        return g("Concat", g("Neg", second), first, axis=-1)

    def woven(p: str, q: str) -> str:
        return g("Reshape", g("Concat", g("Unsqueeze", p, [-1]), g("Unsqueeze", q, [-1]), axis=-1), [0, 0, 0, size])

    def sums(x: str, turn: str, cos: str = cos, sin: str = sin) -> str:
        return g("Add", g("Mul", x, cos), g("Mul", turn, sin))

    def split(x: str, negate: Callable[[str], str]) -> str:
        first, second = g("Split", x, [size // 2, size // 2], outputs=2, axis=3)
        return sums(x, g("Concat", negate(second), first, axis=3))

    def parts(a: str, b: str) -> List[str]:
        return [g("Sub", g("Mul", a, c), g("Mul", b, s)), g("Add", g("Mul", b, c), g("Mul", a, s))]

    def sum_of_parts(x: str) -> str:
        a, b = halves(x)
        left = g("Add", g("Mul", a, c), g("Neg", g("Mul", b, s)))
        return g("Concat", left, g("Add", g("Mul", a, s), g("Mul", b, c)), axis=-1)

    def part(x: str) -> str:
        some, rest = g("Slice", x, [0], [4], [3]), g("Slice", x, [4], [1000], [3])
        a, b = g("Slice", some, [0], [2], [3]), g("Slice", some, [2], [4], [3])
        pc, ps = (g("Concat", t, t, axis=-1) for t in (half_cos, half_sin))
        return g("Concat", sums(some, g("Concat", g("Neg", b), a, axis=-1), pc, ps), rest, axis=-1)

    def whole_neighbours(x: str) -> str:
        even, odd = neighbours(x)
        return sums(x, woven(g("Neg", odd), even), each_cos, each_sin)

    for name, spell in {
        "halves.plain": lambda x: sums(x, turned(x)),
        "halves.turned": lambda x: g("Add", g("Mul", sin, turned(x)), g("Mul", cos, x)),
        "halves.split": lambda x: split(x, lambda y: g("Neg", y)),
        "halves.minus": lambda x: split(x, lambda y: g("Mul", y, -1.0)),
        "halves.unsqueezed": lambda x: sums(x, turned(x), wide_cos, wide_sin),
        "halves.parts": lambda x: g("Concat", *parts(*halves(x)), axis=-1),
        "halves.sum_of_parts": sum_of_parts,
        "halves.part": part,
        "neighbours.parts": lambda x: woven(*parts(*neighbours(x))),
        "neighbours.whole": whole_neighbours,
        "neighbours.pairs": lambda x: woven(*parts(*pairs(x))),
    }.items():
        g.output(name, spell(g.own("x")))
    return g.model()


MODELS = {"spelled_norms": norms, "spelled_activations": activations, "spelled_attention": attention,
          "spelled_repeated": repeated, "spelled_rotary": rotary}  # fmt: skip
