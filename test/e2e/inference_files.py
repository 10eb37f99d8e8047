"""Inputs and outputs of an inference job in every form, and in wrong ones.

    inference_files.py EXAMPLES FAMILIES WORK

A job of two stages reads the same numbers from .npy, .pb, .raw and safetensors, and
writes each of them; what is written reads back as what the others hold. A wrong file
ends the job with status 1 and a message that names the file, what was found and what
is wanted. NaNs are numbers: they stay in the sample that has them.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

import plans
from harness import Checks, ToolFailed, read_safetensors, tool, write_safetensors

QUICK_S = 60  # until a job with a wrong file has ended: all that it does is fail


def onnx_tensor(array: np.ndarray, kind: int) -> bytes:
    """A TensorProto: dims, data_type, raw_data."""

    def varint(value: int) -> bytes:
        digits = b""
        while value > 127:
            digits, value = digits + bytes([value & 127 | 128]), value >> 7
        return digits + bytes([value])

    data = array.tobytes()
    return b"".join(b"\x08" + varint(d) for d in array.shape) + b"\x10" + bytes([kind]) + b"\x4a" + varint(len(data)) + data


def compile_stages(model: str, work: str, name: str, batch: int, *options: str) -> str:
    """Two stages, cut in the middle."""
    units = json.loads(tool("autohet-compile", model, "--mode=inference", f"--microbatch={batch}", *options, "--emit=units"))["units"]
    half = len(units) // 2
    stages = [{"units": [f"{part[0]['id']}..{part[-1]['id']}"], "devices": [device]} for part, device in ((units[:half], "n0/0"), (units[half:], "n1/0"))]
    plan = {"format": 1, "global_batch": batch, "optimizer": "none", "schedule": "1f1b",
            "replicas": [{"microbatch_size": batch, "microbatches": 1, "stages": stages}]}  # fmt: skip
    paths = os.path.join(work, name + ".json"), os.path.join(work, name + ".yaml"), os.path.join(work, name)
    plans.write_plan(paths[0], plan)
    with open(paths[1], "w") as file:
        file.write(plans.cluster_yaml(2))
    tool("autohet-compile", model, "--mode=inference", "--cluster", paths[1], "--plan", paths[0], "-o", paths[2])
    return paths[2]


def forms(checks: Checks, job: str, work: str, ids: np.ndarray) -> None:
    path = lambda name: os.path.join(work, name)
    np.save(path("ids.npy"), ids)
    np.save(path("narrow.npy"), ids.astype(np.uint8))  # any integers will do
    ids.tofile(path("ids.raw"))
    with open(path("ids.pb"), "wb") as file:
        file.write(onnx_tensor(ids, 7))
    write_safetensors(path("ids.safetensors"), {"input_ids": ids})
    expected = None
    for given in ("ids.npy", "narrow.npy", "ids.raw", "ids.pb", "ids.safetensors"):
        for written in ("{name}.npy", "{name}.pb", "{name}.raw", "all.safetensors") if given == "ids.npy" else ("all.safetensors",):
            spec = path(given) if given.endswith("safetensors") else "input_ids=" + path(given)
            to = path(written.format(name="logits"))
            if os.path.exists(to):
                os.remove(to)
            tool("autohet-run", job, "--inputs", spec, "--save-outputs", path(written))
            if written.endswith(".npy"):
                expected = np.load(to)
            elif written.endswith(".raw"):
                checks.equal(f"{given} to {written}", open(to, "rb").read() == expected.tobytes(), True)
            elif written.endswith(".pb"):
                checks.equal(f"{given} to {written}", open(to, "rb").read() in (onnx_tensor(expected, 1), *named(expected)), True)
            else:
                checks.equal(f"{given} to {written}", np.array_equal(read_safetensors(to)["logits"], expected), True)
    checks.equal("shape of the outputs", expected.shape[:2], ids.shape)


def named(array: np.ndarray) -> tuple:
    """The same with a name behind dims and type."""
    body, name = onnx_tensor(array, 1), b"\x42\x06logits"
    at = body.index(b"\x4a")
    return body[:at] + name + body[at:], body + name


def wrong_files(checks: Checks, job: str, work: str, ids: np.ndarray) -> None:
    def write(name: str, data: bytes) -> None:
        with open(os.path.join(work, name), "wb") as file:
            file.write(data)

    def save(name: str, array: np.ndarray) -> None:
        np.save(os.path.join(work, name), array, allow_pickle=True)

    save("good.npy", ids)
    npy = open(os.path.join(work, "good.npy"), "rb").read()
    proto = onnx_tensor(ids, 7)
    save("big.npy", ids.astype(">i8"))
    save("fortran.npy", np.asfortranarray(ids))
    save("floats.npy", ids.astype(np.float32))
    save("short.npy", ids[:, :32])
    save("flat.npy", ids.reshape(-1))
    save("rows.npy", ids[:3])
    save("none.npy", ids[:0])
    save("negative.npy", ids - 300)
    save("objects.npy", np.array([None, 1], dtype=object))
    np.savez(os.path.join(work, "many.npz"), input_ids=ids)
    write("cut.npy", npy[:1000])
    write("header.npy", npy[:9])
    write("cut.pb", proto[:1000])
    write("empty.pb", b"")
    write("cut.raw", ids.tobytes()[:1001])
    for name, text in (
        ("big.npy", "has elements '>i8', wanted little-endian"),
        ("fortran.npy", "is in Fortran's order, wanted C's"),
        ("floats.npy", "is <f4, wanted int64"),
        ("short.npy", f"has shape [{len(ids)}, 32], wanted [{len(ids)}, 64]"),
        ("flat.npy", f"has shape [{ids.size}], wanted"),
        ("rows.npy", "has 3 samples, wanted a multiple of the global batch, 2"),
        ("none.npy", "has 0 samples"),
        ("negative.npy", "is -300; the vocabulary has 256 entries"),
        ("objects.npy", "has elements '|O'"),
        ("many.npz", "not a safetensors file"),
        ("many.npz", "of one tensor each, .npy, .pb and .raw are read, too"),
        ("cut.npy", "holds 872 bytes, wanted"),
        ("header.npy", "is no .npy file"),
        ("cut.pb", "is truncated, or no protobuf message"),
        ("empty.pb", "holds no tensor"),
        ("cut.raw", "has 1001 bytes, wanted a multiple of"),
        ("missing.npy", "cannot open"),
    ):
        refused(checks, job, ["--inputs", "input_ids=" + os.path.join(work, name)], name, text)
    good = os.path.join(work, "good.npy")
    refused(checks, job, [], "input_ids", "needs tokens: give --data=FILE, or it in --inputs=FILE")
    refused(checks, job, ["--inputs", "ids=" + good], "input_ids", "the program has no input 'ids'")
    refused(checks, job, ["--inputs", good], "good.npy", "say of which input")
    for option in ("--betas=0.9,0.9", "--warmup-steps=3", "--on-nonfinite=skip", "--checkpoint-every=2"):
        name = option.split("=")[0]
        text = "needs --checkpoint" if "checkpoint" in name else "was compiled with --mode=inference; it does not train"
        refused(checks, job, ["--inputs", "input_ids=" + good, option], f"option {name}", text)
    batches = len(ids) // 2
    said = tool("autohet-run", job, "--inputs", "input_ids=" + good, f"--steps={batches + 1}")
    checks.equal("repeated inputs are said", f"the inputs hold {batches} batches, which are repeated" in said, True)
    refused(checks, job, ["--inputs", "input_ids=" + good, "--save-outputs", os.path.join(work, "no", "o.npy")], "o.npy", "No such file")


def refused(checks: Checks, job: str, options: list, *texts: str) -> None:
    start = time.monotonic()
    try:
        tool("autohet-run", job, *options)
        checks.equal(f"{options}: status", 0, 1)
    except ToolFailed as failure:
        checks.equal(f"{options}: status", failure.status, 1)
        for text in ("error:", *texts):
            checks.equal(f"{options}: '{text}' in: {failure.output}", text in failure.output, True)
    checks.equal(f"{options}: ends at once", time.monotonic() - start < QUICK_S, True)


def not_a_number(checks: Checks, case: str, work: str) -> None:
    inputs = read_safetensors(os.path.join(case, "inputs.safetensors"))
    name, pixels = next((name, array) for name, array in inputs.items() if array.dtype == np.float32)
    job = compile_stages(os.path.join(case, "model.onnx"), work, "pixels", 1)
    results = []
    for bad in (False, True):
        given = np.array(pixels)
        if bad:
            given.reshape(len(given), -1)[1, 3] = np.nan
        paths = os.path.join(work, "pixels.safetensors"), os.path.join(work, "outputs.safetensors")
        write_safetensors(paths[0], {**inputs, name: given})
        tool("autohet-run", job, "--inputs", paths[0], "--save-outputs", paths[1])
        results.append(next(iter(read_safetensors(paths[1]).values())))
    checks.equal("NaN in its sample", bool(np.isnan(results[1][1]).any()), True)
    checks.equal("and in no other", np.array_equal(results[0][0], results[1][0]), True)


def left_out(checks: Checks, case: str, work: str) -> None:
    """An input that a rule fills, and no file has, is named; so is a file that is for no input of any stage."""
    job = compile_stages(os.path.join(case, "model.onnx"), work, "masked", 1)
    ids = read_safetensors(os.path.join(case, "inputs.safetensors"))["input_ids"]
    path = os.path.join(work, "ids.npy")
    np.save(path, ids)
    output = tool("autohet-run", job, "--inputs", "input_ids=" + path)
    text = "input 'attention_mask' is not in --inputs: it is ones, as it was bound when compiling"
    checks.equal(f"'{text}' in: {output}", text in output, True)
    mask = os.path.join(work, "mask.npy")
    np.save(mask, np.ones_like(ids))
    output = tool("autohet-run", job, "--inputs", "input_ids=" + path, "--inputs", "attention_mask=" + mask, "--inputs", "mask=" + mask)
    checks.equal(f"named in: {output}", output.count("warning: "), 1)
    text = f"'{mask}': the program has no input 'mask'; it is not used"
    checks.equal(f"'{text}' in: {output}", text in output, True)


def main() -> None:
    examples, families, work = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    checks = Checks()
    ids = (np.arange(4 * 64, dtype=np.int64) * 7919 % 251).reshape(4, 64)
    job = compile_stages(os.path.join(examples, "gpt", "model.onnx"), work, "job", 2)
    forms(checks, job, work, ids)
    wrong_files(checks, job, work, ids)
    not_a_number(checks, os.path.join(families, "vit"), work)
    left_out(checks, os.path.join(families, "t5-encoder"), work)
    checks.finish()


if __name__ == "__main__":
    main()
