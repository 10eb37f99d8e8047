"""From a PyTorch model to a job that trains it on a mixed cluster.

    job = autohet.torch.compile(model, example, "out", global_batch=64, cluster="cluster.yaml")
    losses = job.train(data="tokens.bin", data_dtype="uint16", steps=100, lr=3e-4)
    job.load_into(model)

Export, autohet-compile and autohet-run, with their options by their own names; no
more than that happens here. The model's weights are where training starts.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional

from . import _safetensors
from ._export import ExportedModel, export

if TYPE_CHECKING:
    import torch


class ToolError(Exception):
    """autohet-compile or autohet-run refused; the text is what it said."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A compiled folder."""

    folder: str
    exported: ExportedModel

    def train(
        self,
        steps: int,
        *,
        inputs: Optional[torch.Tensor | Mapping[str, torch.Tensor]] = None,
        labels: Optional[torch.Tensor] = None,
        **options: Any,
    ) -> List[float]:
        """Trains up to step `steps`, on this machine, and returns each step's loss.

        inputs, labels: tensors whose dim 0 is a number of global batches: inputs by
            name, or the only one; labels as the outputs are, not shifted. Or `data=`, `data_dtype=` for a file
            of tokens.
        options: those of autohet-run and of the executables, by name: lr=3e-4,
            emulate=True, checkpoint="out/checkpoints", resume=True.
        """
        files: Dict[str, Any] = {}
        if inputs is not None:
            files["inputs"] = self._write("inputs", self._by_name(inputs))
        if labels is not None:
            files["labels"] = self._write("labels", {"labels": labels})
        log = os.path.join(self.folder, "train.jsonl")
        weights = os.path.join(self.folder, "trained.safetensors")
        _run("autohet-run", self.folder, **files, **options, steps=steps, save_loss=log, save_weights=weights)
        with open(log) as lines:
            return [json.loads(line)["loss"] for line in lines if line.strip()]

    def weights(self) -> Dict[str, torch.Tensor]:
        """The parameters after the last `train`, under all their names."""
        import torch

        found = _safetensors.read(os.path.join(self.folder, "trained.safetensors"))
        tensors = {name: torch.from_numpy(array.copy()) for name, array in found.items()}
        for name, first in self.exported.tied.items():
            tensors.setdefault(name, tensors[first])
        return tensors

    def load_into(self, model: torch.nn.Module) -> None:
        """Gives the model the trained parameters; buffers stay as they are."""
        wanted = {name for name, _ in model.named_parameters(remove_duplicate=False)}
        weights = self.weights()
        missing = sorted(wanted - set(weights))
        if missing:
            raise ToolError(f"the job has no parameter {', '.join(missing)} of this model: is it the one that was compiled?")
        model.load_state_dict({name: weights[name] for name in wanted}, strict=False)

    def _by_name(self, inputs: torch.Tensor | Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """A tensor alone is the model's only input."""
        if hasattr(inputs, "items"):
            return inputs
        names = self.exported.inputs
        if len(names) != 1:
            raise ToolError(f"inputs= is one tensor, but the model has {len(names)} inputs: give a dict of {', '.join(names)}")
        return {names[0]: inputs}

    def _write(self, name: str, tensors: Mapping[str, torch.Tensor]) -> str:
        path = os.path.join(self.folder, f"{name}.safetensors")
        _safetensors.write(path, {key: tensor.detach().cpu().numpy() for key, tensor in tensors.items()})
        return path


def compile(
    model: torch.nn.Module,
    example_inputs: Any,
    folder: str | os.PathLike[str],
    *,
    global_batch: int,
    cluster: str | os.PathLike[str] | None = None,
    optimizer: str = "adamw",
    export_options: Mapping[str, Any] = {},
    **options: Any,
) -> Job:
    """Exports `model` (see autohet.export) and compiles it into `folder`.

    cluster: a cluster file; without one, this machine is one device.
    options: those of autohet-compile by name: microbatch=4, loss="mse",
        plan="plan.json", shared=["encoder.weight"].
    """
    folder = os.fspath(folder)
    os.makedirs(folder, exist_ok=True)
    # Beside the folder, which holds only what was compiled.
    path = folder.rstrip("/") + ".onnx"
    exported = export(model, example_inputs, path, **export_options)
    if cluster is not None:
        options["cluster"] = os.fspath(cluster)
    _run("autohet-compile", path, "-o", folder, global_batch=global_batch, optimizer=optimizer, **options)
    return Job(folder, exported)


def _flags(options: Mapping[str, Any]) -> List[str]:
    """lr=1e-3, emulate=True, tie=["a=b"]: --lr=0.001 --emulate --tie=a=b"""
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif isinstance(value, (list, tuple)):
            flags += [f"{flag}={item}" for item in value]
        elif value is not None and value is not False:
            flags.append(f"{flag}={value}")
    return flags


def _find(tool: str) -> str:
    """In PATH, or beside a checkout that this package is imported from."""
    checkout = os.path.join(os.path.dirname(__file__), "..", "..", "build", "bin")
    found = shutil.which(tool) or shutil.which(tool, path=checkout)
    if not found:
        raise ToolError(f"{tool} is neither in PATH nor in {os.path.normpath(checkout)}: build autohet, or add its bin folder to PATH")
    return found


def _run(tool: str, *arguments: str, **options: Any) -> None:
    """Shows what the tool prints; its errors become an exception."""
    process = subprocess.Popen(
        [_find(tool), *arguments, *_flags(options)], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    errors = []
    for line in process.stderr or ():
        errors.append(line)
        print(line, end="", flush=True)
    if process.wait():
        raise ToolError(f"{tool} ended with status {process.returncode}:\n{''.join(errors[-20:])}")
