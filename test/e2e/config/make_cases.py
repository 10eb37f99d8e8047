"""Writes the cases beside it: models of configs with Hugging Face's own numbers.

    make_cases.py [--only REGEX] [--into FOLDER]

Needs PyTorch, transformers and numpy. A case is a config.json, the weights that
transformers wrote for it (whole, in several files, or in half precision), inputs,
labels, and what PyTorch makes of them: logits, loss, gradients, three steps of SGD
and of AdamW. `../config_cases.py` compares.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, Sequence, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "families")]

import torch

from family import Family, Size, classes, ids, padded_ids
from golden import ADAMW, SGD, Golden
from harness import write_safetensors
from library_models import LM, hugging_face, words
from transformers import AutoConfig

SIZE = Size(hidden=16, layers=2, vocabulary=37, length=8)
# Model type: what its config says beyond the sizes; and how its weights are written.
CONFIGS: Dict[str, Dict[str, Any]] = {
    "gpt_neox": dict(rotary_pct=0.5),
    "gpt_neox-sequential": dict(rotary_pct=0.25, use_parallel_residual=False, hidden_size=32, attention_bias=False),
    "phi": dict(partial_rotary_factor=0.5),
    "phi-norms": dict(partial_rotary_factor=0.5, qk_layernorm=True),
    "gemma": dict(head_dim=6, num_key_value_heads=1),
    "mistral": dict(num_key_value_heads=2, sliding_window=3),
    "mistral-whole": dict(num_key_value_heads=1, sliding_window=None),
    "mixtral": dict(num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2),
    # Of which the model adds the routers' balance to its loss, so much that it matters.
    "mixtral-balanced": dict(
        num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, output_router_logits=True, router_aux_loss_coef=0.3
    ),
    "mixtral-padded": dict(
        num_key_value_heads=2, num_local_experts=3, num_experts_per_tok=2, output_router_logits=True, router_aux_loss_coef=0.3
    ),
    "qwen2-window": dict(num_key_value_heads=2, use_sliding_window=True, sliding_window=3, max_window_layers=1),
    "qwen3": dict(num_key_value_heads=2, head_dim=6),
    "llama-scaled": dict(
        num_key_value_heads=2, attention_bias=True, mlp_bias=True,
        rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=4.0, low_freq_factor=1.0,
                             high_freq_factor=4.0, original_max_position_embeddings=8),
    ),
    "llama-linear": dict(rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=3.0)),
    # Longer than the positions: the angles grow with the sequence.
    "llama-dynamic": dict(
        max_position_embeddings=4, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0)
    ),
    "llama-yarn": dict(
        head_dim=12,
        rope_parameters=dict(rope_type="yarn", rope_theta=500.0, factor=4.0, beta_fast=2.0, beta_slow=0.5,
                             original_max_position_embeddings=8),
    ),
    "llama-long": dict(
        max_position_embeddings=32,
        rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.5], long_factor=[2.0, 5.0],
                             original_max_position_embeddings=6),
    ),
}  # fmt: skip
PADDED = ("qwen3", "phi", "mixtral-padded")
BALANCED = ("mixtral-balanced", "mixtral-padded")
# Samples of each microbatch, in their order; the whole batch is one anyway.
CUTS = {"mixtral-balanced": ((2, 2), (2, 1, 1))}
SHARDED, HALF = ("mistral",), {"gemma": torch.bfloat16, "qwen3": torch.float16}


class Balanced(Golden):
    """With the loss that the model itself would give.

    Of a batch that is cut, each microbatch has one, which weighs as much as its labels.
    """

    cut: Sequence[int] = ()

    def _loss(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return super()._loss(outputs, labels) + self.model.model.router_aux_loss_coef * self.model.model.balance

    def _forward(self) -> Tuple[torch.Tensor, torch.Tensor]:
        if not self.cut:
            return super()._forward()
        parts, total, whole = [], torch.zeros(()), (self.labels != -100).sum()
        pieces = (tensor.split(self.cut) for tensor in (*self.inputs.values(), self.labels))
        for *inputs, labels in zip(*pieces):
            parts.append(self.model(*inputs))
            total = total + self._loss(parts[-1], labels) * (labels != -100).sum() / whole
        return torch.cat(parts), total

    def of_cut(self, cut: Sequence[int]) -> Tuple[Dict[str, torch.Tensor], Dict[str, Sequence[float]]]:
        """What is expected of it, and the losses."""
        self.cut, whole = cut, self.losses
        expected, self.losses = self._gradients(), {}
        self._train("sgd", torch.optim.SGD(self.model.parameters(), **SGD))
        self._train("adamw", torch.optim.AdamW(self.model.parameters(), **ADAMW))
        losses, self.losses, self.cut = self.losses, whole, ()
        return expected, losses


def keeps_balance(build: Callable[[Size], torch.nn.Module]) -> Callable[[Size], torch.nn.Module]:
    def built(size: Size) -> torch.nn.Module:
        def keep(module: torch.nn.Module, _: Any, outputs: Any) -> Tuple[torch.Tensor]:
            module.balance = outputs.aux_loss
            return (outputs.logits,)

        model = build(size)
        model.model.register_forward_hook(keep)
        return model

    return built


def uneven_classes(size: Size, outputs: torch.Tensor) -> torch.Tensor:
    """Each sample has another number of labels that count."""
    labels = classes(size, outputs)
    for number, sample in enumerate(labels):
        sample[:number] = -100
    return labels


def write(folder: str, name: str, config: Dict[str, Any]) -> None:
    kind = name.split("-")[0]
    inputs = words(padded_ids if name in PADDED else ids)
    precision = HALF.get(name, torch.float32)
    build = hugging_face(kind, LM, "eager", **config)
    if name in BALANCED:
        golden = Balanced(Family(keeps_balance(build), inputs, uneven_classes), replace(SIZE, batch=4))
    else:
        golden = Golden(Family(build, inputs, classes), SIZE, precision=precision)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    model = golden.model.model
    settings = {k: v for k, v in model.config.to_diff_dict().items() if k != "transformers_version"}
    # As transformers writes them: tied ones once.
    weights = os.path.join(folder, "weights")
    model.to(precision).save_pretrained(weights, max_shard_size="6KB" if name in SHARDED else "5GB")
    for extra in ("config.json", "generation_config.json"):
        os.remove(os.path.join(weights, extra))

    def bare(parameter: str) -> str:
        """As in published files, which keep the name that the family's head had first."""
        name = parameter[len("model.") :]
        return name.replace("lm_head.", "embed_out.") if kind == "gpt_neox" else name

    def published(parameter: str, tensor: torch.Tensor) -> Iterator[Tuple[str, torch.Tensor]]:
        """As in published files: they have matrices for what the library keeps in one tensor, all experts."""
        name = bare(parameter)
        before, is_expert, which = name.partition("mlp.experts.")
        if not is_expert:
            yield name.replace("mlp.gate.", "block_sparse_moe.gate.") if kind == "mixtral" else name, tensor
            return
        for number, weight in enumerate(tensor):
            parts = dict(zip(("w1", "w3"), weight.chunk(2))) if which == "gate_up_proj" else {"w2": weight}
            for own, part in parts.items():
                yield f"{before}block_sparse_moe.experts.{number}.{own}.weight", part.contiguous()

    tied = {}
    names = {id(p): n for n, p in golden.model.named_parameters()}
    for parameter, tensor in golden.model.named_parameters(remove_duplicate=False):
        if names[id(tensor)] != parameter:
            tied.setdefault(bare(names[id(tensor)]), {"also": [], "graph_constants": []})["also"].append(bare(parameter))

    def published_all(expected: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        found: Dict[str, torch.Tensor] = {}
        for parameter, gradient in expected.items():
            if parameter.startswith("grad."):
                found.update(published(parameter[len("grad.") :], gradient))
        return found

    gradients = published_all(golden.expected)
    facts = {
        "config": settings, "inputs": list(golden.inputs), "shapes": "static", "dynamic_dims": [],
        "sgd": {"losses": golden.losses["sgd"]}, "adamw": {"losses": golden.losses["adamw"]},
        "parameters": {n: list(g.shape) for n, g in gradients.items()},
        "parameters_with_zero_gradient": [n for n, g in gradients.items() if float(g.abs().max()) < 1e-7],
        "tied": tied, "graph_constants_from_parameters": {},
    }  # fmt: skip

    def save(file: str, tensors: Dict[str, torch.Tensor]) -> None:
        write_safetensors(os.path.join(folder, file + ".safetensors"), {n: t.numpy() for n, t in tensors.items()})

    save("inputs", golden.inputs)
    save("labels", {"labels": golden.labels})

    def save_expected(file: str, expected: Dict[str, torch.Tensor]) -> None:
        outputs = {n: t for n, t in expected.items() if not n.startswith("grad.")}
        save(file, {**outputs, **{"grad." + n: g for n, g in published_all(expected).items()}})

    save_expected("expected", golden.expected)
    for cut in CUTS.get(name, ()):
        expected, losses = golden.of_cut(cut)
        label = "+".join(map(str, cut))
        save_expected("expected-" + label, expected)
        facts.setdefault("cuts", {})[label] = losses
    with open(os.path.join(folder, "case.json"), "w") as text:
        json.dump(facts, text, indent=1, sort_keys=True)
        text.write("\n")


DECODER = dict(num_hidden_layers=2, hidden_size=256, num_attention_heads=32, intermediate_size=96, vocab_size=50)
SIZES = {
    **{kind: DECODER for kind in ("llama", "mistral", "mixtral", "qwen2", "qwen3", "gpt_neox", "phi", "gemma")},
    "gpt2": dict(n_layer=2, n_embd=64, n_head=4, vocab_size=50),
    "bert": dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, vocab_size=50),
}


def write_defaults(path: str) -> None:
    """What transformers takes where a config says the sizes alone."""
    written = {}
    for kind, sizes in SIZES.items():
        config = AutoConfig.for_model(kind, **sizes).to_dict()
        others = {key: value for key, value in config.items() if key not in sizes and key != "transformers_version"}
        written[kind] = {"sizes": {**sizes, "model_type": kind}, "defaults": others}
    with open(path, "w") as text:
        json.dump(written, text, indent=1, sort_keys=True)
        text.write("\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--into", default=HERE, metavar="FOLDER")
    options = parser.parse_args()
    if re.search(options.only, "defaults"):
        write_defaults(os.path.join(options.into, "defaults.json"))
    for name, config in CONFIGS.items():
        if re.search(options.only, name):
            write(os.path.join(options.into, name), name, config)


if __name__ == "__main__":
    main()
