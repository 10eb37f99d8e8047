"""Export of a PyTorch model as the ONNX file that autohet trains.

PyTorch's exporter is made for inference: it folds weights into transposed
copies, merges equal ones (all the zero biases of a fresh model), drops those
that add zero, and cuts a position table to the rows in use. Such a file runs,
but cannot be trained. Here the graph is exported without optimisation, then the
same optimiser simplifies it while the parameters are hidden from it, and what
comes out is compared with the model: numbers, names and shapes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import os
import re
import traceback
import warnings
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

if TYPE_CHECKING:
    import onnx
    import torch


_OPSETS = range(18, 26)


class ExportError(Exception):
    """The model cannot be exported as asked; the text says why and what helps."""


@dataclasses.dataclass(frozen=True)
class ExportedModel:
    """What was written."""

    path: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    parameters: Mapping[str, tuple[int, ...]]
    """Name and shape of every parameter; of tied ones, the first name."""
    tied: Mapping[str, str]
    """Other names of tied parameters, and the name that they have in the file."""
    largest_difference: float | None
    """Between the file's outputs and the model's; None where it was not compared."""


def export(
    model: torch.nn.Module,
    example_inputs: torch.Tensor | Sequence[torch.Tensor] | Mapping[str, torch.Tensor],
    path: str | os.PathLike[str],
    *,
    opset: int = 23,
    output_name: str = "logits",
    dynamic_batch: bool = True,
    dynamic_shapes: Any = None,
    allow_unused: bool = False,
    compare: bool = True,
    tolerance: float = 1e-4,
) -> ExportedModel:
    """Writes `model` to `path`, ready for `autohet-compile`.

    model: returns one tensor (logits [batch, sequence, vocabulary], say). It is
        exported in evaluation mode, in float32, and left as it was.
    example_inputs: a tensor, several, or a dict by argument name. Their shapes
        are the file's, except the batch.
    dynamic_batch: dim 0 of every input becomes the symbol `batch`.
    dynamic_shapes: as torch.export takes it; replaces `dynamic_batch`.
    allow_unused: leave parameters out that no output depends on; else an error.
    compare: run the file (onnxruntime, or onnx's own interpreter where that is
        missing) on the example and on one sample less, and raise where an output
        differs from the model's by more than `tolerance`, relative to the
        largest one.
    """
    import torch

    path = os.fspath(path)
    arguments, keywords = _as_arguments(example_inputs)
    try:
        inspect.signature(model.forward).bind(*arguments, **keywords)
    except TypeError as error:
        raise ExportError(f"the example does not fit the model's forward ({error}): pass it as a dict by argument name") from None
    if opset not in _OPSETS:
        raise ExportError(f"opset {opset} is not one that PyTorch writes ({_OPSETS[0]} to {_OPSETS[-1]}): asked for another, it writes what contradicts its label")
    names, tied = _parameter_names(model)
    _refuse_unsupported(model, names)
    if dynamic_batch and dynamic_shapes is None:
        arguments, keywords = _at_least_two_samples(arguments, keywords)
        dynamic_shapes = _batch_is_dynamic(arguments, keywords)

    dropped = _find_dropout(model)
    if dropped:
        warnings.warn(
            f"the model has dropout ({dropped[0]}{', …' if len(dropped) > 1 else ''}); the file has none, so training does without. "
            "Call eval() before the export where that is meant",
            stacklevel=2,
        )
    with _evaluation_mode(model), torch.no_grad():
        try:
            program = torch.onnx.export(
                model,
                arguments,
                kwargs=keywords,
                dynamo=True,
                optimize=False,  # with the parameters in sight it would merge them
                opset_version=opset,
                dynamic_shapes=dynamic_shapes,
                verbose=False,
            )
        except Exception as error:
            raise ExportError(_explain(error)) from error
        assert program is not None
        _simplify_around_parameters(program.model, names, tied)
        if len(program.model.graph.outputs) != 1:
            found = ", ".join(str(value.name) for value in program.model.graph.outputs)
            raise ExportError(f"the model returns {len(program.model.graph.outputs)} tensors ({found}); return only what the loss is computed from")
        program.model.graph.outputs[0].name = output_name
        proto = program.model_proto
        # Which modules share a parameter, the graph does not always show; and that
        # the list is there says that no constant is several parameters.
        proto.metadata_props.add(key="autohet.tied", value=json.dumps(tied))
        names = _check_parameters(proto, model, names, allow_unused)
        # Other constants are none: sines as positions look like learned ones.
        proto.metadata_props.add(key="autohet.parameters", value=json.dumps(sorted(names.values())))
        _save(proto, path)

        difference = None
        if compare:
            difference = _compare(path, model, arguments, keywords, dynamic_batch, tolerance)
    return ExportedModel(
        path=path,
        inputs=[value.name for value in proto.graph.input],
        outputs=[value.name for value in proto.graph.output],
        parameters={name: tuple(model.get_parameter(name).shape) for name in names.values()},
        tied=tied,
        largest_difference=difference,
    )


# ===-- What goes in -------------------------------------------------------===#


def _as_arguments(example: Any) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
    import torch

    if isinstance(example, torch.Tensor):
        return (example,), {}
    if isinstance(example, Mapping):
        return (), dict(example)
    return tuple(example), {}


def _parameter_names(model: torch.nn.Module) -> tuple[dict[int, str], dict[str, str]]:
    """First name of each parameter by identity, and the other names of tied ones."""
    names: dict[int, str] = {}
    tied: dict[str, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first = names.setdefault(id(parameter), name)
        if first != name:
            tied[name] = first
    return names, tied


def _refuse_unsupported(model: torch.nn.Module, names: Mapping[int, str]) -> None:
    import torch

    if not names:
        raise ExportError("the model has no parameter: there is nothing to train")
    for name in names.values():
        dtype = model.get_parameter(name).dtype
        if dtype != torch.float32:
            raise ExportError(f"parameter {name} is {dtype}; autohet trains float32: call model.float() first")


def _at_least_two_samples(arguments: Any, keywords: Any) -> tuple[Any, Any]:
    """torch.export takes a dim of size 1 for a constant: repeat such a batch."""

    def widen(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.repeat(2, *[1] * (tensor.dim() - 1)) if tensor.shape[:1] == (1,) else tensor

    return tuple(map(widen, arguments)), {name: widen(tensor) for name, tensor in keywords.items()}


def _batch_is_dynamic(arguments: Any, keywords: Any) -> Any:
    import torch

    batch = torch.export.Dim("batch", min=1)
    if keywords:
        return {name: {0: batch} for name in keywords}
    return tuple({0: batch} for _ in arguments)


def _find_dropout(model: torch.nn.Module) -> list[str]:
    """Modules that would drop something now; none in evaluation mode."""
    return [
        name or type(module).__name__
        for name, module in model.named_modules()
        if module.training and "Dropout" in type(module).__name__ and getattr(module, "p", 0) > 0
    ]


@contextlib.contextmanager
def _evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    """Dropout off, and no key/value cache among the outputs of library models."""
    training = model.training
    config = getattr(model, "config", None)
    use_cache = getattr(config, "use_cache", None)
    model.eval()
    if use_cache is not None:
        config.use_cache = False
    try:
        yield
    finally:
        model.train(training)
        if use_cache is not None:
            config.use_cache = use_cache


# ===-- What went wrong ----------------------------------------------------===#

# What the exporter's errors are about, and what helps. It says much itself, but
# of its own insides.
_REMEDIES = [
    (
        r"data-dependent|Dynamic control flow|torch\.cond",
        "the model decides by the values in a tensor, which an export cannot follow. Decide by an argument or an "
        "attribute instead (nn.Transformer, nn.TransformerEncoder and their decoders: pass is_causal= or "
        "tgt_is_causal= with the mask), or use torch.where or torch.cond",
    ),
    (
        r"Constraints violated|specialized|marked .* as dynamic|not all values of",
        "the model fixes a dim that was to be free. Compute with x.shape[0] where a number stands for the batch, or pass "
        "dynamic_batch=False: the batch is then the example's",
    ),
    (
        r"No ONNX function found|not supported|Unsupported.*operator|decomposition",
        "an operator has no ONNX form at this opset: try another (opset=18 to 23), or write it by simpler ones",
    ),
    (
        r"size mismatch|shapes? .* cannot be multiplied|index out of range|must match",
        "the model does not run on the example: call model(example) to see why",
    ),
]


def _explain(error: BaseException) -> str:
    """The cause without the exporter's own story: what, where in the user's code, and what helps."""
    import torch

    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and inner not in chain:
        chain.append(inner)
    cause = chain[-1]
    text = str(cause).strip()
    lines = [f"PyTorch cannot export the model: {type(cause).__name__}: {text.splitlines()[0] if text else ''}"]
    # Frames of torch itself lie below those of the model; torch.nn's may be the model.
    library = os.path.dirname(torch.__file__)
    frames = [f for e in chain for f in traceback.extract_tb(e.__traceback__)]
    own = [f for f in frames if not f.filename.startswith((library, os.path.dirname(__file__), "<"))]
    modules = [f for f in frames if f.filename.startswith(os.path.join(library, "nn", "modules")) and not f.name.endswith("_call_impl")]
    for frame in own[-1:] + modules[-1:]:
        lines.append(f"  at {frame.filename}:{frame.lineno}: {frame.line}")
    everything = "\n".join(str(e) for e in chain)
    remedy = next((advice for pattern, advice in _REMEDIES if re.search(pattern, text)), None)
    remedy = remedy or next((advice for pattern, advice in _REMEDIES if re.search(pattern, everything)), None)
    lines.append("What helps: " + (remedy or "torch.export.export(model, args) alone shows the same, with more detail"))
    return "\n".join(lines)


# ===-- What comes out -----------------------------------------------------===#


def _simplify_around_parameters(model: Any, names: Mapping[int, str], tied: Mapping[str, str]) -> None:
    """Folds shape arithmetic and inlines functions; parameters stay as they are.

    While they are graph inputs nothing is known of their values, so the
    optimiser can neither merge, drop, transpose nor slice them. A tied one gets
    its first name (the exporter takes that of its last use).
    """
    import onnxscript.optimizer

    graph = model.graph
    parameters = set(names.values()) | set(tied)
    hidden = []
    for value in list(graph.initializers.values()):
        if value.name in parameters:
            del graph.initializers[value.name]
            hidden.append((value, value.const_value))
            value.const_value = None
            graph.inputs.append(value)
    onnxscript.optimizer.optimize_ir(model)
    for value, tensor in hidden:
        graph.inputs.remove(value)
        value.const_value = tensor
        value.name = tied.get(value.name, value.name)
        tensor.name = value.name
        graph.initializers[value.name] = value


def _check_parameters(
    proto: onnx.ModelProto, model: torch.nn.Module, names: Mapping[int, str], allow_unused: bool
) -> dict[int, str]:
    """Every parameter is there once, under its name, in its shape and bytes.

    Returns those that are in use.
    """
    import numpy
    from onnx import numpy_helper

    found = {tensor.name: tensor for tensor in proto.graph.initializer}
    used = {name for node in proto.graph.node for name in node.input}
    missing = [name for name in names.values() if name not in found or name not in used]
    if missing and not allow_unused:
        raise ExportError(
            "no output depends on parameter " + ", ".join(missing) + ": without a gradient it cannot be "
            "trained; remove it from the model, or pass allow_unused=True to leave it out of the file"
        )
    present = {key: name for key, name in names.items() if name not in missing}
    for name in present.values():
        exported = numpy_helper.to_array(found[name])
        original = model.get_parameter(name).detach().cpu().numpy()
        if exported.shape != original.shape or not numpy.array_equal(exported, original, equal_nan=True):
            raise ExportError(f"parameter {name} of the file is not the model's: this is a bug of autohet.export")
    for name in missing:
        for tensor in [t for t in proto.graph.initializer if t.name == name]:
            proto.graph.initializer.remove(tensor)
    return present


def _save(proto: onnx.ModelProto, path: str) -> None:
    """One file where protobuf can hold it (2 GiB), else weights beside it."""
    import onnx

    # Stack traces of the exporting machine are of no use elsewhere.
    for node in proto.graph.node:
        for index in reversed(range(len(node.metadata_props))):
            if node.metadata_props[index].key != "pkg.torch.onnx.name_scopes":
                del node.metadata_props[index]
    if proto.ByteSize() < 2_000_000_000:
        onnx.save(proto, path)
    else:
        onnx.save(proto, path, save_as_external_data=True, location=os.path.basename(path) + ".data")


def _run(path: str, feeds: Mapping[str, Any]) -> Any:
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


def _compare(path: str, model: torch.nn.Module, arguments: Any, keywords: Any, dynamic_batch: bool, tolerance: float) -> float:
    """Largest difference, relative to the largest output, over two batch sizes."""
    import numpy
    import onnx
    import torch

    inputs = [value.name for value in onnx.load(path, load_external_data=False).graph.input]
    largest = 0.0
    for drop in (0, 1) if dynamic_batch else (0,):
        some = [tensor[drop:] for tensor in arguments]
        some_by_name = {name: tensor[drop:] for name, tensor in keywords.items()}
        try:
            result = model(*some, **some_by_name)
        except Exception as error:
            raise ExportError(
                f"the model runs on the example but not on one sample less ({type(error).__name__}: {error}): it fixes its "
                "batch. Compute with x.shape[0] where a number stands for it, or pass dynamic_batch=False"
            ) from error
        if not isinstance(result, torch.Tensor):
            result = result[0]
        # The exporter drops inputs that nothing reads, and keeps the order.
        values = some_by_name or dict(zip(inputs, some))
        feeds = {name: values[name].cpu().numpy() for name in inputs if name in values}
        if len(feeds) != len(inputs):
            raise ExportError(f"the file's inputs are {inputs}, the example gave {sorted(values)}: pass the example as a dict by argument name")
        expected = result.detach().cpu().numpy()
        actual = _run(path, feeds)
        scale = float(numpy.abs(expected).max()) or 1.0
        difference = float(numpy.abs(actual - expected).max()) / scale
        if not difference <= tolerance:
            raise ExportError(f"the file's output differs from the model's by {difference:.3g} of its largest element (tolerance {tolerance:g}); {path} is left for inspection")
        largest = max(largest, difference)
    return largest
