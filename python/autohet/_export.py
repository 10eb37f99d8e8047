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
import logging
import os
import warnings
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

from . import _export_check
from ._export_errors import ExportError, explain, require

if TYPE_CHECKING:
    import onnx
    import torch


_OPSETS = range(18, 26)


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
    frozen: Sequence[str]
    """Those that do not require a gradient: autohet-compile freezes them."""
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
        exported in evaluation mode, in float32, and left as it was. Parameters
        that do not require a gradient are frozen.
    example_inputs: a tensor, several, or a dict by argument name. Their shapes
        are the file's, except the batch. What is no tensor (None, True, 3) is
        fixed in the file.
    dynamic_batch: dim 0 of every input becomes the symbol `batch`.
    dynamic_shapes: as torch.export takes it; replaces `dynamic_batch`.
    allow_unused: leave parameters out that no output depends on; else an error.
    compare: run the file (onnxruntime, or onnx's own interpreter where that is
        missing) on the example and on one sample less, and raise where an output
        differs from the model's by more than `tolerance`, relative to the
        largest one; raise where a gradient depends on what no file can say.
    """
    require("torch", "onnx", "onnxscript")
    import torch

    path = os.fspath(path)
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise ExportError(f"{path}: there is no folder {os.path.dirname(path)}")
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"the model is a {type(model).__name__}, wanted a torch.nn.Module")
    arguments, keywords = _as_arguments(example_inputs)
    try:
        inspect.signature(model.forward).bind(*arguments, **keywords)
    except TypeError as error:
        raise ExportError(f"the example does not fit the model's forward ({error}): pass it as a dict by argument name") from None
    if opset not in _OPSETS:
        raise ExportError(f"opset {opset} is not one that PyTorch writes ({_OPSETS[0]} to {_OPSETS[-1]}): asked for another, it writes what contradicts its label")
    names, tied = _parameter_names(model)
    frozen = _refuse_unsupported(model, names)

    dropped = _find_dropout(model)
    if dropped:
        warnings.warn(
            f"the model has dropout ({dropped[0]}{', …' if len(dropped) > 1 else ''}); the file has none, so training does without. "
            "Call eval() before the export where that is meant",
            stacklevel=2,
        )
    with _evaluation_mode(model), _export_check.buffers_kept(model), torch.no_grad():
        _export_check.run_model(model, arguments, keywords)
        if dynamic_batch and dynamic_shapes is None:
            arguments, keywords = _at_least_two_samples(arguments, keywords)
            dynamic_shapes = _batch_is_dynamic(arguments, keywords)
        if compare:
            _export_check.check_repeats(model, arguments, keywords, tolerance)
            _export_check.check_gradients(model, arguments, keywords, names, tolerance)
        program = _run_exporter(model, arguments, keywords, opset, dynamic_shapes)
        _simplify_around_parameters(program.model, names, tied)
        program.model.graph.outputs[0].name = output_name
        proto = program.model_proto
        if dynamic_batch:
            _name_batch(proto)
        # Which modules share a parameter, the graph does not always show; and that
        # the list is there says that no constant is several parameters.
        proto.metadata_props.add(key="autohet.tied", value=json.dumps(tied))
        names = _check_parameters(proto, model, names, allow_unused)
        # Other constants are none: sines as positions look like learned ones.
        proto.metadata_props.add(key="autohet.parameters", value=json.dumps(sorted(names.values())))
        frozen = [name for name in frozen if name in names.values()]
        if frozen:
            proto.metadata_props.add(key="autohet.frozen", value=json.dumps(frozen))
        _save(proto, path)

        difference = None
        if compare:
            difference = _export_check.compare(path, model, arguments, keywords, dynamic_batch, tolerance)
    return ExportedModel(
        path=path,
        inputs=[value.name for value in proto.graph.input],
        outputs=[value.name for value in proto.graph.output],
        parameters={name: tuple(model.get_parameter(name).shape) for name in names.values()},
        tied=tied,
        frozen=frozen,
        largest_difference=difference,
    )


# ===-- What goes in -------------------------------------------------------===#


def _as_arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    import torch

    if isinstance(example, torch.Tensor):
        arguments, keywords = (example,), {}
    elif isinstance(example, Mapping):
        arguments, keywords = (), dict(example)
    elif isinstance(example, (list, tuple)):
        arguments, keywords = tuple(example), {}
    else:
        raise ExportError(f"the example is a {type(example).__name__}, wanted a torch.Tensor, several, or a dict of them by argument name")
    values = {**dict(enumerate(arguments)), **keywords}
    for name, value in values.items():
        if not isinstance(value, (torch.Tensor, bool, int, float, str, type(None))):
            raise ExportError(f"argument {name} of the example is a {type(value).__name__}, wanted a torch.Tensor, or a constant")
    tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise ExportError("the example has no tensor")
    return arguments, keywords


def _parameter_names(model: torch.nn.Module) -> tuple[dict[int, str], dict[str, str]]:
    """First name of each parameter by identity, and the other names of tied ones."""
    names: dict[int, str] = {}
    tied: dict[str, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first = names.setdefault(id(parameter), name)
        if first != name:
            tied[name] = first
    return names, tied


def _refuse_unsupported(model: torch.nn.Module, names: Mapping[int, str]) -> list[str]:
    """Raises for what cannot be trained; returns the names that are not to be."""
    import torch

    if not names:
        raise ExportError("the model has no parameter: there is nothing to train")
    for name in names.values():
        parameter = model.get_parameter(name)
        if parameter.dtype != torch.float32:
            raise ExportError(f"parameter {name} is {parameter.dtype}; autohet trains float32: call model.float() first")
        if parameter.device.type == "meta":
            raise ExportError(f"parameter {name} has no values (it is on the device meta): load or initialise the model first")
    frozen = [name for name in names.values() if not model.get_parameter(name).requires_grad]
    if len(frozen) == len(names):
        raise ExportError(f"no parameter requires a gradient ({frozen[0]}, …): there is nothing to train; call requires_grad_() on those that are")
    return frozen


def _at_least_two_samples(arguments: Any, keywords: Any) -> tuple[Any, Any]:
    """torch.export takes a dim of size 1 for a constant: repeat such a batch."""
    import torch

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.shape[:1] == (1,):
            return value.repeat(2, *[1] * (value.dim() - 1))
        return value

    return tuple(map(widen, arguments)), {name: widen(value) for name, value in keywords.items()}


def _batch_is_dynamic(arguments: Any, keywords: Any) -> Any:
    import torch

    batch = torch.export.Dim("batch", min=1)

    def dims(name: Any, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return None
        if not value.dim():
            raise ExportError(f"argument {name} of the example has no dim 0, which is the batch: pass dynamic_batch=False or dynamic_shapes=")
        return {0: batch}

    if keywords:
        return {name: dims(name, value) for name, value in keywords.items()}
    return tuple(dims(index, value) for index, value in enumerate(arguments))


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


# ===-- The exporter ---------------------------------------------------------===#


def _run_exporter(model: torch.nn.Module, arguments: Any, keywords: Any, opset: int, dynamic_shapes: Any) -> torch.onnx.ONNXProgram:
    import torch

    try:
        with _quiet():
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

        def nodes() -> Any:
            with _quiet():
                program = torch.export.export(model, arguments, keywords, dynamic_shapes=dynamic_shapes, strict=False)
            return program.graph.nodes

        raise ExportError(explain(error, nodes)) from error
    assert program is not None
    return program


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter says of itself: errors come as exceptions."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "torch.onnx._internal.exporter._registration", "torch.export._trace")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r".*(The axis name: \w+ will not be used|The dynamic axes will not be renamed)")
            warnings.filterwarnings("ignore", category=FutureWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


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


def _name_batch(proto: onnx.ModelProto) -> None:
    """Where the example has constants, the exporter leaves torch.export's own symbol."""
    graph = proto.graph
    symbols = {value.type.tensor_type.shape.dim[0].dim_param for value in graph.input if value.type.tensor_type.shape.dim}
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param and dim.dim_param in symbols:
                dim.dim_param = "batch"


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
    try:
        if proto.ByteSize() < 2_000_000_000:
            onnx.save(proto, path)
        else:
            # onnx would append to an older one.
            data = path + ".data"
            if os.path.exists(data):
                os.remove(data)
            onnx.save(proto, path, save_as_external_data=True, location=os.path.basename(data))
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror or error}") from error
