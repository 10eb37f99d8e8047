"""A model of family_models.py as PyTorch trains it, and as its exporters write it.

The folder that `Golden.write` makes is of the layout of the golden cases beside
the checkout (see docs/testing.md), so that torch_cases.py compares either.
"""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, Dict, Mapping, Optional, Sequence, Set, Tuple

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from harness import write_safetensors
from family import Family, Size

SGD = {"lr": 0.1}
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}


class ExportFailed(Exception):
    """PyTorch's exporter gave no file: nothing of ours to test."""


def fill(model: nn.Module) -> None:
    """Distinct values everywhere: exporters merge what is equal and drop zeros."""
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn_like(parameter)
            if parameter.dim() > 1:
                parameter.copy_(noise * 0.15)
            else:
                parameter.copy_(parameter.round().clamp(-1, 1) + noise * 0.1)


def is_part(values: np.ndarray, whole: np.ndarray) -> bool:
    """Whether `values` are the first elements of a table, in whatever shape, or some of its rows."""
    if values.dtype != np.float32 or values.size < 2:
        return False
    if np.array_equal(values.reshape(-1), whole.reshape(-1)[: values.size]):
        return True
    rows = {row.tobytes() for row in whole.reshape(-1, whole.shape[-1])}
    return values.ndim > 1 and values.shape[-1] == whole.shape[-1] and all(
        row.tobytes() in rows for row in values.reshape(-1, values.shape[-1])
    )


class Golden:
    """One family at one size: numbers once, files in many spellings."""

    def __init__(self, family: Family, size: Size, seed: int = 0, precision: torch.dtype = torch.float32) -> None:
        torch.manual_seed(seed)
        self.family = family
        self.model = family.build(size).eval().float()
        fill(self.model)
        # Weights that a file of that precision holds exactly; tables stay as they are.
        for parameter in self.model.parameters():
            parameter.data = parameter.data.to(precision).float()
        self.start = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self.inputs = family.inputs(size)
        outputs = self.model(*self.inputs.values())
        self.shared = self._used_again(outputs) if family.shares else set()
        outputs = outputs.detach()
        self.labels = family.labels(size, outputs)
        self.expected = self._gradients()
        self.after, self.losses = {}, {}
        for kind, optimizer in (("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW)):
            self._train(kind, optimizer(self.model.parameters(), **(SGD if kind == "sgd" else ADAMW)))
        # A second shape, for files whose batch is free.
        self.other_inputs = family.inputs(Size(**{**size.__dict__, "batch": size.batch + 1}))
        with torch.no_grad():
            self.other_outputs = self.model(*self.other_inputs.values())
        self.other_labels = family.labels(size, self.other_outputs)
        self.other_loss = self._loss(self.other_outputs, self.other_labels)

    def _used_again(self, outputs: Tensor) -> Set[str]:
        """The parameters that one forward pass reads several times, as the graph of gradients shows."""
        uses: Dict[int, int] = {}
        seen, left = {outputs.grad_fn}, [outputs.grad_fn]
        while left:
            for function, _ in left.pop().next_functions:
                if hasattr(function, "variable"):
                    uses[id(function.variable)] = uses.get(id(function.variable), 0) + 1
                elif function is not None and function not in seen:
                    seen.add(function)
                    left.append(function)
        return {name for name, p in self.model.named_parameters() if uses.get(id(p), 0) > 1}

    def _loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        if self.family.loss == "mse":
            return torch.nn.functional.mse_loss(outputs, labels)
        return torch.nn.functional.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), labels.reshape(-1))

    def _forward(self) -> Tuple[Tensor, Tensor]:
        """The outputs for the batch, and its loss."""
        outputs = self.model(*self.inputs.values())
        return outputs, self._loss(outputs, self.labels)

    def _gradients(self) -> Dict[str, Tensor]:
        self.model.zero_grad()
        outputs, loss = self._forward()
        loss.backward()
        result = {"logits": outputs.detach(), "loss": loss.detach()}
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None:
                result["grad." + name] = parameter.grad.clone()
        self.model.zero_grad()
        return result

    def _train(self, kind: str, optimizer: torch.optim.Optimizer) -> None:
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            _, loss = self._forward()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        self.losses[kind] = losses
        self.after[kind] = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(self.start[name])

    # ===-- Files -----------------------------------------------------------===#

    def export(self, exporter: str, opset: int, dynamic: bool, path: str) -> None:
        """As a user would call it. `autohet` is our own."""
        arguments, names = tuple(self.inputs.values()), list(self.inputs)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            try:
                if exporter == "torchscript":
                    # It has no ONNX for the fused op of evaluation mode.
                    torch.backends.mha.set_fastpath_enabled(False)
                    torch.onnx.export(
                        self.model, arguments, path, dynamo=False, opset_version=opset, input_names=names,
                        output_names=["logits"], dynamic_axes={n: {0: "batch"} for n in names} if dynamic else None,
                    )  # fmt: skip
                elif exporter == "dynamo":
                    batch = torch.export.Dim("batch", min=1)
                    torch.onnx.export(
                        self.model, arguments, path, dynamo=True, opset_version=opset, input_names=names,
                        output_names=["logits"], verbose=False, external_data=False,
                        dynamic_shapes=tuple({0: batch} for _ in names) if dynamic else None,
                    )  # fmt: skip
                else:
                    import autohet

                    autohet.export(self.model, arguments, path, opset=opset, dynamic_batch=dynamic, allow_unused=True)
            except Exception as error:
                raise ExportFailed(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}") from error

    def facts(self, model: onnx.ModelProto, exporter: str, opset: int, dynamic: bool) -> Dict[str, Any]:
        """case.json: above all, which constant of the file is which parameter."""
        constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        read = {name for node in model.graph.node for name in node.input}
        found: Dict[str, Dict[str, Any]] = {}
        for name, values in constants.items():
            # One number alone may be any; under a parameter's name it is that.
            if name in read and values.dtype == np.float32 and (values.size > 1 or name in self.start):
                match = self._match(values)
                if match:
                    found[name] = match
        tied = {}
        names = {id(p): n for n, p in self.model.named_parameters()}
        for name, parameter in self.model.named_parameters(remove_duplicate=False):
            first = names[id(parameter)]
            if first == name:
                continue
            users = sorted(c for c, match in found.items() if match["parameter"] == first)
            entry = tied.setdefault(first, {"also": [], "graph_constants": users})
            entry["also"].append(name)
            entry["form"] = "copies" if len(users) > 1 else "one initializer"
        present = {match["parameter"] for match in found.values()}
        # What only the user knows: which parameter has several uses, which table is none.
        given = self.shared - set(tied) if exporter != "autohet" else set()  # whose files say so
        shared = sorted(name for name, match in found.items() if match["parameter"] in given)
        buffers = [self.model.get_buffer(name).numpy() for name in self.family.tables]
        tables = sorted(name for name, values in constants.items() if any(is_part(values, buffer) for buffer in buffers))
        reshaped = sorted(
            match["parameter"] for name, match in found.items()
            if match["how"] == "same" and "repeated" not in match and constants[name].shape != self.start[match["parameter"]].shape
        )  # fmt: skip
        gradients = {n: self.expected.get("grad." + n) for n in self.start}
        zero = [n for n, g in gradients.items() if g is not None and float(g.abs().max()) < 1e-7]
        return {
            "exporter": exporter, "opset_requested": opset, "shapes": "dynamic" if dynamic else "static",
            "dynamic_dims": ["batch"] if dynamic else [], "loss_kind": self.family.loss,
            "sgd": {"losses": self.losses["sgd"]}, "adamw": {"losses": self.losses["adamw"]},
            "parameters": {n: list(p.shape) for n, p in self.start.items() if gradients[n] is not None and n in present},
            "parameters_lost": sorted(n for n in self.start if gradients[n] is not None and n not in present),
            "shared": shared, "constants": tables, "reshaped": reshaped, "tied": tied,
            "graph_constants_from_parameters": found, "parameters_with_zero_gradient": zero,
        }  # fmt: skip

    def _match(self, values: np.ndarray) -> Optional[Dict[str, Any]]:
        once = values  # of what is the same for each sample, or each token
        for dim in range(values.ndim - 1):
            first = once.take([0], axis=dim)
            if not np.array_equal(np.broadcast_to(first, once.shape), once):
                break
            once = first
        for name, tensor in self.start.items():
            parameter = tensor.numpy()
            if values.shape == parameter.shape and np.array_equal(values, parameter):
                return {"parameter": name, "how": "same"}
            if parameter.ndim == 2 and values.shape == parameter.T.shape and np.array_equal(values, parameter.T):
                return {"parameter": name, "how": "transposed"}
            if values.size == parameter.size and np.array_equal(values.reshape(-1), parameter.reshape(-1)):
                return {"parameter": name, "how": "same"}
            if values.shape == parameter.shape and parameter.size > 1 and np.array_equal(values, 1 + parameter):
                return {"parameter": name, "how": "same", "offset": 1}  # Gemma's norms: the same gradient
            if once.size < values.size and once.shape == parameter.shape and np.array_equal(once, parameter):
                return {"parameter": name, "how": "same", "repeated": True}
            if parameter.ndim == 2 and once.ndim >= 2 and once.shape[-1] == parameter.shape[1]:
                lookup = {row.tobytes(): i for i, row in enumerate(parameter)}
                rows = [lookup.get(row.tobytes()) for row in once.reshape(-1, once.shape[-1])]
                if None not in rows and len(set(rows)) == len(rows):
                    return {"parameter": name, "how": "rows", "rows": rows}
        return None

    def write(self, folder: str, exporter: str, opset: int, dynamic: bool, weights: bool = True) -> Dict[str, Any]:
        """The whole case; `weights`: with those after three steps. Returns its facts."""
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "model.onnx")
        self.export(exporter, opset, dynamic, path)
        model = onnx.load(path)
        facts = self.facts(model, exporter, opset, dynamic)
        # The exporter drops inputs that nothing reads, and may rename others.
        read = [value.name for value in model.graph.input]

        def save(name: str, tensors: Mapping[str, Tensor]) -> None:
            write_safetensors(os.path.join(folder, name + ".safetensors"), {n: t.numpy() for n, t in tensors.items()})

        def renamed(inputs: Mapping[str, Tensor]) -> Dict[str, Tensor]:
            if set(read) <= set(inputs):
                return {name: inputs[name] for name in read}
            return dict(zip(read, inputs.values()))

        save("inputs", renamed(self.inputs))
        save("labels", {"labels": self.labels})
        save("expected", self.expected)
        if weights:
            for kind, after in self.after.items():
                save(f"after_{kind}3", after)
        if dynamic:
            other = {"inputs." + n: t for n, t in renamed(self.other_inputs).items()}
            save("alt_shape", {**other, "labels": self.other_labels, "logits": self.other_outputs, "loss": self.other_loss})
        with open(os.path.join(folder, "case.json"), "w") as file:
            json.dump(facts, file, indent=1)
            file.write("\n")
        return facts
