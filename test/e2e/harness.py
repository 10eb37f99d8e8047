"""What end-to-end tests share: run the tools, read and compare tensors.

Reads safetensors by itself, so that a test does not check the tools' reader
and writer with themselves. Needs numpy and nothing else.
"""

from __future__ import annotations

import json
import os
import shlex
import struct
import subprocess
import sys
from typing import Dict, List, Mapping, Optional, Sequence

import numpy as np

Tensors = Dict[str, np.ndarray]

_DTYPES = {
    "F32": "<f4", "F64": "<f8", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "i1", "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?",
}  # fmt: skip
_NAMES = {np.dtype(code).newbyteorder("="): name for name, code in _DTYPES.items()}

# A run that hangs is a failure of its own; none of ours takes minutes.
TIMEOUT_S = 600


def read_safetensors(path: str) -> Tensors:
    with open(path, "rb") as file:
        blob = file.read()
    (header_bytes,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8 : 8 + header_bytes])
    data, end = memoryview(blob)[8 + header_bytes :], 0
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, stop = entry["data_offsets"]
        end = max(end, stop)
        tensors[name] = np.frombuffer(data[begin:stop], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
    if end != len(data):
        raise ValueError(f"{path}: {len(data)} bytes of data, the header describes {end}")
    return tensors


def write_safetensors(path: str, tensors: Mapping[str, np.ndarray]) -> None:
    header, offset, parts = {}, 0, []
    for name, array in tensors.items():
        array = np.asarray(array)
        header[name] = {
            "dtype": _NAMES[array.dtype.newbyteorder("=")],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        parts.append(array.tobytes())
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_column(path: str, key: str) -> List[float]:
    """A number of every line of a log: one line a step, in order."""
    with open(path) as lines:
        return [json.loads(line)[key] for line in lines if line.strip()]


def read_losses(path: str) -> List[float]:
    return read_column(path, "loss")


class ToolFailed(Exception):
    """A tool exited non-zero. `status` is negative for a signal, as a crash is."""

    def __init__(self, command: Sequence[str], status: int, output: str) -> None:
        super().__init__(f"exit {status}: {shlex.join(command)}\n{output}")
        self.status, self.output = status, output


def tool(*command: str, env: Optional[Mapping[str, str]] = None) -> str:
    """Runs a command line, shows it, and returns what it printed."""
    print("+", shlex.join(command), flush=True)
    finished = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        universal_newlines=True, timeout=TIMEOUT_S, env={**os.environ, **(env or {})},
    )  # fmt: skip
    if finished.returncode:
        raise ToolFailed(command, finished.returncode, finished.stdout)
    return finished.stdout


class Run:
    """One training run: a compiled folder, and what it saved."""

    def __init__(self, folder: str, name: str) -> None:
        self.prefix = os.path.join(folder, name)
        # One entry a step.
        self.losses: List[float] = []
        self.norms: List[float] = []
        self.gradients: List[Tensors] = []
        self.outputs: Tensors = {}  # of the first step
        self.weights: Tensors = {}  # after the last

    def train(self, program: str, inputs: str, labels: str, steps: int, *options: str) -> "Run":
        """Up to step `steps`. Whatever the plan, all copies of a slice have to stay bit-equal."""
        loss, outputs, gradients, weights = (
            self.prefix + end for end in (".loss.jsonl", ".outputs.safetensors", ".gradients{step}.safetensors", ".weights.safetensors")
        )
        for path in (loss, outputs, weights, *(gradients.format(step=step) for step in range(steps))):
            if os.path.exists(path):
                os.remove(path)  # an old one must not pass for a new one
        tool(
            "autohet-run", program, "--steps", str(steps), "--inputs", inputs, "--labels", labels, "--check-copies",
            "--save-loss", loss, "--save-outputs", outputs, "--save-gradients", gradients, "--save-weights", weights,
            *options,
        )  # fmt: skip
        self.losses, self.norms = read_losses(loss), read_column(loss, "gradient_norm")
        self.outputs, self.weights = read_safetensors(outputs), read_safetensors(weights)
        self.gradients = []
        for step in read_column(loss, "step"):
            path = gradients.format(step=step)
            self.gradients.append(read_safetensors(path))
            os.remove(path)  # a run's gradients are many times its weights
        return self


class Checks:
    """Collects comparisons; prints the worst of each kind; fails at the end."""

    def __init__(self) -> None:
        self.worst: Dict[str, tuple] = {}
        self.failures: List[str] = []
        self.count = 0

    def near(self, kind: str, name: str, actual, expected, tolerance: float, relative_to: float = 1.0, where=None) -> None:
        """|actual - expected| <= tolerance * relative_to, elementwise where `where`."""
        actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
        self.count += 1
        if actual.shape != expected.shape:
            self.failures.append(f"{kind} {name}: shape {list(actual.shape)}, expected {list(expected.shape)}")
            return
        difference = np.abs(actual - expected) / (relative_to or 1.0)
        if where is not None:
            difference = np.where(where, difference, 0.0)
        if difference.size == 0:
            return
        place = np.unravel_index(np.nanargmax(np.where(np.isnan(difference), np.inf, difference)), difference.shape)
        worst = float(difference[place])
        if kind not in self.worst or not worst <= self.worst[kind][0]:
            self.worst[kind] = (worst, tolerance, name)
        if not worst <= tolerance:
            self.failures.append(
                f"{kind} {name}: differs by {worst:.3g} (allowed {tolerance:g}) at {[int(i) for i in place]}: "
                f"{actual[place]:.9g}, expected {expected[place]:.9g}"
            )

    def equal(self, what: str, actual, expected) -> None:
        self.count += 1
        if actual != expected:
            self.failures.append(f"{what}: {actual}, expected {expected}")

    def add(self, label: str, other: "Checks") -> None:
        """Takes over the comparisons of one of several runs."""
        self.count += other.count
        self.failures += [f"{label}: {failure}" for failure in other.failures]
        for kind, (worst, tolerance, name) in other.worst.items():
            if kind not in self.worst or not worst <= self.worst[kind][0]:
                self.worst[kind] = (worst, tolerance, f"{label}: {name}")
        if not other.count:
            self.failures.append(f"{label}: nothing was compared")

    def finish(self) -> None:
        for kind, (worst, tolerance, name) in self.worst.items():
            print(f"  {kind:24} worst {worst:.3g} of {tolerance:g} allowed, in {name}")
        for failure in self.failures[:40]:
            print("FAIL:", failure)
        if not self.count:
            print("FAIL: nothing was compared")
        print(f"{self.count} comparisons, {len(self.failures)} failures")
        sys.exit(1 if self.failures or not self.count else 0)
