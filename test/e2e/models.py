"""The test models with weights, and data for them.

    models.py NAME FOLDER [--batch B] [--blocks K] [--seed S]

Writes FOLDER/model.onnx, inputs.safetensors and labels.safetensors (K global
batches of B samples). A weight depends on the seed and its name only, so every
machine gets the same file; none is zero or equal to another.
"""

from __future__ import annotations

import argparse
import os
import zlib

import numpy as np

from harness import write_safetensors

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("gpt", "gpt-untied", "gpt-awkward", "gpt-dropout", "bert", "bert-untied", "llama", "llama-tied")


def zero_gradient(name: str) -> bool:
    """A bias of attention keys without rotary cancels in the softmax."""
    return name.endswith("self.key.bias")


def generator(seed: int, name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))


def add_dropout(graph) -> None:
    """Dropout as training-mode exports have it: after the embeddings, after each
    gelu (which tensor parallelism divides) and before each residual sum."""
    import onnx

    graph.initializer.append(onnx.numpy_helper.from_array(np.array(0.2, np.float32), "dropout_ratio"))
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "dropout_training"))
    biased = {node.output[0] for node in graph.node if node.op_type == "Add" and node.input[1].endswith("proj.bias")}
    nodes = []
    for node in graph.node:
        nodes.append(node)
        name = node.output[0]
        if name == "add" or node.op_type == "Gelu" or name in biased:
            node.output[0] = name + "_before_dropout"
            nodes.append(onnx.helper.make_node(
                "Dropout", [node.output[0], "dropout_ratio", "dropout_training"], [name], name=name + "_dropout",
            ))  # fmt: skip
    del graph.node[:]
    graph.node.extend(nodes)


def write_model(name: str, path: str, seed: int = 1) -> None:
    import onnx

    model = onnx.load(os.path.join(HERE, "models", name.replace("-dropout", "") + ".onnx"))
    if name.endswith("-dropout"):
        add_dropout(model.graph)
    for tensor in model.graph.initializer:
        if not tensor.name.endswith((".weight", ".bias")):
            continue
        values = generator(seed, tensor.name).standard_normal(tuple(tensor.dims), np.float32) * np.float32(0.1)
        if len(tensor.dims) == 1 and tensor.name.endswith(".weight"):
            values += 1  # a norm's
        tensor.raw_data = values.astype("<f4").tobytes()
    onnx.save(model, path)


def write_data(name: str, folder: str, batch: int, blocks: int = 1, seed: int = 1) -> None:
    """Random tokens; a label in five is ignored, unevenly over the samples."""
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
    write_safetensors(os.path.join(folder, "inputs.safetensors"), inputs)
    write_safetensors(os.path.join(folder, "labels.safetensors"), {"labels": labels})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=NAMES)
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
