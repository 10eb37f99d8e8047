"""Writes the graphs in this folder: run by hand, needs PyTorch and transformers.

    make.py [NAME ...]

Eight-layer models of four families, small enough to train by the hundred. Only
the graph is kept: ../models.py fills in weights, drawn by name, which keeps the
repository small and every element distinct.
"""

import os
import sys

import onnx
import torch
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "examples", "gpt")]
import autohet
from export import GPT


def bert(tied: bool) -> torch.nn.Module:
    return BertForMaskedLM(BertConfig(
        vocab_size=97, hidden_size=48, num_hidden_layers=8, num_attention_heads=4, intermediate_size=192,
        max_position_embeddings=16, tie_word_embeddings=tied,
    ))  # fmt: skip


def llama(tied: bool) -> torch.nn.Module:
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=97, hidden_size=64, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=2,
        intermediate_size=172, max_position_embeddings=16, tie_word_embeddings=tied, use_cache=False,
    ))  # fmt: skip


def mixtral() -> torch.nn.Module:
    return MixtralForCausalLM(MixtralConfig(
        vocab_size=97, hidden_size=32, num_hidden_layers=8, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=40, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=16, use_cache=False,
        experts_implementation="batched_mm",
    ))  # fmt: skip


def strip(path: str) -> None:
    """Empties the parameters; their names and shapes stay, and other constants whole."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.name.endswith((".weight", ".bias", "_proj")):
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    with open(path, "wb") as file:
        file.write(model.SerializeToString())


def main() -> None:
    torch.manual_seed(0)
    ids = torch.randint(97, (2, 12))
    # Without a mask, library models look for packed sequences at run time.
    masked = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    models = {
        "gpt": (GPT(97, 12, 48, 8, 4, True), ids),
        "gpt-untied": (GPT(97, 12, 48, 8, 4, False), ids),
        # Nothing divides: 5 heads of 11, a prime vocabulary, an odd length.
        "gpt-awkward": (GPT(101, 11, 55, 8, 5, True), ids[:, :11]),
        "bert": (bert(True), masked),
        "bert-untied": (bert(False), masked),
        "llama": (llama(False), masked),
        "llama-tied": (llama(True), masked),
        "mixtral": (mixtral(), masked),
    }
    for name, (model, inputs) in models.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        path = os.path.join(HERE, name + ".onnx")
        written = autohet.export(model, inputs, path, allow_unused=True)
        strip(path)
        print(name, len(written.parameters), "parameters,", os.path.getsize(path), "bytes, differs by", written.largest_difference)


main()
