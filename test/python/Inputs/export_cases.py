"""Cases for export.test: run as `export_cases.py FOLDER`."""

import json
import os
import sys
import unittest

import onnx
import torch
from torch import nn

import autohet

FOLDER = sys.argv.pop()


class Tied(nn.Module):
    """Fresh: zero biases and unit norms that are equal to each other; tied head."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.wte = nn.Embedding(11, 8)
        self.wpe = nn.Embedding(6, 8)
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(2))
        self.fc = nn.Linear(8, 8)
        nn.init.zeros_(self.fc.bias)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))
        for norm in self.norms:
            x = x + self.dropout(self.fc(norm(x)))
        return self.head(x)


class Unused(Tied):
    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Linear(8, 8)


class Two(Tied):
    def forward(self, input_ids: torch.Tensor):
        logits = super().forward(input_ids)
        return logits, logits.sum()


class ExportCases(unittest.TestCase):
    def setUp(self) -> None:
        os.makedirs(FOLDER, exist_ok=True)
        self.path = os.path.join(FOLDER, self.id().rsplit(".", 1)[-1] + ".onnx")
        self.ids = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])

    def floats(self):
        graph = onnx.load(self.path).graph
        return {t.name: tuple(t.dims) for t in graph.initializer if t.data_type == 1 and t.dims}

    def test_fresh_model_keeps_every_parameter(self) -> None:
        model = Tied()
        for opset in (18, 20, 23):
            written = autohet.export(model, self.ids, self.path, opset=opset)
            expected = {name: tuple(p.shape) for name, p in model.named_parameters()}
            self.assertEqual(self.floats(), expected)  # wpe whole: not the 4 rows in use
            self.assertEqual(dict(written.parameters), expected)
            self.assertEqual(dict(written.tied), {"head.weight": "wte.weight"})
            metadata = {entry.key: entry.value for entry in onnx.load(self.path).metadata_props}
            self.assertEqual(json.loads(metadata["autohet.tied"]), written.tied)
            self.assertLess(written.largest_difference, 1e-5)

    def test_batch_is_symbolic_even_from_one_sample(self) -> None:
        autohet.export(Tied(), self.ids[:1], self.path)
        dims = onnx.load(self.path).graph.input[0].type.tensor_type.shape.dim
        self.assertEqual([d.dim_param or d.dim_value for d in dims], ["batch", 4])

    def test_static_batch(self) -> None:
        autohet.export(Tied(), (self.ids,), self.path, dynamic_batch=False)
        dims = onnx.load(self.path).graph.input[0].type.tensor_type.shape.dim
        self.assertEqual([d.dim_value for d in dims], [2, 4])

    def test_keyword_inputs_and_training_mode_kept(self) -> None:
        model = Tied(dropout=0.5).train()
        with self.assertWarnsRegex(UserWarning, "the model has dropout"):
            written = autohet.export(model, {"input_ids": self.ids}, self.path)
        self.assertEqual(list(written.inputs), ["input_ids"])
        self.assertTrue(model.training)

    def test_unused_parameters_can_be_left_out(self) -> None:
        written = autohet.export(Unused(), self.ids, self.path, allow_unused=True)
        self.assertEqual(self.floats(), dict(written.parameters))
        self.assertNotIn("spare.weight", written.parameters)

    def test_refusals_name_the_thing(self) -> None:
        for model, text in (
            (Unused(), "spare.weight, spare.bias"),
            (Two(), "returns 2 tensors"),
            (Tied().half(), "wte.weight is torch.float16"),
            (nn.ReLU(), "no parameter"),
        ):
            with self.assertRaisesRegex(autohet.ExportError, text):
                autohet.export(model, self.ids, self.path)
            self.assertFalse(os.path.exists(self.path))


unittest.main()
