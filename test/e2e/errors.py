"""Wrong input gets a clear error: exit 1, the thing named, nothing written half.

    errors.py WORK_FOLDER [--only REGEX]

A case is what is wrong, the command line, and what the message has to contain:
the facts (names, numbers, what is known instead), not the wording.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
from typing import Callable, Dict, List, Sequence, Tuple

import numpy as np

import models
import plans
from harness import Checks, ToolFailed, read_safetensors, tool, write_safetensors

Case = Tuple[Callable[["Bench"], Sequence[str]], Sequence[str]]
CASES: Dict[str, Case] = {}


def case(*facts: str):
    """Registers a function that prepares the files and returns the command line."""

    def register(function: Callable[["Bench"], Sequence[str]]):
        CASES[function.__name__.replace("_", " ")] = (function, facts)
        return function

    return register


class Bench:
    """A folder with a good model, data, cluster and plan, to be spoilt."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        models.write_model("gpt", self.path("model.onnx"))
        models.write_data("gpt", folder, plans.GLOBAL_BATCH)
        table = tool("autohet-compile", self.path("model.onnx"), *self.batch(), "--emit=units")
        self.units: List[str] = [unit["id"] for unit in json.loads(table)["units"]]
        self.program = self.path("good")
        tool("autohet-compile", self.path("model.onnx"), *self.batch(), "--optimizer=sgd", "-o", self.program)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write(self, name: str, content) -> str:
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def batch(self) -> List[str]:
        return [f"--global-batch={plans.GLOBAL_BATCH}", f"--microbatch={plans.GLOBAL_BATCH}"]

    def compile(self, model: str, *options: str) -> List[str]:
        return ["autohet-compile", model, *(options or self.batch()), "-o", self.path("out")]

    def planned(self, spoil: Callable[[dict], None], devices: int = 2, cluster: str = "") -> List[str]:
        plan = plans.plan_json(plans.PLANS["pipeline2"], self.units, "sgd")
        spoil(plan)
        return self.compile(
            self.path("model.onnx"), "--plan", self.write("plan.json", json.dumps(plan, indent=1)),
            "--cluster", self.write("cluster.yaml", cluster or plans.cluster_yaml(devices)),
            f"--global-batch={plans.GLOBAL_BATCH}",
        )  # fmt: skip

    def run(self, *options: str, **replaced) -> List[str]:
        files = {"inputs": self.path("inputs.safetensors"), "labels": self.path("labels.safetensors"), **replaced}
        program = replaced.get("program", self.program)
        return ["autohet-run", program, "--steps=1", "--inputs", files["inputs"], "--labels", files["labels"], *options]


def onnx_model(bench: Bench, name: str, change: Callable) -> str:
    import onnx

    model = onnx.load(bench.path("model.onnx"))
    change(onnx, model.graph)
    with open(bench.path(name), "wb") as file:
        file.write(model.SerializeToString())
    return bench.path(name)


def insert(graph, *nodes) -> None:
    """After the embeddings: nodes that read 'embedded' and give 'add'."""
    rest = list(graph.node)
    at = next(i for i, node in enumerate(rest) if node.output[0] == "add")
    rest[at].output[0] = "embedded"
    del graph.node[:]
    graph.node.extend(rest[: at + 1] + list(nodes) + rest[at + 1 :])


# ===-- Models -------------------------------------------------------------===#


@case(r"text\.onnx")
def not_an_onnx_file(bench):
    return bench.compile(bench.write("text.onnx", "this is no model\n" * 40))


@case(r"nowhere\.onnx", r"[Nn]o such file")
def a_missing_file(bench):
    return bench.compile(bench.path("nowhere.onnx"))


@case(r"short\.onnx")
def a_truncated_file(bench):
    with open(bench.path("model.onnx"), "rb") as file:
        return bench.compile(bench.write("short.onnx", file.read()[:-1000]))


@case(r"Unique", r"\b2\b", r"TfIdfVectorizer", r"\b1\b")
def unknown_ops_all_at_once(bench):
    def change(onnx, graph):
        for kind, count in (("Unique", 2), ("TfIdfVectorizer", 1)):
            for i in range(count):
                graph.node.append(onnx.helper.make_node(kind, ["embedding"], [f"{kind}{i}"], name=f"{kind}_{i}"))
                graph.output.append(onnx.helper.make_tensor_value_info(f"{kind}{i}", 1, None))

    return bench.compile(onnx_model(bench, "ops.onnx", change))


@case(r"time\b", r"--dim")
def a_dim_left_unbound(bench):
    def change(onnx, graph):
        graph.input[0].type.tensor_type.shape.dim[1].dim_param = "time"

    return bench.compile(onnx_model(bench, "unbound.onnx", change))


@case(r"one sample reach another", r"meet")
def samples_that_meet(bench):
    """One sample a microbatch hides it: the file says it nevertheless."""

    def change(onnx, graph):
        for name, values in (("rows", [-1, 48]), ("samples", [-1, 12, 48])):
            graph.initializer.append(onnx.numpy_helper.from_array(np.array(values, np.int64), name))
        insert(
            graph,
            onnx.helper.make_node("Reshape", ["embedded", "rows"], ["flat"], name="flat"),
            onnx.helper.make_node("Softmax", ["flat"], ["met"], name="meet", axis=0),
            onnx.helper.make_node("Reshape", ["met", "samples"], ["add"], name="back"),
        )

    return bench.compile(onnx_model(bench, "meet.onnx", change), "--global-batch=4", "--microbatch=1")


def with_reshape(onnx, graph, shape: Sequence[int]) -> None:
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(shape, np.int64), "fixed"))
    insert(graph, onnx.helper.make_node("Reshape", ["embedded", "fixed"], ["add"], name="hold"))


@case(r"'hold' \(Reshape\)", r"\[3, 12, 48\] has 1728 elements", r"\[-1, 24, 48\]", r"multiple of 1152")
def a_reshape_that_cannot_hold(bench):
    model = onnx_model(bench, "hold.onnx", lambda onnx, graph: with_reshape(onnx, graph, [-1, 24, 48]))
    return bench.compile(model, "--global-batch=3", "--microbatch=3")


@case(r"'hold' \(Reshape\)", r"two samples", r"--dim NAME=1")
def a_batch_that_only_the_inputs_leave_free(bench):
    model = onnx_model(bench, "one.onnx", lambda onnx, graph: with_reshape(onnx, graph, [1, 12, 48]))
    return bench.compile(model, "--global-batch=4", "--microbatch=1")


@case(r"nothing\.onnx", r"has no outputs")
def a_model_without_outputs(bench):
    return bench.compile(onnx_model(bench, "nothing.onnx", lambda onnx, graph: graph.ClearField("output")))


@case(r"weights\.bin", r"[Nn]o such file|missing|not found")
def external_data_missing(bench):
    def change(onnx, graph):
        tensor = graph.initializer[-1]
        onnx.external_data_helper.set_external_data(tensor, "weights.bin", offset=0, length=len(tensor.raw_data))
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL

    return bench.compile(onnx_model(bench, "external.onnx", change))


@case(r"short\.bin", r"\b18620\b", r"\b18624\b")
def external_data_too_short(bench):
    def change(onnx, graph):
        tensor = graph.initializer[-1]
        bench.write("short.bin", tensor.raw_data[:-4])
        onnx.external_data_helper.set_external_data(tensor, "short.bin", offset=0, length=len(tensor.raw_data))
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL

    return bench.compile(onnx_model(bench, "cut.onnx", change))


@case(r"\.\./")
def external_data_outside_the_folder(bench):
    def change(onnx, graph):
        tensor = graph.initializer[-1]
        onnx.external_data_helper.set_external_data(tensor, "../weights.bin", offset=0, length=len(tensor.raw_data))
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL

    return bench.compile(onnx_model(bench, "outside.onnx", change))


# ===-- Batches, plans, clusters -------------------------------------------===#


@case(r"\b7\b", r"\b8\b")
def a_batch_that_no_microbatch_divides(bench):
    return bench.compile(bench.path("model.onnx"), "--global-batch=7", "--microbatch=2")


@case(r"block3")
def a_plan_that_drops_a_unit(bench):
    return bench.planned(lambda plan: [s["units"].remove(u) for s in plan["replicas"][0]["stages"] for u in list(s["units"]) if u.startswith("block3")])


@case(r"block0")
def a_plan_that_doubles_a_unit(bench):
    def spoil(plan):
        first, second = plan["replicas"][0]["stages"]
        second["units"] = [u for u in first["units"] if u.startswith("block0")] + second["units"]

    return bench.planned(spoil)


@case(r"n7/0", r"n0/0")
def a_plan_with_an_unknown_device(bench):
    return bench.planned(lambda plan: plan["replicas"][0]["stages"][0].update(devices=["n7/0"]))


@case(r"structure_hash|another model|other model|hash")
def a_plan_of_another_model(bench):
    return bench.planned(lambda plan: plan.update(structure_hash="0123456789abcdef"))


@case(r"stagse", r"stages")
def an_unknown_key_in_a_plan(bench):
    return bench.planned(lambda plan: plan["replicas"][0].update(stagse=[]))


@case(r"n0/0|stage 0", r"[KM]i?B")
def a_plan_that_exceeds_the_memory(bench):
    return bench.planned(lambda plan: None, cluster=plans.cluster_yaml(2).replace("1 GiB", "1 MiB"))


@case(r"memroy", r"memory")
def an_unknown_key_in_a_cluster(bench):
    return bench.planned(lambda plan: None, cluster=plans.cluster_yaml(2).replace("memory", "memroy"))


@case(r"none\.yaml", r"[Nn]o such file")
def a_missing_cluster_file(bench):
    return bench.compile(bench.path("model.onnx"), "--cluster", bench.path("none.yaml"), *bench.batch())


@case(r"none\.txt", r"[Nn]o such file")
def a_missing_hostfile(bench):
    return bench.compile(bench.path("model.onnx"), "--cluster", bench.path("none.txt"), *bench.batch())


# ===-- Runs ---------------------------------------------------------------===#


@case(r"\b97\b", r"input_ids|token")
def a_token_beyond_the_vocabulary(bench):
    inputs = {name: tensor.copy() for name, tensor in read_safetensors(bench.path("inputs.safetensors")).items()}
    inputs["input_ids"][3, 5] = 97
    write_safetensors(bench.path("beyond.safetensors"), inputs)
    return bench.run(inputs=bench.path("beyond.safetensors"))


def write_label_beyond(bench: Bench) -> str:
    labels = {name: tensor.copy() for name, tensor in read_safetensors(bench.path("labels.safetensors")).items()}
    labels["labels"][3, 5] = 97
    write_safetensors(bench.path("beyond-labels.safetensors"), labels)
    return bench.path("beyond-labels.safetensors")


@case(r"\b97\b", r"label", r"3, 5")
def a_label_beyond_the_vocabulary(bench):
    return bench.run(labels=write_label_beyond(bench))


@case(r"\b97\b", r"label", r"3, 5")
def a_label_beyond_a_divided_vocabulary(bench):
    plan = plans.plan_json(plans.PLANS["tensor2"], bench.units, "sgd")
    tool(
        "autohet-compile", bench.path("model.onnx"), "--plan", bench.write("tensor2.json", json.dumps(plan)),
        "--cluster", bench.write("two.yaml", plans.cluster_yaml(2)), f"--global-batch={plans.GLOBAL_BATCH}",
        "-o", bench.path("divided"),
    )  # fmt: skip
    return bench.run(program=bench.path("divided"), labels=write_label_beyond(bench))


@case(r"label")
def no_counted_label(bench):
    labels = np.full((plans.GLOBAL_BATCH, 12), -100, np.int64)
    write_safetensors(bench.path("none.safetensors"), {"labels": labels})
    return bench.run(labels=bench.path("none.safetensors"))


@case(r"cut\.safetensors")
def truncated_inputs(bench):
    with open(bench.path("inputs.safetensors"), "rb") as file:
        return bench.run(inputs=bench.write("cut.safetensors", file.read()[:-66]))


@case(r"unknown option", r"--stepz")
def an_unknown_option(bench):
    return bench.run("--stepz=3")


@case(r"/dev/full", r"No space left on device")
def no_space_left(bench):
    return bench.run("--metrics", "/dev/full")


@case(r"libdnnl\.so", r"matrix products")
def a_library_that_is_missing(bench):
    # The linker takes the first file of that name, and this one is none.
    os.makedirs(bench.path("libraries"), exist_ok=True)
    for name in ("libdnnl.so", "libdnnl.so.2", "libdnnl.so.3"):
        bench.write(os.path.join("libraries", name), "")
    return ["env", "LD_LIBRARY_PATH=" + bench.path("libraries"), *bench.run()]


@case(r"lacks .*(amx-tile|xop)", r"node localhost")
def a_cpu_without_a_feature(bench):
    # Intel's alone and AMD's alone: no CPU has both.
    tool("autohet-compile", bench.path("model.onnx"), *bench.batch(), "--target-features=+amx-tile,+xop", "-o", bench.path("other-cpu"))
    return bench.run(program=bench.path("other-cpu"))


@case(r"--nodes=3", r"plan has 1 node")
def another_number_of_nodes(bench):
    return [os.path.join(bench.program, "node0"), "--node=0", "--nodes=3", *bench.run()[2:]]


@case(r"has changed since it was compiled", r"'h\.0\.qkv\.weight'")
def weights_that_changed_since_compiling(bench):
    with open(bench.path("model.onnx"), "rb") as file:
        model = bytearray(file.read())
    path = bench.write("changed.onnx", bytes(model))
    tool("autohet-compile", path, *bench.batch(), "-o", bench.path("changed"))
    with open(os.path.join(bench.path("changed"), "weights.index")) as file:
        tensor = next(t for t in json.load(file)["tensors"] if t["name"] == "h.0.qkv.weight")
    model[tensor["offset"]] ^= 1
    bench.write("changed.onnx", bytes(model))
    return bench.run(program=bench.path("changed"))


# ===-- Checkpoints --------------------------------------------------------===#


@case(r"checkpoint|resume")
def nothing_to_resume(bench):
    return bench.run("--checkpoint", bench.path("nothing"), "--resume")


def checkpoint(bench: Bench, name: str, ending: str) -> Tuple[str, str]:
    """A run's checkpoints, and one of their files."""
    folder = bench.path(name)
    tool(*bench.run("--checkpoint", folder))
    return folder, next(os.path.join(where, file) for where, _, files in os.walk(folder) for file in files if file.endswith(ending))


@case(r"'rank-0000-\w+\.safetensors' is missing")
def a_checkpoint_without_a_shard(bench):
    folder, shard = checkpoint(bench, "no-shard", ".safetensors")
    os.remove(shard)
    assert "is missing" in tool("autohet-checkpoint", "list", folder)
    return bench.run("--checkpoint", folder, "--resume")


@case(r"manifest\.json", r"damaged")
def a_checkpoint_with_another_rate(bench):
    folder, manifest = checkpoint(bench, "another-rate", "manifest.json")
    with open(manifest) as file:
        text = file.read()
    with open(manifest, "w") as file:
        file.write(text.replace('"lr":0.001', '"lr":0.003'))
    return bench.run("--checkpoint", folder, "--resume")


@case(r"another model", r"structure [0-9a-f]{16}")
def a_checkpoint_of_another_model(bench):
    folder, _ = checkpoint(bench, "another-model", ".safetensors")

    def change(onnx, graph):
        graph.initializer.append(onnx.numpy_helper.from_array(np.arange(48, dtype=np.float32), "more.bias"))
        insert(graph, onnx.helper.make_node("Add", ["embedded", "more.bias"], ["add"], name="more"))

    program = bench.path("more")
    tool("autohet-compile", onnx_model(bench, "more.onnx", change), *bench.batch(), "--optimizer=sgd", "-o", program)
    return bench.run("--checkpoint", folder, "--resume", program=program)


@case(r"'parameter/[\w.]+/\d+'", r"'rank-0000-\w+\.safetensors'", r"damaged")
def a_checkpoint_with_a_flipped_byte(bench):
    folder, shard = checkpoint(bench, "flipped", ".safetensors")
    with open(shard, "r+b") as file:
        file.seek(-7, os.SEEK_END)
        byte = file.read(1)
        file.seek(-7, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    return ["autohet-checkpoint", "verify", folder]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    checks, bench = Checks(), Bench(options.work)
    for name, (prepare, facts) in CASES.items():
        if not re.search(options.only, name):
            continue
        command = prepare(bench)
        checks.count += 1
        try:
            tool(*command)
            checks.failures.append(f"{name}: accepted")
            continue
        except ToolFailed as failure:
            print("    " + failure.output.strip().replace("\n", "\n    "))
            if failure.status != 1 or "Stack dump" in failure.output:
                checks.failures.append(f"{name}: exit status {failure.status}, not an error of ours: {failure.output[:300]}")
            if "error:" not in failure.output:
                checks.failures.append(f"{name}: no line with 'error:'")
            for fact in facts:
                if not re.search(fact, failure.output):
                    checks.failures.append(f"{name}: the message does not say /{fact}/: {failure.output[:300]}")
        if os.path.exists(bench.path("out")):
            checks.failures.append(f"{name}: left an output folder")
            shutil.rmtree(bench.path("out"))
    checks.finish()


if __name__ == "__main__":
    main()
