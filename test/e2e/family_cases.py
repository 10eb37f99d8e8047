"""Transformers of many families, exported in many ways, against PyTorch.

    family_cases.py WORK_FOLDER [--families REGEX] [--exporters LIST] [--opsets LIST | --turn N] [--quick] [--list]

Needs PyTorch, onnx and numpy, and autohet's tools in PATH; transformers adds the
families called hf-*. For each family, exporter, opset, static and dynamic batch:
export, compile, train three steps of SGD and of AdamW, and compare logits, loss,
every gradient and the weights, within the tolerances of torch_cases.py.

Each line of the result is one of
  ok         equal to PyTorch
  no export  PyTorch's exporter gave no file
  lost       equal, but the exporter folded parameters, their shapes or names of tied ones away:
             autohet.export keeps them
  refused    by autohet-compile, with a message
  FAIL       a wrong number, or a crash
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import os
import re
import shutil
import sys
from typing import List, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "families"))

try:
    import onnx  # noqa: F401
    import torch  # noqa: F401
except ImportError as missing:
    print(f"SKIPPED: {missing}; this test needs PyTorch and onnx")
    sys.exit(0)

from family import Size
from family_models import families
from golden import ExportFailed, Golden
from harness import Checks, ToolFailed
from torch_cases import Case, check_optimizer, check_other_shape

OPSETS = {"torchscript": range(14, 21), "dynamo": range(18, 26), "autohet": (18, 20, 23)}


def run(golden: Golden, folder: str, exporter: str, opset: int, dynamic: bool, quick: bool) -> Tuple[str, str]:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        facts = golden.write(folder, exporter, opset, dynamic)
    except ExportFailed as error:
        return "no export", str(error)
    checks = Checks()
    case = Case(folder)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):  # the command lines
            for optimizer in ("sgd",) if quick else ("sgd", "adamw"):
                check_optimizer(case, folder, checks, optimizer, [])
            if dynamic:
                check_other_shape(case, folder, checks, [])
    except ToolFailed as failure:
        message = [line for line in failure.output.strip().splitlines() if "error" in line] or failure.output.splitlines()
        refused = failure.status == 1 and "error:" in failure.output and "autohet-compile" in str(failure).split("\n")[0]
        return "refused" if refused else "FAIL", (message or [str(failure)])[0][-400:]
    except Exception as error:  # noqa: BLE001
        return "FAIL", f"{type(error).__name__}: {error}"
    if checks.failures and all(failure.startswith("tied names") for failure in checks.failures):
        return "lost", checks.failures[0]
    if checks.failures:
        return "FAIL", f"{len(checks.failures)} of {checks.count}: {checks.failures[0]}"
    shutil.rmtree(folder)
    lost = facts["parameters_lost"] + [f"shape of {name}" for name in facts["reshaped"]]
    if lost:
        return "lost", ", ".join(lost)
    return "ok", f"{checks.count} comparisons"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--families", default="", metavar="REGEX")
    parser.add_argument("--exporters", default="torchscript,dynamo,autohet")
    parser.add_argument("--opsets", default="", help="of these only")
    parser.add_argument("--turn", type=int, help="one opset for each family and exporter: families take turns, from this one on")
    parser.add_argument("--batch", default="static,dynamic")
    parser.add_argument("--quick", action="store_true", help="SGD alone")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()

    found = {name: family for name, family in families().items() if re.search(options.families, name)}
    if options.list:
        print("\n".join(found))
        return
    only = [int(o) for o in options.opsets.split(",") if o]
    counts: collections.Counter[str] = collections.Counter()
    failed: List[str] = []
    for position, (name, family) in enumerate(found.items()):
        try:
            golden = Golden(family, Size())
        except Exception as error:  # noqa: BLE001
            print(f"{name}: the model itself does not run: {type(error).__name__}: {error}", flush=True)
            failed.append(name)
            continue
        for exporter in options.exporters.split(","):
            opsets = OPSETS[exporter]
            if options.turn is not None:
                opsets = [opsets[(position + options.turn) % len(opsets)]]
            for opset in opsets:
                for batch in options.batch.split(","):
                    if only and opset not in only:
                        continue
                    label = f"{name}/{exporter}{opset}-{batch}"
                    kind, text = run(golden, os.path.join(options.work, label), exporter, opset, batch == "dynamic", options.quick)
                    print(f"{kind:9} {label}: {text}", flush=True)
                    counts[kind] += 1
                    failed += [label] if kind == "FAIL" else []
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    sys.exit(bool(failed) or not counts)


if __name__ == "__main__":
    main()
