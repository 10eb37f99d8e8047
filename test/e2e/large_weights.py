"""A model of more weights than a compiler should ever have in memory.

    large_weights.py FOLDER [--gigabytes N]

Writes a chain of matrix products whose external weights are a sparse file, and
measures what importing and compiling it take. Compiling reads all of it once,
for the checksums in weights.index, so it takes time in proportion; importing
does not read it. Needs onnx.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import Tuple

import onnx
from onnx import TensorProto, helper

LAYERS = 16
MORE_MB = 100  # than for a model of next to no weights
IMPORT_S = 5


def write_model(folder: str, total_bytes: float) -> Tuple[str, int]:
    width = int((total_bytes / LAYERS / 4) ** 0.5)
    weight_bytes = 4 * width * width
    weights, nodes, value = [], [], "x"
    for layer in range(LAYERS):
        name = f"w{layer}"
        weight = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[width, width])
        weight.data_location = TensorProto.EXTERNAL
        for key, text in ("location", "weights.bin"), ("offset", layer * weight_bytes), ("length", weight_bytes):
            weight.external_data.add(key=key, value=str(text))
        weights.append(weight)
        nodes.append(helper.make_node("MatMul", [value, name], [f"y{layer}"], name=f"product{layer}"))
        value = f"y{layer}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name in ("x", value)]
    model = helper.make_model(
        helper.make_graph(nodes, "large", ends[:1], ends[1:], weights),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    with open(os.path.join(folder, "weights.bin"), "wb") as file:
        file.truncate(LAYERS * weight_bytes)
    return path, LAYERS * weight_bytes


def measure(*command: str) -> Tuple[float, float]:
    """Seconds, and megabytes that were resident at most, mapped files included."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"FAIL: {' '.join(command)} ended with {child.returncode}")
    return time.monotonic() - begin, usage.ru_maxrss / 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--gigabytes", type=float, default=2)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)

    def commands(model: str) -> dict:
        compile_it = ["autohet-compile", model, "--mode=inference", "--microbatch=1"]
        return {
            "read": ["autohet-translate", "--import-onnx", model],
            "imported": [*compile_it, "--emit=imported"],
            "compiled": [*compile_it, "-o", os.path.join(options.folder, "out")],
        }

    model, _ = write_model(options.folder, 1e6)
    least = {what: measure(*command)[1] for what, command in commands(model).items()}
    model, weights = write_model(options.folder, options.gigabytes * 1e9)
    failed = False
    for what, command in commands(model).items():
        seconds, megabytes = measure(*command)
        wrong = megabytes > least[what] + MORE_MB or (what != "compiled" and seconds > IMPORT_S)
        failed |= wrong
        print(f"{what}: {weights / 1e9:.1f} GB of weights, {megabytes:.0f} MB resident, {seconds:.1f} s{': FAIL' if wrong else ''}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
