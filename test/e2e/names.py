"""Any name goes all the way: through a step of training into every file that is written.

    names.py MODEL.onnx WORK_FOLDER

The model is files/names, whose names mean something to shells, paths, printers and parsers.
Parameters, gradients, outputs, the weights index and a checkpoint bear them byte for byte.
"""

from __future__ import annotations

import glob
import json
import os
import sys

import numpy as np

from harness import Checks, read_safetensors, tool, write_safetensors

TABLE, WEIGHT, HEAD = '../块.0/w "e" ight%s\\n', "..", "голова/.."
TOKENS, OUTPUT = "entrée \"x\"'s\t輸入/🙂", 'выход: "а"\nб'


def main() -> None:
    model, work = os.path.abspath(sys.argv[1]), sys.argv[2]
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    checks = Checks()
    ids = np.arange(10).reshape(2, 5) % 7
    write_safetensors("inputs.safetensors", {TOKENS: ids})
    write_safetensors("labels.safetensors", {"labels": ids})
    tool("autohet-compile", model, "--dim", "размер, 1=5", "-o", "job")
    files = {kind: f"{kind}.safetensors" for kind in ("weights", "gradients", "outputs")}
    tool(
        "autohet-run", "job", "--steps", "1", "--inputs", "inputs.safetensors", "--labels", "labels.safetensors",
        "--checkpoint", "saved", *(f"--save-{kind}={file}" for kind, file in files.items()),
    )  # fmt: skip
    for kind in ("weights", "gradients"):
        checks.equal(kind, sorted(read_safetensors(files[kind])), sorted((TABLE, WEIGHT, HEAD)))
    checks.equal("outputs", list(read_safetensors(files["outputs"])), [OUTPUT])
    with open("job/weights.index", encoding="utf-8") as text:
        checks.equal("index", sorted(t["name"] for t in json.load(text)["tensors"]), sorted((TABLE, WEIGHT, HEAD)))
    saved = [name for file in glob.glob("saved/*/*.safetensors") for name in read_safetensors(file)]
    for name in (TABLE, WEIGHT, HEAD):
        checks.equal(f"a checkpoint's {name!r}", any(name in key for key in saved), True)
    # What names say about paths, nobody does.
    checks.equal("files", sorted(os.listdir(".")), sorted(("job", "saved", "inputs.safetensors", "labels.safetensors", *files.values())))
    checks.finish()


if __name__ == "__main__":
    main()
