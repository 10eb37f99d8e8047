"""Writes the small cases beside this file, for the tests without PyTorch.

    make_cases.py [NAME ...]

Needs PyTorch, onnx and onnxscript. One case a kind of model, its exporter and
opset chosen so that each spelling is there once; tiny, and without the weights
after three steps, of which the later losses tell.
"""

import dataclasses
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(HERE, "..", "..", "..", "python")]

import onnx
from family import Size
from family_models import families
from golden import Golden

SIZE = Size(hidden=16, heads=2, layers=2, vocabulary=29, length=6, batch=2)
CASES = [
    ("mha-length-first", "torchscript", 17, True),
    ("mha-batch-first-weights", "dynamo", 20, True),
    ("encoder-batch-first", "dynamo", 20, True),
    ("seq2seq-batch-first", "autohet", 23, True),
    ("neox", "dynamo", 18, False),
    ("gptj", "torchscript", 14, True),
    ("gemma2", "autohet", 20, True),
    ("qwen3", "dynamo", 23, True),
    ("falcon", "torchscript", 20, False),
    ("bloom", "dynamo", 25, True),
    ("t5-encoder", "autohet", 23, True),
    ("roberta-regress", "torchscript", 16, True),
    ("expanded-lookups", "dynamo", 18, False),
    ("vit", "dynamo", 20, True),
    ("vit-patches", "torchscript", 17, True),
    ("speech", "dynamo", 23, True),
    ("mixtral", "torchscript", 18, True),
    ("scattered-experts", "dynamo", 19, True),
    ("written-row", "torchscript", 19, True),
    ("albert", "dynamo", 22, True),
    ("last-token", "torchscript", 15, True),
    ("rezero", "autohet", 20, True),
]


def main() -> None:
    known = families()
    for name, exporter, opset, dynamic in CASES:
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        folder = os.path.join(HERE, name)
        size = dataclasses.replace(SIZE, layers=1) if name.startswith(("seq2seq", "mixtral", "scattered", "written")) else SIZE
        facts = Golden(known[name], size).write(folder, exporter, opset, dynamic, weights=False)
        path = os.path.join(folder, "model.onnx")
        model = onnx.load(path)
        # What exporters note for debugging is more than the model, and names files of theirs.
        for graph_or_function in (model.graph, *model.functions):
            for node in graph_or_function.node:
                node.doc_string = ""
                scopes = [p for p in node.metadata_props if p.key == "pkg.torch.onnx.name_scopes"]
                del node.metadata_props[:]
                node.metadata_props.extend(scopes)
            del graph_or_function.value_info[:]
            del graph_or_function.metadata_props[:]
        onnx.save(model, path)
        total = sum(os.path.getsize(os.path.join(folder, file)) for file in os.listdir(folder))
        print(f"{name}: {total} bytes, lost {facts['parameters_lost']}")
        assert total < 150_000, "too large for the repository"


if __name__ == "__main__":
    main()
