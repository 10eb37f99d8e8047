"""Fuzzes every reader for a while, from the files that the repository has.

    python3 test/fuzz/run.py --build build --runs 2000          # as CI does
    cmake --preset fuzz && ninja -C build-fuzz fuzzers
    python3 test/fuzz/run.py --build build-fuzz --seconds 3600  # a long run
    python3 test/fuzz/run.py --build build-fuzz --cpu-seconds 1200  # beside other work

Seeds are copied from the tests (and from $AUTOHET_CASES, if that names a
folder); what a long run finds new is kept below --work. An input that crashes,
takes longer than --timeout or more memory than --memory-mib is saved there, and
the command that repeats it is printed. Exit status: 0 only if nothing was found.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# target: what its seeds look like, the largest input, and the part of --runs
TARGETS = {
    "FuzzOnnx": (("*.onnx",), 1_600_000, 0.1),
    "FuzzConfig": (("config.json", "configs/*.json"), 16_000, 0.3),
    "FuzzPlan": (("*.json", "*.plan"), 16_000, 1),
    "FuzzCluster": (("*.yaml", "*.yml", "hostfile*"), 8_000, 1),
    "FuzzJob": (("*.yaml", "*.yml"), 8_000, 1),
    "FuzzData": (("*.safetensors", "*.idx", "*.json", "*.index"), 64_000, 1),
}
# The test models, which the repository has without their weights.
MODELS = ("gpt-awkward", "bert", "llama")
# Files that tests write out of themselves are seeds too, and examples in pages.
BLOCK = re.compile(r"^```(json|yaml)\n(.*?)^```", re.M | re.S)
FENCE = re.compile(r"^//--- (\S+)\n(.*?)(?=^//--- |\Z)", re.M | re.S)


def seeds(target, folder):
    """Fills `folder` with the files that fit `target`; returns how many."""
    patterns, largest, _ = TARGETS[target]
    folder.mkdir(parents=True, exist_ok=True)

    def keep(data):
        if 0 < len(data) <= largest:
            (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)

    sources = [ROOT / "test", ROOT / "examples"]
    if os.environ.get("AUTOHET_CASES"):
        sources.append(pathlib.Path(os.environ["AUTOHET_CASES"]))
    for source in sources:
        for pattern in patterns:
            for path in source.rglob(pattern):
                if path.is_file():
                    keep(path.read_bytes())
        for path in source.rglob("*.test"):
            for name, text in FENCE.findall(path.read_text(errors="replace")):
                if any(pathlib.PurePath(name).match(p) for p in patterns):
                    keep(text.encode())
    for page in (ROOT / "docs").rglob("*.md"):
        for kind, text in BLOCK.findall(page.read_text()):
            if f"*.{kind}" in patterns:
                keep(text.encode())
    if target == "FuzzConfig":
        for path in (ROOT / "test/e2e/config").glob("*/case.json"):
            keep(json.dumps(json.loads(path.read_text())["config"]).encode())
        families = json.loads((ROOT / "test/e2e/config/defaults.json").read_text())
        for family in families.values():
            keep(json.dumps({**family["defaults"], **family["sizes"]}).encode())
    if target == "FuzzOnnx":
        for model in MODELS:
            made = folder.parent / model
            subprocess.run([sys.executable, str(ROOT / "test/e2e/models.py"), model, str(made)],
                           check=True, stdout=subprocess.DEVNULL)
            keep((made / "model.onnx").read_bytes())
    return len(list(folder.iterdir()))


def used_s(pid):
    """Of a processor, by a process that is not waited for yet."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(command, cpu_seconds):
    """The exit status, what was said, and how many seconds of a processor it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        while process.poll() is None:
            # Upon this signal, a fuzzer ends behind the input that it is at.
            if cpu_seconds and used_s(process.pid) >= cpu_seconds:
                process.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
        said.seek(0)
        text = said.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process.returncode, text, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def fuzz(target, arguments):
    binary = pathlib.Path(arguments.build).resolve() / "test" / "fuzz" / target
    if not binary.exists():
        sys.exit(f"run.py: error: {binary} is not built")
    work = pathlib.Path(arguments.work).resolve() / target
    count = seeds(target, work / "seeds")
    (work / "found").mkdir(parents=True, exist_ok=True)
    command = [
        str(binary),
        f"-seed={arguments.seed}",
        f"-max_len={TARGETS[target][1]}",
        f"-timeout={arguments.timeout}",
        f"-rss_limit_mb={arguments.memory_mib}",
        f"-artifact_prefix={work}/",
        "-print_final_stats=1",
        # Blind, all seeds but a few would look alike and be dropped.
        "-keep_seed=1",
        "-reduce_inputs=0",
    ]
    runs = count + int(arguments.runs * TARGETS[target][2])
    if arguments.seconds:
        command += [f"-max_total_time={arguments.seconds}"]
    elif not arguments.cpu_seconds:
        command += [f"-runs={runs}"]
    # What is new goes to the first folder.
    status, text, took_s = run(command + [str(work / "found"), str(work / "seeds")], arguments.cpu_seconds)
    executed = re.search(r"number_of_executed_units: (\d+)", text)
    if status == 0 and executed:
        # Of instrumented libraries: places in the code, and ways through them.
        covered = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", text)
        told = ", {} places, {} features, {} inputs kept".format(*covered[-1]) if covered else ""
        print(f"{target}: {count} seeds, {executed[1]} inputs in {took_s:.0f} s of a processor{told}, nothing found", flush=True)
        return True
    inputs = sorted(p for p in work.iterdir() if p.is_file())
    print("\n".join(text.splitlines()[-30:]))
    print(f"{target}: exit status {status} after {took_s:.0f} s of a processor")
    for path in inputs:
        print(f"  repeat with: {binary} {path}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="default: " + " ".join(TARGETS))
    parser.add_argument("--build", default="build", help="folder of the build")
    parser.add_argument("--work", default="fuzz-work", help="folder for seeds and what is found")
    parser.add_argument("--runs", type=int, default=2000, help="inputs per target, besides its seeds; a tenth for models")
    parser.add_argument("--seconds", type=int, help="per target, instead of --runs")
    parser.add_argument("--cpu-seconds", type=int, help="the same, of a processor: of a crowded machine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=20, help="seconds for one input")
    parser.add_argument("--memory-mib", type=int, default=2048)
    arguments = parser.parse_args()
    for target in arguments.targets:
        if target not in TARGETS:
            parser.error(f"no target '{target}'; there are {', '.join(TARGETS)}")
    ok = True
    for target in arguments.targets or TARGETS:
        ok &= fuzz(target, arguments)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
