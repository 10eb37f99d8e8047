"""Imports every PyTorch golden case and checks what became of its parameters.

    import_cases.py CASES_FOLDER

After import there are only het ops on static tensors, and the trained constants
are exactly PyTorch's parameters, under their names and with their shapes. What
cannot be trained is refused by name. Needs Python's standard library alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Dict, List, Optional, Tuple

SOURCE = re.compile(
    r'het\.weight_source "(?P<name>[^"]+)" in "[^"]+" at \d+(?P<transposed> transposed)?(?: shared)?'
    r'(?P<untrained> untrained)? because "(?P<reason>[^"]+)"(?: aliases \[(?P<aliases>[^\]]+)\])?'
    r' : tensor<(?P<shape>[0-9x]+)xf32>'
)
REFUSED = {
    "gpt2-fresh-init": r"constant '[^']+' is used \d+ times as a parameter .* --shared ",
}


def import_case(model: str, facts: dict) -> Tuple[int, str, str]:
    options: List[str] = []
    ties = []
    for tie in facts["tied"].values():
        if tie["form"] == "copies":
            own, *copies = sorted(tie["graph_constants"], key=lambda c: c.startswith(("val_", "onnx::")))
            ties += [f"{own}={copy}" for copy in copies]
    if ties:
        options.append("ties=" + ",".join(ties))
    if facts["shapes"] == "dynamic":
        options += ["batch=3", "dims=seq=9"]
    read = subprocess.run(["autohet-translate", "--import-onnx", model], capture_output=True, text=True)
    if read.returncode:
        return read.returncode, read.stdout, read.stderr
    passes = [f"--onnx-to-het={' '.join(options)}", "--het-classify-parameters"]
    done = subprocess.run(["autohet-opt", *passes], input=read.stdout, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def golden(name: str, facts: dict) -> Optional[Tuple[str, Optional[int]]]:
    """The parameter that a constant of ours is, and its number of rows if not all."""
    if name in facts["parameters"]:
        return name, None
    for parameter, tie in facts["tied"].items():
        if name in tie["also"]:
            return parameter, None
    constant = facts["graph_constants_from_parameters"].get(name)
    if constant and constant["how"] in ("same", "rows"):
        rows = constant.get("rows")
        return constant["parameter"], None if rows is None else len(rows)
    # A wrapper's prefix, as in an export of `Wrapper(model)`.
    if name.startswith("model."):
        return golden(name[len("model.") :], facts)
    return None


def check(case: str, facts: dict, text: str) -> List[str]:
    problems = []
    if "onnx.node" in text or "!onnx" in text:
        problems.append("onnx ops are left")
    if re.search(r"tensor<[^>]*\?", text):
        problems.append("a tensor is not static")
    found: Dict[str, str] = {}
    for source in SOURCE.finditer(text):
        if source["untrained"]:
            continue
        shape = [int(extent) for extent in source["shape"].split("x")]
        if source["transposed"]:
            shape.reverse()
        parameter = golden(source["name"], facts)
        if parameter is None:
            problems.append(f"{source['name']} is trained ({source['reason']}), but no parameter of the model")
            continue
        name, rows = parameter
        wanted = list(facts["parameters"][name])
        if rows is not None:
            wanted[0] = rows
            shape = shape[-2:]
        if shape != wanted:
            problems.append(f"{source['name']} has shape {shape}, {name} of PyTorch {wanted}")
        found[name] = source["name"]
        for alias in re.findall(r'"([^"]+)"', source["aliases"] or ""):
            if golden(alias, facts) != (name, rows):
                problems.append(f"{source['name']} is also called {alias}, which {name} of PyTorch is not")
    for name in sorted(set(facts["parameters"]) - set(found)):
        problems.append(f"{name} is missing")
    return problems


def main() -> None:
    failures = 0
    for case in sorted(os.listdir(sys.argv[1])):
        folder = os.path.join(sys.argv[1], case)
        if not os.path.exists(os.path.join(folder, "case.json")):
            continue
        with open(os.path.join(folder, "case.json")) as file:
            facts = json.load(file)
        status, text, errors = import_case(os.path.join(folder, "model.onnx"), facts)
        if case in REFUSED:
            refused = status == 1 and re.search(REFUSED[case], errors)
            problems = [] if refused else [f"status {status}, wanted a refusal: {errors[:400]}"]
        elif status:
            problems = [f"status {status}: {errors[:400]}"]
        else:
            problems = check(case, facts, text)
        print(case, "ok" if not problems else "FAIL")
        for problem in problems:
            print("   ", problem)
        failures += bool(problems)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
