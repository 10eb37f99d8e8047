"""Prints what example-model.test checks about an ONNX file."""

import re
import sys

import onnx

# Of the example GPT: a float constant that is none of these would be trained
# under a name that no PyTorch program knows.
PARAMETER = re.compile(r"(wte|wpe|head|ln_f|h\.\d+\.(ln_[12]|qkv|proj|fc|out))\.(weight|bias)")

graph = onnx.load(sys.argv[1]).graph
onnx.checker.check_model(sys.argv[1])
for kind, values in (("input", graph.input), ("output", graph.output)):
    for value in values:
        dims = [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        print(kind, value.name, dims)
constants = [t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT and len(t.dims)]
print("float constants: %d, not of the model: %s" % (len(constants), [n for n in constants if not PARAMETER.fullmatch(n)]))
