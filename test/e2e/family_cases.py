"""Transformers of many families, exported in many ways, against PyTorch.

    family_cases.py WORK_FOLDER [--families REGEX] [--exporters LIST] [--opsets LIST | --turn N] [--quick] [--list]
                            [--table]

Needs PyTorch, onnx and numpy, and autohet's tools in PATH; transformers adds the
families called hf-*. For each family, exporter, opset, static and dynamic batch:
export, compile, train three steps of SGD and of AdamW, and compare logits, loss,
every gradient and the weights, within the tolerances of torch_cases.py.

Each line of the result is one of
  ok         equal to PyTorch
  no export  PyTorch's exporter gave no file
  lost       equal, but the exporter folded parameters, their shapes or names of tied ones away:
             autohet.export keeps them
  warned     the first step is equal but for gradients of parameters of which autohet-compile warns: the
             exporter folded another use of theirs, or that are one number, which a file does not say to be trained
  refused    by autohet-compile, with a message
  FAIL       a wrong number, or a crash

--table prints, at the end, how many files of each family and exporter are which, as Markdown.
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
from typing import Counter, Dict, List, Tuple

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
from harness import Checks, ToolFailed, tool
from torch_cases import Case, check_optimizer, check_other_shape, options_of

OPSETS = {"torchscript": range(14, 21), "dynamo": range(18, 26), "autohet": (18, 20, 23)}


KINDS = ("ok", "lost", "warned", "no export", "refused", "FAIL")


def is_warned_of(case: Case, failures: List[str]) -> bool:
    """Whether all that differs is what follows from uses that autohet-compile warns of."""
    given, dims = case.dims(case.tensors("inputs"))
    warnings = [line for line in tool("autohet-compile", case.path("model.onnx"), *options_of(case, given, dims), "--emit=units").splitlines()
                if "warning:" in line and ("joined them" in line or "is one number" in line)]  # fmt: skip
    held = {case.golden(name) for line in warnings for name in re.findall(r"(?:holds|constant) '([^']*)' (?:next|is one)", line)}
    parameters = {found[0] for found in held if found}
    later = re.compile(r"tied names|weight after|the same, noise|loss \w+ step [23]|" + "|".join(f"gradient {re.escape(p)}:" for p in parameters))
    without = [failure for failure in failures if ": parameters without a tensor: " in failure]
    if any(set(re.findall(r"'([^']+)'", failure)) - parameters for failure in without):
        return False
    return bool(parameters) and all(later.match(failure) for failure in failures if failure not in without)


def run(golden: Golden, folder: str, exporter: str, opset: int, dynamic: bool, quick: bool) -> Tuple[str, str]:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        facts = golden.write(folder, exporter, opset, dynamic)
    except ExportFailed as error:
        return "no export", str(error)
    checks = Checks()
    # Files of one family have most of their kernels in common.
    case = Case(folder, [f"--kernel-cache={os.path.join(os.path.dirname(folder), 'kernels')}"])
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
        with contextlib.redirect_stdout(printed):
            warned = is_warned_of(case, checks.failures)
        if warned:
            return "warned", f"{len(checks.failures)} of {checks.count}: {checks.failures[0]}"
        return "FAIL", f"{len(checks.failures)} of {checks.count}: {checks.failures[0]}"
    shutil.rmtree(folder)
    lost = facts["parameters_lost"] + [f"shape of {name}" for name in facts["reshaped"]]
    offsets = sum("offset" in origin for origin in facts["graph_constants_from_parameters"].values())
    lost += [f"names of {offsets} norms, whose constants are 1 + weight; {checks.count} comparisons"] if offsets else []
    if lost:
        return "lost", ", ".join(lost)
    return "ok", f"{checks.count} comparisons"


def table(counts: Dict[Tuple[str, str], Counter[str]], exporters: List[str]) -> str:
    rows = [["family", *exporters]]
    for name in dict.fromkeys(family for family, _ in counts):
        cells = [counts.get((name, exporter), collections.Counter()) for exporter in exporters]
        rows.append([name, *(", ".join(f"{cell[kind]} {kind}" for kind in KINDS if cell[kind]) for cell in cells)])
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


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
    parser.add_argument("--table", action="store_true", help="a table at the end")
    options = parser.parse_args()

    found = {name: family for name, family in families().items() if re.search(options.families, name)}
    if options.list:
        print("\n".join(found))
        return
    only = [int(o) for o in options.opsets.split(",") if o]
    counts: Counter[str] = collections.Counter()
    by_family: Dict[Tuple[str, str], Counter[str]] = {}
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
                    by_family.setdefault((name, exporter), collections.Counter())[kind] += 1
                    failed += [label] if kind == "FAIL" else []
    if options.table:
        print(table(by_family, options.exporters.split(",")))
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    sys.exit(bool(failed) or not counts)


if __name__ == "__main__":
    main()
