"""The test models with weights, and data for them.

    models.py NAME FOLDER [--batch B] [--blocks K] [--seed S]

Writes FOLDER/model.onnx, inputs.safetensors and labels.safetensors (K global
batches of B samples). A weight depends on the seed and its name only, so every
machine gets the same file; none is zero or equal to another.
"""

from __future__ import annotations

import argparse
import itertools
import os
import zlib
from typing import Iterator, Sequence, Tuple

import numpy as np

from harness import write_safetensors

HERE = os.path.dirname(os.path.abspath(__file__))
# Besides: gpt-masks, whose outputs are what gpt-dropout's dropouts give, and gpt-table.
NAMES = ("gpt", "gpt-untied", "gpt-awkward", "gpt-dropout", "bert", "bert-untied", "llama", "llama-tied", "mixtral")


# Of matrices and biases. Where steps of lr 0.1 are close to instability, rounding
# grows up to fivefold a step: after ten, one process would differ from itself
# with another microbatch by more than equality.py allows.
DEVIATIONS = {"gpt": np.float32(0.1), "bert": np.float32(0.05), "llama": np.float32(0.05), "mixtral": np.float32(0.05)}


def zero_gradient(name: str, shape: Tuple[int, ...]) -> np.ndarray:
    """A bias of attention keys without rotary cancels in the softmax."""
    if name.endswith("qkv.bias"):  # queries, keys, values
        return np.repeat([False, True, False], shape[0] // 3)
    return np.bool_(name.endswith("self.key.bias"))


def generator(seed: int, name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))


def decompose_attention(onnx, node, names: Iterator[int]) -> list:
    """Causal attention as exporters without the op write it, to put dropout inside."""
    (query, key, value), out = node.input, node.output[0]

    def make(kind: str, inputs: Sequence[str], output: str = "", **attributes):
        output = output or f"attention_{next(names)}"
        nodes.append(onnx.helper.make_node(kind, inputs, [output], name=output + "_node", **attributes))
        return output

    nodes: list = []
    keys = make("Transpose", [key], perm=[0, 1, 3, 2])
    scores = make("Mul", [make("MatMul", [query, keys]), "attention_scale"])
    probabilities = make("Softmax", [make("Add", [scores, "attention_mask_value"])], axis=-1)
    make("MatMul", [probabilities, value], out)
    return nodes


def add_dropout(graph, head_size: int, length: int) -> None:
    """Dropout as training-mode exports have it: after the embeddings, in attention
    and after each gelu (which tensor parallelism divides), before each residual sum."""
    import onnx

    def constant(name: str, values) -> None:
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(values), name))

    constant("dropout_ratio", np.float32(0.2))
    constant("dropout_training", np.True_)
    constant("attention_scale", np.float32(head_size**-0.5))
    constant("attention_mask_value", np.triu(np.full((length, length), -np.inf, np.float32), 1))
    names = itertools.count()
    biased = {node.output[0] for node in graph.node if node.op_type == "Add" and node.input[1].endswith(("proj.bias", "out.bias"))}
    nodes = []
    for whole in graph.node:
        for node in decompose_attention(onnx, whole, names) if whole.op_type == "Attention" else [whole]:
            nodes.append(node)
            name = node.output[0]
            if name == "add" or name in biased or node.op_type in ("Gelu", "Softmax"):
                node.output[0] = name + "_before_dropout"
                nodes.append(onnx.helper.make_node(
                    "Dropout", [node.output[0], "dropout_ratio", "dropout_training"], [name], name=name + "_dropout",
                ))  # fmt: skip
    del graph.node[:]
    graph.node.extend(nodes)


def show_dropout(graph) -> None:
    """What each dropout gives becomes an output: where it is zero, the mask was."""
    import onnx

    for node in graph.node:
        if node.op_type == "Dropout":
            graph.output.append(onnx.helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, None))


def lengthen_table(graph) -> None:
    """As many tokens as make the table too large for one owner: its rows are shared out."""
    for tensor in graph.initializer:
        if tensor.dims and tensor.dims[0] == 97:
            tensor.dims[0] = 16384
    graph.output[0].type.tensor_type.shape.dim[-1].dim_value = 16384
    del graph.value_info[:]


def write_model(name: str, path: str, seed: int = 1) -> None:
    import onnx

    base, _, variant = name.partition("-")
    variant = variant if variant in ("dropout", "masks", "table") else ""
    model = onnx.load(os.path.join(HERE, "models", (base if variant else name) + ".onnx"))
    if variant == "table":
        lengthen_table(model.graph)
    elif variant:
        add_dropout(model.graph, head_size=12, length=12)
    if variant == "masks":
        show_dropout(model.graph)
    for tensor in model.graph.initializer:
        if tensor.raw_data or not tensor.dims:
            continue  # no parameter: those have no elements yet
        values = generator(seed, tensor.name).standard_normal(tuple(tensor.dims), np.float32) * DEVIATIONS[base]
        if len(tensor.dims) == 1 and tensor.name.endswith(".weight"):
            values += 1  # a norm's
        tensor.raw_data = values.astype("<f4").tobytes()
    onnx.save(model, path)


def write_data(name: str, folder: str, batch: int, blocks: int = 1, seed: int = 1) -> None:
    """Random tokens; a label in five is ignored, unevenly over the samples, and one sample's whole."""
    vocabulary, length = (101, 11) if name == "gpt-awkward" else (97, 12)
    draw = generator(seed, "data")
    shape = (batch * blocks, length)
    inputs = {"input_ids": draw.integers(0, vocabulary, shape)}
    if not name.startswith("gpt"):
        # Padding of different length at the end of some samples.
        padding = draw.integers(0, length // 3, shape[:1]) * (draw.random(shape[:1]) < 0.5)
        inputs["attention_mask"] = (np.arange(length) < length - padding[:, None]).astype(np.int64)
    labels = draw.integers(0, vocabulary, shape)
    labels[draw.random(shape) < draw.random((shape[0], 1)) * 0.4] = -100
    labels[3::batch] = -100  # a microbatch of its own counts nothing
    write_safetensors(os.path.join(folder, "inputs.safetensors"), inputs)
    write_safetensors(os.path.join(folder, "labels.safetensors"), {"labels": labels})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=[*NAMES, "gpt-masks", "gpt-table"])
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=1, help="global batches in the files")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    write_model(options.name, os.path.join(options.folder, "model.onnx"), options.seed)
    write_data(options.name, options.folder, options.batch, options.blocks, options.seed)


if __name__ == "__main__":
    main()
