"""Small files that ask for much: refused with a message, in bounded time and memory.

    hostile_files.py FOLDER

Each is given to the tool that reads it, which may have so much address space and so
many seconds. A model that can be handled within them may succeed. Also measures
what a graph of 4,000 nodes takes. Needs onnx.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import Callable, Dict, List, Optional, Sequence

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

MEMORY_BYTES = 2 << 30
SECONDS = 20  # of a busy machine: what is refused takes a fraction of one
HUGE = 1 << 40
NODES = 4000
NODES_S = 2  # 0.2 on a machine that has nothing else to do

node = helper.make_node


def constant(name: str, values: Sequence[int], shape: Optional[Sequence[int]] = None) -> TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(values)] if shape is None else shape, values)


def value(name: str, shape: Optional[Sequence] = None, dtype: int = TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes: List[NodeProto], weights: Sequence[TensorProto] = (), functions: Sequence[FunctionProto] = (), inputs=None) -> ModelProto:
    graph = helper.make_graph(nodes, "g", inputs or [value("x", ["n", 4])], [value("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("f", 1)], functions=functions, ir_version=10)


def chain(count: int, make: Callable[[str, str, int], NodeProto], **rest) -> ModelProto:
    """x goes through `count` nodes; the last one's result is y."""
    names = ["x", *(f"v{i}" for i in range(1, count)), "y"]
    return model([make(a, b, i) for i, (a, b) in enumerate(zip(names, names[1:]))], **rest)


def declared_outputs(count: int) -> ModelProto:
    """One node with `count` results that nothing reads, and a type for each."""
    names = [f"o{i}" for i in range(count)]
    made = model([node("Tanh", ["x"], ["y", *names])])
    made.graph.value_info.extend(value(name, [1, 4]) for name in names)
    return made


def doubling_functions(depth: int) -> ModelProto:
    functions = []
    for level in range(depth):
        called = [node(f"F{level + 1}", ["a"], ["b"], domain="f"), node(f"F{level + 1}", ["b"], ["c"], domain="f")]
        body = called if level + 1 < depth else [node("Tanh", ["a"], ["c"])]
        imports = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
        functions.append(helper.make_function("f", f"F{level}", ["a"], ["c"], body, imports))
    return model([node("F0", ["x"], ["y"], domain="f")], functions=functions)


def branch(nodes: List[NodeProto], name: str) -> GraphProto:
    return helper.make_graph(nodes, "b", [], [value(name)])


def nested_ifs(depth: int) -> ModelProto:
    inner = [node("Tanh", ["x"], ["r"])]
    for _ in range(depth):
        inner = [node("If", ["c"], ["r"], then_branch=branch(inner, "r"), else_branch=branch([node("Relu", ["x"], ["r"])], "r"))]
    return model([*inner, node("Identity", ["r"], ["y"])], [helper.make_tensor("c", TensorProto.BOOL, [], [True])])


def nested_messages(depth: int) -> bytes:
    """A graph in an attribute of a node of a graph …: deeper than protobuf's own writer goes."""

    def field(number: int, data: bytes) -> bytes:
        length, size = len(data), b""
        while length >= 128:
            size += bytes([length & 127 | 128])
            length >>= 7
        return bytes([number << 3 | 2]) + size + bytes([length]) + data

    data = b""
    for _ in range(depth):
        data = field(1, field(4, b"If") + field(5, field(1, b"then_branch") + field(6, data)))
    return b"\x08\x0a" + field(7, data)


def long_loop(trips: int, nested: int = 0) -> ModelProto:
    def body(depth: int) -> GraphProto:
        # An inner loop carries the outer one's value.
        inner = node("Tanh", ["a"], ["b"]) if depth == 0 else node("Loop", ["m", "", "a"], ["b"], body=body(depth - 1))
        return helper.make_graph(
            [inner, node("Identity", ["c"], ["d"])], "l",
            [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("a", ["n", 4])],
            [value("d", [], TensorProto.BOOL), value("b", ["n", 4])],
        )  # fmt: skip

    return model([node("Loop", ["m", "", "x"], ["y"], body=body(nested))], [constant("m", [trips], [])])


def external(offset: int, length: int) -> ModelProto:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL)
    for key, text in ("location", "model.onnx"), ("offset", offset), ("length", length):
        weight.external_data.add(key=key, value=str(text))
    return model([node("MatMul", ["x", "w"], ["y"])], [weight])


def huge_weight() -> ModelProto:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[HUGE, 4], raw_data=b"1234")
    return model([node("MatMul", ["x", "w"], ["y"])], [weight])


def sparse() -> ModelProto:
    result = model([node("Add", ["x", "w"], ["y"])])
    tensor = result.graph.sparse_initializer.add(dims=[HUGE, 4])
    tensor.values.CopyFrom(helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0]))
    tensor.indices.CopyFrom(constant("i", [7]))
    return result


def of_shape(*shape: int) -> ModelProto:
    return model([node("ConstantOfShape", ["s"], ["c"]), node("Add", ["x", "c"], ["y"])], [constant("s", shape)])


MODELS: Dict[str, Callable[[], ModelProto]] = {
    "a weight of 2^42 elements and four bytes": huge_weight,
    "a sparse weight of 2^42 elements": sparse,
    "external data at 2^62": lambda: external(1 << 62, 64),
    "external data of 2^62 bytes": lambda: external(0, 1 << 62),
    "a constant of 2^40 elements": lambda: of_shape(HUGE),
    "a constant of 2^80 elements": lambda: of_shape(HUGE, HUGE),
    "a constant of -1 elements": lambda: of_shape(-1),
    "a range of 2^40": lambda: model(
        [node("Range", ["a", "b", "c"], ["r"]), node("Cast", ["r"], ["f"], to=1), node("Add", ["x", "f"], ["y"])],
        [constant("a", [0], []), constant("b", [HUGE], []), constant("c", [1], [])],
    ),
    "an expansion to 2^40": lambda: model([node("Expand", ["x", "s"], ["y"])], [constant("s", [HUGE, 1, 1])]),
    "a tiling of 2^40": lambda: model([node("Tile", ["x", "s"], ["y"])], [constant("s", [1, HUGE])]),
    "padding by 2^40": lambda: model([node("Pad", ["x", "s"], ["y"])], [constant("s", [0, 0, 0, HUGE])]),
    "one-hot of depth 2^40": lambda: model(
        [node("OneHot", ["x", "d", "v"], ["y"])], [constant("d", [HUGE], []), constant("v", [0, 1])], inputs=[value("x", ["n", 4], TensorProto.INT64)]
    ),
    "sixty doublings by Concat": lambda: chain(60, lambda a, b, i: node("Concat", [a, a], [b], axis=1)),
    "forty doublings of a constant": lambda: chain(
        40, lambda a, b, i: node("Concat", ["k" if a == "x" else a] * 2, [b], axis=0), weights=[constant("k", [1, 2])]
    ),
    "functions that call 2^60 times": lambda: doubling_functions(60),
    "ifs nested 30 deep": lambda: nested_ifs(30),
    "a loop of 2^40 turns": lambda: long_loop(HUGE),
    "ten loops of 1,000 turns in each other": lambda: long_loop(1000, nested=9),
    "a name of 8 MB": lambda: chain(3, lambda a, b, i: node("Tanh", [a], [b], name="n" * (8 << 20))),
    "20,000 nodes in a row": lambda: chain(20000, lambda a, b, i: node("Tanh", [a], [b])),
    "1,000 outputs": lambda: model([node("Split", ["x"], ["y", *(f"o{i}" for i in range(999))], axis=1, num_outputs=1000)], inputs=[value("x", ["n", 1000])]),
    "60,000 declared outputs": lambda: declared_outputs(60000),
}  # fmt: skip

LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
}  # fmt: skip
CONFIGS = {
    "2^40 layers": {"num_hidden_layers": HUGE},
    "100,000 layers": {"num_hidden_layers": 100_000},
    "a vocabulary of 2^60": {"vocab_size": 1 << 60},
    "2^40 positions": {"max_position_embeddings": HUGE},
    "a width of 2^40": {"hidden_size": HUGE, "num_attention_heads": HUGE >> 4, "num_key_value_heads": 2},
    "-1 heads": {"num_attention_heads": -1},
}
CLUSTERS = {
    "2^40 devices": "format: 1\nkinds:\n  k: {memory: 1 GiB, flops: 1 GFLOP/s}\nnodes:\n  - {name: n, devices: [{kind: k, count: 1099511627776}]}\n",
    "2^40 nodes": "format: 1\nkinds:\n  k: {memory: 1 GiB, flops: 1 GFLOP/s}\nnodes:\n  - {name: n, count: 1099511627776, devices: [k]}\n",
    "100,000 brackets": "format: " + "[" * 100_000,
    "aliases of aliases": "a0: &a0 [1, 1]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(40)),
}


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Tries:
    def __init__(self) -> None:
        self.count, self.failures = 0, 0

    def add(self, what: str, *command: str) -> float:
        self.count += 1
        begin, fault = time.monotonic(), ""
        try:
            result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS, preexec_fn=limit_memory)
            said = result.stderr.decode(errors="replace")
            if result.returncode not in (0, 1) or (result.returncode == 1 and "error:" not in said):
                fault = f"exit status {result.returncode}: {said[-300:]}"
            errors = [line for line in said.splitlines() if "error:" in line]
            told = (errors[0] if errors else "handled")[:160]
        except subprocess.TimeoutExpired:
            fault = f"no answer in {SECONDS} s"
        seconds = time.monotonic() - begin
        self.failures += bool(fault)
        print(f"{what}: {'FAIL, ' + fault if fault else told}", flush=True)
        return seconds


def layers_of_sixteen(count: int) -> ModelProto:
    """Decomposed norms, products and activations, 16 nodes a layer."""
    weights = [helper.make_tensor("two", TensorProto.FLOAT, [], [2.0]), helper.make_tensor("eps", TensorProto.FLOAT, [], [1e-5])]
    nodes: List[NodeProto] = []

    def add(kind: str, *inputs: str, **attributes) -> str:
        name = f"t{len(nodes)}"
        nodes.append(node(kind, inputs, [name], **attributes))
        return name

    x = "x"
    for layer in range(count // 16):
        for name, shape in ("w", [4, 4]), ("v", [4, 4]), ("g", [4]), ("b", [4]):
            size = 16 if len(shape) == 2 else 4
            weights.append(helper.make_tensor(f"{name}{layer}", TensorProto.FLOAT, shape, [0.01 * (layer + i) for i in range(size)]))
        off = add("Sub", x, add("ReduceMean", x, axes=[-1]))
        variance = add("ReduceMean", add("Pow", off, "two"), axes=[-1])
        norm = add("Div", off, add("Sqrt", add("Add", variance, "eps")))
        hidden = add("MatMul", add("Add", add("Mul", norm, f"g{layer}"), f"b{layer}"), f"w{layer}")
        gate = add("Mul", add("Sigmoid", add("Tanh", hidden)), hidden)
        x = add("Add", x, add("Relu", add("MatMul", gate, f"v{layer}")))
    graph = helper.make_graph(nodes, "g", [value("x", ["n", 4, 4])], [value(x)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def main() -> int:
    folder, tries = sys.argv[1], Tries()
    os.makedirs(folder, exist_ok=True)

    def write(name: str, data: bytes) -> str:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    small = write("small.onnx", chain(2, lambda a, b, i: node("Tanh", [a], [b])).SerializeToString())
    for what, make in MODELS.items():
        path = write("model.onnx", make().SerializeToString())
        tries.add(what, "autohet-compile", path, "--mode=inference", "--microbatch=1", "--emit=units")
    path = write("model.onnx", nested_messages(20_000))
    tries.add("graphs nested 20,000 deep", "autohet-compile", path, "--mode=inference", "--emit=units")
    for what, keys in CONFIGS.items():
        path = write("config.json", json.dumps({**LLAMA, **keys}).encode())
        tries.add(what, "autohet-compile", path, "--microbatch=1", "--seq-len=16", "--emit=units")
    for what, text in CLUSTERS.items():
        path = write("cluster.yaml", text.encode())
        tries.add(what, "autohet-compile", small, "--mode=inference", "--global-batch=2", "--cluster", path, "--emit=scheduled")
    path = write("hostfile", b"host slots=1099511627776\n")
    tries.add("2^40 slots", "autohet-compile", small, "--mode=inference", "--global-batch=2", "--hostfile", path, "--emit=scheduled")

    # One kernel of them all is a function that LLVM takes minutes for.
    path = write("chain.onnx", chain(2000, lambda a, b, i: node("Relu" if i % 2 else "Tanh", [a], [b])).SerializeToString())
    tries.add("2,000 ops in a chain, compiled", "autohet-compile", path, "--mode=inference", "--microbatch=1", "--emit=scheduled")

    path = write("nodes.onnx", layers_of_sixteen(NODES).SerializeToString())
    for what, options in ("read", ["--mode=inference"]), ("differentiated", ["--loss=mse", "--objective=given"]):
        seconds = tries.add(f"{NODES:,} nodes, {what}", "autohet-compile", path, *options, "--microbatch=1", "--emit=units")
        if seconds > NODES_S:
            tries.failures += 1
            print(f"FAIL: {seconds:.1f} s")
    print(f"{tries.count} files, {tries.failures} failures")
    return 1 if tries.failures else 0


if __name__ == "__main__":
    sys.exit(main())
