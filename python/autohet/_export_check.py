"""A file computes what the model computes, forwards and backwards.

Outputs are compared by running both. An ONNX file has no word for what stops or
replaces a gradient (detach, no_grad, a custom backward): such a model is run once
more as its file will be understood, without them, and the gradients are compared.
"""

from __future__ import annotations

import contextlib
import os
import traceback
import types
from typing import Any, Iterator, Mapping

from ._export_errors import ExportError, first_line, place


# ===-- The model itself ----------------------------------------------------===#


def run_model(model: Any, arguments: Any, keywords: Any) -> Any:
    """The model's one output on the example, before anything else is tried."""
    import torch
    from torch.utils import _pytree

    try:
        result = model(*arguments, **keywords)
    except Exception as error:
        where = "\n".join(place(traceback.extract_tb(error.__traceback__)))
        raise ExportError(f"the model does not run on the example: {first_line(error)}\n{where}") from error
    leaves = [(_pytree.keystr(path), leaf) for path, leaf in _pytree.tree_flatten_with_path(result)[0] if leaf is not None]
    others = [leaf for _, leaf in leaves if not isinstance(leaf, torch.Tensor)]
    if others:
        raise ExportError(f"the model returns a {type(others[0]).__name__}; return a tensor")
    if len(leaves) != 1:
        found = ", ".join(f"{path or 'it'} {list(leaf.shape)}" for path, leaf in leaves)
        raise ExportError(f"the model returns {len(leaves)} tensors ({found}); return only what the loss is computed from")
    return leaves[0][1]


def check_repeats(model: Any, arguments: Any, keywords: Any, tolerance: float) -> None:
    first, second = (run_model(model, arguments, keywords) for _ in range(2))
    difference = _relative_difference(second.detach().cpu().numpy(), first.detach().cpu().numpy())
    if not difference <= tolerance:
        raise ExportError(
            f"two runs of the model on the example differ by {difference:.3g} of the largest output, in evaluation mode: it draws "
            "random numbers (dropout that does not ask self.training, torch.rand) or changes its own state (a buffer); a file does "
            "neither"
        )


@contextlib.contextmanager
def buffers_kept(model: Any) -> Iterator[None]:
    """Models that count their calls are left as they were."""
    before = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for buffer, value in before:
            buffer.detach().copy_(value)


# ===-- Gradients -----------------------------------------------------------===#


def check_gradients(model: Any, arguments: Any, keywords: Any, names: Mapping[int, str], tolerance: float) -> None:
    """What stops or replaces a gradient must not matter to a trained parameter."""
    import torch

    trained = {name: model.get_parameter(name) for name in names.values() if model.get_parameter(name).requires_grad}
    mode = _as_a_file_says()
    # All outputs count, each by a weight of its own.
    weights: list[torch.Tensor] = []

    def gradients() -> dict[str, torch.Tensor]:
        output = run_model(model, arguments, keywords)
        if not weights:
            generator = torch.Generator().manual_seed(0)
            weights.append(torch.randn(output.shape, generator=generator).to(output))
        if not output.requires_grad:
            return {name: torch.zeros_like(parameter) for name, parameter in trained.items()}
        found = torch.autograd.grad((output * weights[0]).sum(), list(trained.values()), allow_unused=True)
        return {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(trained.items(), found)}

    with torch.enable_grad():
        with mode, _plain_functions(mode.places):
            of_file = gradients()
        if not mode.places:
            return
        of_model = gradients()
    largest = max(float(g.abs().max()) for g in of_file.values() if g.numel()) or 1.0
    differing = []
    for name, expected in of_model.items():
        scale = max(float(expected.abs().max()), float(of_file[name].abs().max()), 1e-6 * largest) if expected.numel() else 1.0
        if expected.numel() and not float((of_file[name] - expected).abs().max()) <= tolerance * scale:
            differing.append(name)
    if not differing:
        return
    places = "\n".join(f"  {what}{where}" for where, what in mode.places.items())
    raise ExportError(
        f"the model stops or replaces gradients, and an ONNX file cannot say so: {', '.join(differing[:4])}{', …' if differing[4:] else ''} "
        f"would get other gradients than in PyTorch\n{places}\nWhat helps: compute without it; for a parameter that is not to be trained, "
        "requires_grad_(False)"
    )


def _as_a_file_says() -> Any:
    """A mode in which nothing stops a gradient; notes what would have."""
    import torch

    class Mode(torch.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.places: dict[str, str] = {}

        def __torch_function__(self, function: Any, _: Any, arguments: Any = (), keywords: Any = None) -> Any:
            keywords = keywords or {}
            if function is torch._C._set_grad_enabled:
                return function(*arguments, **keywords)
            if function in (torch.Tensor.detach, torch.Tensor.detach_, torch.Tensor.data.__get__):
                with torch.enable_grad():
                    if arguments[0].requires_grad:
                        _note(self.places, "detach")
                    return arguments[0].view_as(arguments[0])
            stopped = not torch.is_grad_enabled()
            with torch.enable_grad():
                result = function(*arguments, **keywords)
            if stopped and isinstance(result, torch.Tensor) and result.requires_grad:
                _note(self.places, "no_grad")
            return result

    return Mode()


@contextlib.contextmanager
def _plain_functions(places: dict[str, str]) -> Iterator[None]:
    """Custom functions have the gradient of what they compute."""
    import torch

    class Context(types.SimpleNamespace):
        """What a forward may ask of its context."""

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *_: None

    function = torch.autograd.Function

    def apply(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        _note(places, f"{cls.__name__}, a custom function,")
        if cls.setup_context is not torch.autograd.function._SingleLevelFunction.setup_context:
            return cls.forward(*arguments, **keywords)
        context = Context(needs_input_grad=tuple(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments))
        return cls.forward(context, *arguments, **keywords)

    original = function.__dict__["apply"]
    function.apply = classmethod(apply)
    try:
        yield
    finally:
        function.apply = original


def _note(places: dict[str, str], what: str) -> None:
    # Where it is said in the model, once for all of its layers.
    for where in place(traceback.extract_stack())[:1]:
        places.setdefault(where.replace("  at ", " at "), what)


# ===-- The file ------------------------------------------------------------===#


def compare(path: str, model: Any, arguments: Any, keywords: Any, dynamic_batch: bool, tolerance: float) -> float:
    """Largest difference, relative to the largest output, over two batch sizes."""
    import onnx
    import torch

    inputs = [value.name for value in onnx.load(path, load_external_data=False).graph.input]
    largest = 0.0
    for drop in (0, 1) if dynamic_batch else (0,):
        less = lambda value: value[drop:] if isinstance(value, torch.Tensor) else value
        some = [less(value) for value in arguments]
        some_by_name = {name: less(value) for name, value in keywords.items()}
        try:
            expected = run_model(model, some, some_by_name).detach().cpu().numpy()
        except ExportError as error:
            raise ExportError(
                f"the model runs on the example but not on one sample less: it fixes its batch. Compute with x.shape[0] where a "
                f"number stands for it, or pass dynamic_batch=False\n{error}"
            ) from error
        # The exporter drops inputs that nothing reads, and keeps the order.
        tensors = [value for value in some if isinstance(value, torch.Tensor)]
        values = some_by_name or dict(zip(inputs, tensors))
        feeds = {name: values[name].cpu().numpy() for name in inputs if name in values}
        if len(feeds) != len(inputs):
            raise ExportError(f"the file's inputs are {inputs}, the example gave {sorted(values)}: pass the example as a dict by argument name")
        actual = _run_file(path, feeds)
        if actual.shape != expected.shape:
            raise ExportError(f"the file's output is of shape {list(actual.shape)}, the model's of {list(expected.shape)}; {path} is left for inspection")
        difference = _relative_difference(actual, expected)
        if not difference <= tolerance:
            raise ExportError(f"the file's output differs from the model's by {difference:.3g} of its largest element (tolerance {tolerance:g}); {path} is left for inspection")
        largest = max(largest, difference)
    return largest


def _run_file(path: str, feeds: Mapping[str, Any]) -> Any:
    try:
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)  # its failures are caught here
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return session.run(None, dict(feeds))[0]
    except Exception:  # missing; or without an op or a form of one: masks of one row for all queries, say
        from onnx.reference import ReferenceEvaluator

        try:
            return ReferenceEvaluator(path).run(None, dict(feeds))[0]
        except Exception as error:
            raise ExportError(
                f"{path} was written, but neither onnxruntime nor onnx's interpreter runs it ({type(error).__name__}: {error}): "
                "try another opset=, or pass compare=False"
            ) from error


def _relative_difference(actual: Any, expected: Any) -> float:
    import numpy

    if not expected.size:
        return 0.0
    scale = float(numpy.abs(expected).max()) or 1.0
    return float(numpy.abs(actual - expected).max()) / scale
