"""Why an export failed, and what to change: the exporter's own words are of its insides."""

from __future__ import annotations

import importlib.util
import os
import re
import traceback
from typing import Any, Iterable


class ExportError(Exception):
    """The model cannot be exported as asked; the text says why and what helps."""


def require(*packages: str) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ExportError(f"autohet.export needs {' and '.join(missing)}, which this Python does not have: pip install {' '.join(missing)}")


# What the exporter's errors are about, and what helps.
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
        r"Error when translating node|Error when calling function",
        "PyTorch has no ONNX form of this operator on such operands: give it others (attention wants four dims: a head, "
        "x.unsqueeze(1), will do), or write it by simpler ones",
    ),
]
_OF_DYNAMIC_SHAPES = (
    "the model runs, but not where the batch is any number: compute with x.shape[0] where a number stands for it, or pass "
    "dynamic_batch=False: the batch is then the example's"
)
_TRANSLATED_NODE = re.compile(r"Error when translating node %(\w+) .*?target=torch\.ops\.([\w.]+)\]")


def explain(error: BaseException, nodes: Any = None) -> str:
    """The cause without the exporter's own story: what, where in the user's code, and what helps.

    nodes: a function that gives torch.export's nodes again, for the line of one that has no ONNX form.
    """
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and inner not in chain:
        chain.append(inner)
    cause = chain[-1]
    everything = "\n".join(str(e) for e in chain)
    lines = [f"PyTorch cannot export the model: {first_line(cause)}"]
    translated = _TRANSLATED_NODE.search(everything)
    if translated:
        lines.append(f"  in the operator {translated[2]}")
        lines += _place_of_node(translated[1], nodes)
    else:
        lines += place([frame for e in chain for frame in traceback.extract_tb(e.__traceback__)])
    remedy = next((advice for text in (str(cause), everything) for pattern, advice in _REMEDIES if re.search(pattern, text)), None)
    lines.append("What helps: " + (remedy or _OF_DYNAMIC_SHAPES))
    return "\n".join(lines)


def first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"


def place(frames: Iterable[traceback.FrameSummary]) -> list[str]:
    """The model's last frame, and of torch.nn's modules: those of torch itself lie below."""
    import torch

    library = os.path.dirname(torch.__file__)
    frames = list(frames)
    own = [f for f in frames if not f.filename.startswith((library, os.path.dirname(__file__), "<")) and f"{os.sep}onnxscript{os.sep}" not in f.filename]
    modules = [f for f in frames if f.filename.startswith(os.path.join(library, "nn", "modules")) and not f.name.endswith("_call_impl")]
    return [f"  at {frame.filename}:{frame.lineno}: {frame.line}" for frame in own[-1:] + modules[-1:]]


def _place_of_node(name: str, nodes: Any) -> list[str]:
    """The user's line behind a node of torch.export's graph, which keeps it as text."""
    try:
        traces = [node.meta.get("stack_trace") or "" for node in nodes() if node.name == name]
    except Exception:  # where the line is, is an extra
        return []
    found = [re.findall(r'File "([^"]+)", line (\d+), in .*\n\s*(.*)', trace) for trace in traces]
    return [f"  at {frames[-1][0]}:{frames[-1][1]}: {frames[-1][2]}" for frames in found if frames]
