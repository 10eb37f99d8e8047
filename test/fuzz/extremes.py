"""Extreme integers in models: each of an operator's attributes and constants, once.

    extremes.py WORK FOLDER... [--values LIST] [--options TEXT]

Takes the ONNX files below the folders, puts values into every integer that an
operator reads (the first file that has it stands for all) and compiles what
comes out: a model or a message, within 2 GiB and 40 s, never a crash. Fuzzers
seldom meet the one value that makes a product overflow. Exit status: 0 only if
nothing was found; what was is kept in WORK.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import resource
import subprocess
import sys
from typing import Dict, Iterator, List, Optional, Set, Tuple

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, TensorProto, numpy_helper

VALUES = f"{2**63 - 1},{-2**63},{2**62},{2**40},{-2**40},{2**31},3037000500,0,-1"  # the last but two: its square overflows
MEMORY_BYTES, SECONDS, LARGEST_FILE = 2 << 30, 40, 60_000
MOST_ELEMENTS = 8  # of a constant: shapes, axes, pads

Place = Tuple[str, ...]


def places(model: ModelProto) -> Iterator[Tuple[Place, int, int, int]]:
    """What an integer is to its operator; which list it is in, which entry, and which element."""
    users: Dict[str, Place] = {}
    for i, node in enumerate(model.graph.node):
        for j, name in enumerate(node.input):
            users.setdefault(name, (node.domain, node.op_type, f"operand {j}"))
        for j, attribute in enumerate(node.attribute):
            count = {AttributeProto.INT: 1, AttributeProto.INTS: len(attribute.ints)}.get(attribute.type, 0)
            for element in range(count):
                yield (node.domain, node.op_type, attribute.name, str(element)), i, j, element
    for j, tensor in enumerate(model.graph.initializer):
        count = int(np.prod(tensor.dims))
        if tensor.data_type == TensorProto.INT64 and tensor.name in users and count <= MOST_ELEMENTS and not tensor.external_data:
            for element in range(count):
                yield (*users[tensor.name], str(element), str(count)), -1, j, element


def changed(model: ModelProto, node: int, index: int, element: int, value: int) -> ModelProto:
    other = ModelProto()
    other.CopyFrom(model)
    if node < 0:
        tensor = other.graph.initializer[index]
        elements = numpy_helper.to_array(tensor).copy()
        elements.reshape(-1)[element] = value
        tensor.CopyFrom(numpy_helper.from_array(elements, tensor.name))
        return other
    attribute = other.graph.node[node].attribute[index]
    if attribute.type == AttributeProto.INT:
        attribute.i = value
    else:
        attribute.ints[element] = value
    return other


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def fault(path: pathlib.Path, options: List[str]) -> Optional[str]:
    command = ["autohet-compile", str(path), "--emit=units", *options]
    try:
        run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS} s"
    text = run.stderr.decode(errors="replace")
    if run.returncode == 0 or (run.returncode == 1 and "error:" in text):
        return None
    return f"exit status {run.returncode}: {text.strip()[:300]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--values", default=VALUES)
    parser.add_argument("--options", default="--mode=inference --batch-dim=none")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    values = [int(value) for value in arguments.values.split(",")]
    seen: Set[Place] = set()
    tries: List[Tuple[str, pathlib.Path]] = []
    for folder in arguments.folders:
        for path in sorted(folder.rglob("*.onnx")):
            if path.stat().st_size > LARGEST_FILE:
                continue
            model = onnx.load(path, load_external_data=False)
            for place, *where in places(model):
                if place in seen:
                    continue
                seen.add(place)
                for value in values:
                    changed_path = arguments.work / f"{len(tries)}.onnx"
                    changed_path.write_bytes(changed(model, *where, value).SerializeToString())
                    tries.append((f"{' '.join(filter(None, place))} = {value}", changed_path))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = list(pool.map(lambda one: fault(one[1], arguments.options.split()), tries))
    for (what, path), found in zip(tries, faults):
        if found:
            print(f"FAIL {what}: {found}\n  {path}")
        else:
            path.unlink()
    failures = sum(found is not None for found in faults)
    print(f"{len(seen)} integers of operators, {len(tries)} files, {failures} failures")
    return 1 if failures or not tries else 0


if __name__ == "__main__":
    sys.exit(main())
