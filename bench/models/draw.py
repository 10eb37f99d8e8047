"""Inputs for models, and what onnxruntime makes of them, as backend test cases.

    draw.py FOLDER OUT [--extent N] [--largest BYTES]

Writes OUT/NAME/model.onnx with all dims bound, and a test_data_set_0, for each
FOLDER/NAME.onnx that onnxruntime runs. Numbers are drawn by the file's name: floats
around 0, and 0 or 1 for integers, which is an id, a mask and a length at once.
"""

from __future__ import annotations

import argparse
import glob
import os
import zlib
from typing import Dict

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper


def bind(model: onnx.ModelProto, extent: int) -> None:
    own = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in own]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    del model.graph.value_info[:]
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value") or dim.dim_value < 0:
                dim.dim_value = extent
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def draw(model: onnx.ModelProto, random: np.random.Generator, largest: int) -> Dict[str, np.ndarray]:
    inputs = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            raise ValueError(f"input '{value.name}' has no shape")
        shape = [dim.dim_value for dim in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if dtype.kind not in "fiub" or int(np.prod(shape)) * dtype.itemsize > largest:
            raise ValueError(f"input '{value.name}' is {dtype} of {shape}")
        numbers = random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 2, shape)
        inputs[value.name] = np.asarray(numbers).astype(dtype)
    return inputs


def write(path: str, folder: str, extent: int, largest: int) -> None:
    model = onnx.load(path)
    bind(model, extent)
    inputs = draw(model, np.random.default_rng(zlib.crc32(os.path.basename(path).encode())), largest)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(None, inputs)))
    if not all(isinstance(array, np.ndarray) for array in outputs.values()):
        raise ValueError("an output is no tensor")
    for value in model.graph.output:
        array = outputs[value.name]
        value.CopyFrom(helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, (name, array) in enumerate(tensors.items()):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(array, name).SerializeToString())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--extent", type=int, default=2)
    parser.add_argument("--largest", type=int, default=1 << 26, metavar="BYTES", help="of an input")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    # Files that lie in folders bring their own data.
    for path in sorted(glob.glob(os.path.join(options.folder, "*.onnx"))):
        name = os.path.splitext(os.path.basename(path))[0]
        try:
            write(path, os.path.join(options.out, name), options.extent, options.largest)
        except Exception as error:  # noqa: BLE001
            print(f"{name}: onnxruntime does not run it: {str(error).strip().splitlines()[0][:160]}", flush=True)


if __name__ == "__main__":
    main()
