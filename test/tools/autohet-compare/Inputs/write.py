"""Writes the two files that tensors.test compares."""

import os
import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
from harness import write_safetensors

folder = sys.argv[2]
os.makedirs(folder, exist_ok=True)
big = np.arange(12, dtype=np.float32).reshape(3, 4)
other = big.copy()
other[1, 2] += 0.5
left = {
    "model.a": other,
    "model.tiny": np.full(2, 3e-8, np.float32),
    "model.same": np.ones((), np.float64),
    "model.tokens": np.array([1, 2], np.int64),
    "model.half": np.array([0.5, -2, 65504, 6e-8], np.float16),
    "model.left": np.zeros(1, np.float32),
}
right = {
    "a": big,
    "tiny": np.zeros(2, np.float32),
    "same": np.ones((), np.float64),
    "tokens": np.array([1, 2], np.int64),
    "half": np.array([0.5, -2, 65504, 6e-8], np.float16).astype(np.float32),
    "right": np.zeros(1, np.float32),
}
write_safetensors(os.path.join(folder, "a.safetensors"), left)
write_safetensors(os.path.join(folder, "b.safetensors"), right)
write_safetensors(os.path.join(folder, "nan.safetensors"), {"a": np.full((3, 4), np.nan, np.float32)})
