#!/usr/bin/env python3
"""Writes model.onnx, the GPT that scripts/quickstart trains.

    python -m venv env && env/bin/pip install torch onnx onnxscript onnxruntime
    env/bin/python examples/gpt/export.py

A GPT in plain PyTorch: bytes as tokens, 8 equal blocks, freshly initialised.
Its batch is symbolic, so any batch size can be chosen when it is compiled. The
file is in the repository because PyTorch is only needed to make it.
"""

import argparse
import math
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import autohet


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.proj = nn.Linear(hidden, hidden)
        self.ln_2 = nn.LayerNorm(hidden)
        self.fc = nn.Linear(hidden, 4 * hidden)
        self.out = nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, hidden = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, hidden // self.heads).transpose(1, 2)
            for part in self.qkv(self.ln_1(x)).split(hidden, -1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, length: int, hidden: int, layers: int, heads: int, tied: bool) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocabulary, hidden)
        self.wpe = nn.Embedding(length, hidden)
        self.h = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        # GPT-2's: small weights, smaller still where blocks add to the residual.
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                continue
            residual = name.endswith(("proj.weight", "out.weight"))
            nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * layers) if residual else 1))
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.wte(input_ids) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the example GPT as ONNX.")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("-o", "--output", default=os.path.join(here, "model.onnx"))
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--length", type=int, default=64, help="tokens a sample")
    parser.add_argument("--hidden", type=int, default=96)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--opset", type=int, default=23)
    parser.add_argument("--tied", action="store_true", help="one matrix for embedding and head")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = GPT(options.vocabulary, options.length, options.hidden, options.layers, options.heads, options.tied)
    example = torch.randint(options.vocabulary, (2, options.length))
    written = autohet.export(model, example, options.output, opset=options.opset)
    count = sum(math.prod(shape) for shape in written.parameters.values())
    print(f"{written.path}: {len(written.parameters)} parameters, {count} elements; "
          f"differs from PyTorch by at most {written.largest_difference:.2g} of the largest logit")


if __name__ == "__main__":
    main()
