"""Runs the Model phase on every PyTorch golden case and counts the ops it leaves.

    fused_cases.py CASES_FOLDER

Attention, norms, activations and rotary embeddings are recognised as often as
the model's config says, and nothing of their decompositions is left. Needs
Python's standard library alone.
"""

from __future__ import annotations

import collections
import json
import os
import re
import subprocess
import sys
from typing import Dict, List

from import_cases import REFUSED

# What only decomposed norms, activations, attention and rotary are made of. Sums
# and products of activations remain: residuals, gates.
LEFTOVERS = [
    "softmax", "erf", "tanh", "sigmoid", "exp", "sqrt", "rsqrt", "reciprocal", "pow", "neg", "div",
    "sub", "reduce", "concat", "slice", "gather", "gather_nd", "is_nan", "compare", "iota",
]  # fmt: skip


def expected_ops(family: str, config: dict) -> Dict[str, int]:
    layers = config.get("n_layer") or config.get("num_hidden_layers") or config.get("layers")
    if family.startswith("bert"):
        # One norm behind the embeddings and one in the head; gelu in the head too.
        return {"attention": layers, "layer_norm": 2 * layers + 2, "gelu": layers + 1}
    if family == "mixtral":
        # The router: its softmax, the shares of the chosen, their sums, and who has chosen
        # an expert at all; no lookup of weights.
        router = {"softmax": layers, "top_k": layers, "div": layers, "compare": 2 * layers, "reduce": 4 * layers}
        return {**expected_ops("llama", config), **router}
    if family in ("llama", "qwen2"):
        return {"attention": layers, "rms_norm": 2 * layers + 1, "silu": layers, "rotary": 2 * layers}
    return {"attention": layers, "layer_norm": 2 * layers + 1, "gelu": layers}


def model_phase(model: str, facts: dict) -> subprocess.CompletedProcess:
    ties = []
    for tie in facts["tied"].values():
        if tie["form"] == "copies":
            own, *copies = sorted(tie["graph_constants"], key=lambda c: c.startswith(("val_", "onnx::")))
            ties += [f"{own}={copy}" for copy in copies]
    options = ["differentiate=false"]
    if ties:
        options.append("ties=" + ",".join(ties))
    if facts["shapes"] == "dynamic":
        options += ["batch=3", "dims=seq=9"]
    read = subprocess.run(["autohet-translate", "--import-onnx", model], capture_output=True, text=True)
    if read.returncode:
        return read
    pipeline = f"builtin.module(autohet-model{{{' '.join(options)}}})"
    return subprocess.run(
        ["autohet-opt", f"--pass-pipeline={pipeline}"], input=read.stdout, capture_output=True, text=True
    )


def check(facts: dict, text: str) -> List[str]:
    body = "\n".join(line for line in text.splitlines() if "het.weight_source" not in line)
    found = collections.Counter(re.findall(r"(?:= |^ +)het\.(\w+)", body, re.MULTILINE))
    expected = expected_ops(facts["family"], facts["config"])
    problems = [f"{found[op]} het.{op}, wanted {count}" for op, count in expected.items() if found[op] != count]
    problems += [f"{found[op]} het.{op} left" for op in LEFTOVERS if found[op] and op not in expected]
    # A causal mask without padding is an attribute, never a tensor.
    if "attention_mask" not in facts["inputs"] and not facts["family"].startswith("bert"):
        attentions = [line for line in body.splitlines() if "het.attention" in line]
        problems += [f"not causal: {line.strip()}" for line in attentions if "causal" not in line]
    if not found["embedding"]:
        problems.append("no embedding")
    return problems


def main() -> None:
    failures = 0
    for case in sorted(os.listdir(sys.argv[1])):
        folder = os.path.join(sys.argv[1], case)
        if case in REFUSED or not os.path.exists(os.path.join(folder, "case.json")):
            continue
        with open(os.path.join(folder, "case.json")) as file:
            facts = json.load(file)
        done = model_phase(os.path.join(folder, "model.onnx"), facts)
        problems = check(facts, done.stdout) if done.returncode == 0 else [done.stderr[:400]]
        print(case, "ok" if not problems else "FAIL")
        for problem in problems:
            print("   ", problem)
        failures += bool(problems)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
