"""Reads and writes safetensors files: what the jobs' inputs and weights are in.

The format is a header of JSON and the bytes behind it; a package for it would be
one more that users must install.
"""

from __future__ import annotations

import json
import os
import struct
from typing import TYPE_CHECKING, Dict, Mapping

if TYPE_CHECKING:
    import numpy

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "?",
}  # fmt: skip


def write(path: str | os.PathLike[str], tensors: Mapping[str, numpy.ndarray]) -> None:
    import numpy

    names = {numpy.dtype(code): name for name, code in _DTYPES.items()}
    header, parts, offset = {}, [], 0
    for name, tensor in tensors.items():
        array = numpy.ascontiguousarray(tensor).reshape(numpy.shape(tensor))
        little = array.dtype.newbyteorder("<")
        if little not in names:
            raise TypeError(f"tensor {name} is {array.dtype}, wanted one of {', '.join(_DTYPES)}")
        offsets = [offset, offset + array.nbytes]
        header[name] = {"dtype": names[little], "shape": list(array.shape), "data_offsets": offsets}
        parts.append(array.astype(little, copy=False).tobytes())
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the bytes behind it begin aligned
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(parts)


def read(path: str | os.PathLike[str]) -> Dict[str, numpy.ndarray]:
    import numpy

    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    return {
        name: numpy.frombuffer(data[slice(*entry["data_offsets"])], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }
