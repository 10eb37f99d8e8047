"""PyTorch's time for the training steps that bench/host compares with.

Prints one JSON line a step. The model is examples/gpt's; run by bench/host/run.
"""

import argparse
import json
import os
import sys
import time

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "examples", "gpt")]
from export import GPT

parser = argparse.ArgumentParser()
for name in ("vocabulary", "length", "hidden", "layers", "heads", "batch", "steps", "threads"):
    parser.add_argument("--" + name, type=int, required=True)
parser.add_argument("--tied", action="store_true")
options = parser.parse_args()

torch.set_num_threads(options.threads)
torch.manual_seed(0)
model = GPT(options.vocabulary, options.length, options.hidden, options.layers, options.heads, options.tied)
# The fastest of PyTorch's own: one fused kernel over all parameters.
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
ids = torch.randint(options.vocabulary, (options.batch, options.length + 1))
for step in range(options.steps):
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.view(-1, options.vocabulary), ids[:, 1:].reshape(-1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(json.dumps({"step": step, "loss": loss.item(), "step_time_s": time.perf_counter() - begin}), flush=True)
