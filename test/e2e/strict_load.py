"""A trained, exported checkpoint loads strictly into the PyTorch model it came from.

    strict_load.py WORK_FOLDER

For the example's GPT with a tied head, and for a BERT whose head's bias has two
names as well.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import torch

try:
    from transformers import BertConfig, BertForMaskedLM
except ImportError:
    BertConfig = None

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", path) for path in ("python", os.path.join("examples", "gpt"))]
import autohet
from export import GPT
from harness import Run, read_safetensors, tool, write_safetensors


def check(name: str, model: torch.nn.Module, inputs: dict, work: str) -> None:
    def file(end: str) -> str:
        return os.path.join(work, name + end)

    autohet.export(model, inputs, file(".onnx"), allow_unused=True)
    tool("autohet-compile", file(".onnx"), "--global-batch=2", "--microbatch=2", "--optimizer=sgd", "-o", file(""))
    write_safetensors(file(".in"), {key: value.numpy() for key, value in inputs.items()})
    write_safetensors(file(".labels"), {"labels": inputs["input_ids"].numpy()})
    tool("rm", "-rf", file(".checkpoints"))
    run = Run(work, name).train(file(""), file(".in"), file(".labels"), 1, "--lr", "0.1", "--checkpoint", file(".checkpoints"))
    tool("autohet-checkpoint", "export", file(".checkpoints"), file(".safetensors"))

    state = {key: torch.from_numpy(value.copy()) for key, value in read_safetensors(file(".safetensors")).items()}
    before = {key: value.clone() for key, value in model.state_dict().items()}
    print(model.load_state_dict(state, strict=True))
    changed = [key for key, value in model.state_dict().items() if not torch.equal(value, before[key])]
    assert changed, "one step changed nothing"
    # And the gradients are what the file has: one a parameter.
    assert set(run.gradients[0]) <= set(state), sorted(set(run.gradients[0]) - set(state))
    assert all(np.isfinite(value.numpy()).all() for value in state.values())


def main() -> None:
    work = sys.argv[1]
    os.makedirs(work, exist_ok=True)
    torch.manual_seed(0)
    ids = torch.randint(97, (2, 12))
    check("gpt", GPT(97, 12, 32, 2, 4, True), {"input_ids": ids}, work)
    if BertConfig is None:
        print("SKIPPED: the BERT, as transformers is not installed")
        return
    config = BertConfig(
        vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=12, tie_word_embeddings=True,
    )  # fmt: skip
    check("bert", BertForMaskedLM(config), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, work)


main()
