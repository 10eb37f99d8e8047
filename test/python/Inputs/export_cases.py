"""Cases for export.test: run as `export_cases.py FOLDER`."""

import json
import os
import subprocess
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


class Outputs(Tied):
    """One tensor, whatever it is wrapped in."""

    def __init__(self, wrap) -> None:
        super().__init__()
        self.wrap = wrap

    def forward(self, input_ids: torch.Tensor):
        return self.wrap(super().forward(input_ids))


class Changed(Tied):
    """Something happens to the hidden states."""

    def __init__(self, change) -> None:
        super().__init__()
        self.change = change

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.change(self, self.fc(self.wte(input_ids))))


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(context, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(context, gradient: torch.Tensor) -> torch.Tensor:
        return -gradient


class Options(Tied):
    def forward(self, input_ids: torch.Tensor, mask=None, scale: int = 1) -> torch.Tensor:
        logits = super().forward(input_ids) * scale
        return logits if mask is None else logits * mask.unsqueeze(-1)


def no_grad(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        frozen = x * 2
    return x + frozen


class ExportCases(unittest.TestCase):
    def setUp(self) -> None:
        os.makedirs(FOLDER, exist_ok=True)
        self.path = os.path.join(FOLDER, self.id().rsplit(".", 1)[-1] + ".onnx")
        if os.path.exists(self.path):
            os.remove(self.path)
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
            (Tied().to("meta"), "wte.weight has no values"),
            (Tied().requires_grad_(False), "no parameter requires a gradient"),
            (nn.ReLU(), "no parameter"),
            (Outputs(lambda logits: "text"), "returns a str"),
        ):
            self.refuses(text, model)

    def refuses(self, text: str, model, example=None, **options) -> None:
        with self.assertRaisesRegex(autohet.ExportError, text) as caught:
            autohet.export(model, self.ids if example is None else example, self.path, **options)
        self.assertNotRegex(str(caught.exception), "torch.onnx|step [0-9]/3")  # the exporter's own story
        self.assertFalse(os.path.exists(self.path))

    def test_what_pytorch_cannot_export_says_where_and_what_helps(self) -> None:
        """Decisions by data, operators without an ONNX form, a batch that is fixed."""
        for change, text in (
            (lambda m, x: x * 2 if x.sum() > 0 else x, r"(?s)GuardOnDataDependent.*at .*export_cases.py.*x.sum\(\) > 0.*What helps: the model decides by"),
            (lambda m, x: x @ torch.linalg.qr(m.fc.weight)[0], r"(?s)operator aten.linalg_qr.*export_cases.py.*What helps: an operator has no ONNX form"),
            (lambda m, x: nn.functional.scaled_dot_product_attention(x, x, x), r"(?s)aten.scaled_dot_product_attention.*What helps: .*attention wants four dims"),
            (lambda m, x: x[:, :3] @ x.new_ones(7, 8), r"(?s)does not run on the example.*export_cases.py.*new_ones\(7, 8\)"),
        ):
            self.refuses(text, Changed(change))
        with_head = lambda m, x: nn.functional.scaled_dot_product_attention(*[x.unsqueeze(1)] * 3).squeeze(1)
        autohet.export(Changed(with_head), self.ids, self.path, allow_unused=True)
        os.remove(self.path)
        with self.assertRaisesRegex(autohet.ExportError, r"(?s)fixes its batch.*dynamic_batch=False.*reshape\(2, 4, 8\)"):
            autohet.export(Changed(lambda m, x: x.reshape(2, 4, 8) * 1.0), self.ids, self.path, allow_unused=True)

    def test_what_is_not_the_same_every_time(self) -> None:
        def count(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            model.calls += 1
            return x + model.calls

        counting = Changed(count)
        counting.register_buffer("calls", torch.zeros(1))
        for model in (Changed(lambda m, x: nn.functional.dropout(x, 0.5)), Changed(lambda m, x: x + torch.rand_like(x)), counting):
            self.refuses("two runs of the model on the example differ.*random numbers.*a buffer", model)
        self.assertEqual(counting.calls.item(), 0)

    def test_gradients_that_no_file_can_say(self) -> None:
        """Outputs would be equal, and training wrong."""
        for change, text in (
            (lambda m, x: x + (x * 3).detach(), r"detach at .*export_cases.py.*\.detach\(\)"),
            (no_grad, r"no_grad at .*export_cases.py.*frozen = x \* 2"),
            (lambda m, x: Reversed.apply(x), r"Reversed, a custom function, at .*export_cases.py"),
        ):
            self.refuses(r"(?s)would get other gradients than in PyTorch.*" + text, Changed(change))
        # What stops nothing that matters is no reason.
        for change in (
            lambda m, x: x + torch.zeros_like(x.detach()),
            lambda m, x: x + m.wpe.weight.detach().shape[0],
        ):
            autohet.export(Changed(change), self.ids, self.path, allow_unused=True)

    def test_one_tensor_in_any_wrapping(self) -> None:
        for wrap in (lambda x: (x,), lambda x: {"logits": x}, lambda x: (x, None), lambda x: [{"a": x}]):
            written = autohet.export(Outputs(wrap), self.ids, self.path)
            self.assertEqual(list(written.outputs), ["logits"])

    def test_arguments_that_are_no_tensors_are_fixed(self) -> None:
        mask = torch.ones(2, 4)
        for example, inputs in (
            ({"input_ids": self.ids, "mask": mask, "scale": 3}, ["input_ids", "mask"]),
            ((self.ids, None, 3), ["input_ids"]),
            ({"input_ids": self.ids, "mask": None}, ["input_ids"]),
        ):
            written = autohet.export(Options(), example, self.path)
            self.assertEqual(list(written.inputs), inputs)
            dims = onnx.load(self.path).graph.input[0].type.tensor_type.shape.dim
            self.assertEqual([d.dim_param or d.dim_value for d in dims], ["batch", 4])
        os.remove(self.path)
        for example, text in (
            (self.ids.numpy(), "the example is a ndarray"),
            ((self.ids, [1]), "argument 1 of the example is a list"),
            ({"scale": 3}, "the example has no tensor"),
            ({"ids": self.ids}, "does not fit the model's forward"),
            (self.ids + 100, "(?s)does not run on the example: IndexError"),
            ({"input_ids": self.ids, "scale": torch.tensor(2)}, "argument scale of the example has no dim 0"),
        ):
            self.refuses(text, Options(), example)

    def test_frozen_parameters_are_listed(self) -> None:
        model = Tied()
        model.wte.requires_grad_(False)
        model.norms[1].bias.requires_grad_(False)
        written = autohet.export(model, self.ids, self.path)
        self.assertEqual(list(written.frozen), ["wte.weight", "norms.1.bias"])
        metadata = {entry.key: entry.value for entry in onnx.load(self.path).metadata_props}
        self.assertEqual(json.loads(metadata["autohet.frozen"]), written.frozen)

    def test_places_that_cannot_be_written(self) -> None:
        for path in (os.path.join(FOLDER, "nowhere", "m.onnx"), FOLDER):
            with self.assertRaisesRegex(autohet.ExportError, "there is no folder|cannot write"):
                autohet.export(Tied(), self.ids, path)

    def test_missing_packages_are_named(self) -> None:
        for missing, text in ((("onnxscript",), "needs onnxscript.*pip install onnxscript"), (("onnx", "onnxscript"), "needs onnx and onnxscript")):
            program = (
                "import importlib.util, autohet; real = importlib.util.find_spec\n"
                f"importlib.util.find_spec = lambda name, *a: None if name in {missing!r} else real(name, *a)\n"
                "try: autohet.export(None, None, 'x')\n"
                "except autohet.ExportError as error: print(error)"
            )
            said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
            self.assertRegex(said, text)

    def test_without_onnxruntime_the_interpreter_compares(self) -> None:
        saved = sys.modules.get("onnxruntime")
        sys.modules["onnxruntime"] = None  # as an import of what is missing
        try:
            written = autohet.export(Tied(), self.ids, self.path, opset=20)
        finally:
            sys.modules.pop("onnxruntime")
            if saved:
                sys.modules["onnxruntime"] = saved
        self.assertLess(written.largest_difference, 1e-5)


unittest.main()
