"""Whatever text IR a user writes, autohet-opt answers with an error or a result.

    passes.py SOURCE_ROOT WORK_FOLDER [--rounds N] [--seed S] [--plain]

Takes the inputs of the repository's own lit tests, changes a few words of each
(numbers, types, operands, names, lines) and runs them through the pass of their
RUN line or through any other pass or pipeline. `--plain` changes nothing and
runs every input through every pass. A failure is a signal, an assert, no answer
within a time and a memory limit, or a failure without an error message; its
input stays in WORK_FOLDER, and the line that repeats it is printed.

A process gets many inputs (`--split-input-file`), because starting one costs
more than a pass; only where a process fails are they run one by one.
"""

from __future__ import annotations

import argparse
import glob
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
from typing import Dict, List, NamedTuple, Optional

TIME_LIMIT_S = 60  # a busy machine's; a pass takes milliseconds
MEMORY_LIMIT_BYTES = 4 << 30
INPUTS_PER_PROCESS = 40
SEPARATOR = "\n// -----\n"

OUR_PASSES = re.compile(r"^ +--((?:autohet|dist|exec|het|kernel|lower|onnx)-[\w-]+) ", re.MULTILINE)
# Options without which a pass would stop at its first line.
OPTIONS = {
    "autohet-plan": ["", '=stages="embed-head@n0/0"', '=stages="embed@n0/0,head@n0/1"'],
    "dist-assign-stages": ["", '=stages="embed-head@n0/0"', '=stages="embed@n0/0,head@n0/1+n0/2"'],
    "dist-synchronize-gradients": ["", "=state-owner=first", "=bucket-bytes=16"],
    "het-freeze-parameters": ["=pattern=."],
    "onnx-to-het": ["", "=batch=3"],
}


class Source(NamedTuple):
    """One input of a test, and what its RUN lines do with it."""

    path: str
    text: str
    runs: List[List[str]]


def read_sources(root: str) -> List[Source]:
    sources = []
    for folder in ("dialects", "passes"):
        for path in sorted(glob.glob(os.path.join(root, "test", folder, "*", "*.mlir"))):
            with open(path) as file:
                text = file.read()
            runs = read_runs(text)
            # Comments would only be changed for nothing.
            text = re.sub(r"^ *//(?! -----).*\n", "", text, flags=re.MULTILINE)
            sources += [Source(path, part, runs) for part in text.split("// -----") if part.strip()]
    return sources


def read_runs(text: str) -> List[List[str]]:
    """The passes of RUN lines."""
    runs = []
    for line in re.findall(r"RUN:.*?autohet-opt +(.*)", text.replace("\\\n", " ")):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
        lexer.whitespace_split = True
        words = []
        for word in lexer:
            if word[0] in "|<>;&2":
                break
            if word.startswith("--") and not word.startswith(("--verify", "--split", "--mlir")):
                words.append(word)
        if words and words not in runs:
            runs.append(words)
    return runs


def find_passes() -> List[List[str]]:
    text = subprocess.run(["autohet-opt", "--help"], capture_output=True, text=True, check=True).stdout
    names = sorted(set(OUR_PASSES.findall(text)))
    return [["--%s%s" % (name, option)] for name in names for option in OPTIONS.get(name, [""])]


# ===-- Changes ------------------------------------------------------------===#

NUMBERS = ["0", "1", "-1", "2", "3", "7", "64", "4294967296", "9223372036854775807", "-9223372036854775808"]
TYPES = ["f32", "i64", "i1", "i8", "f64", "bf16", "f8E5M2", "i4", "ui32", "index", "none", "complex<f32>", "vector<2xf32>"]
EXTENTS = ["", "?x", "0x", "1x", "2x3x", "4294967296x", "9223372036854775807x"]


def replace_one(draw: random.Random, text: str, pattern: str, values: Optional[List[str]] = None) -> str:
    """Another of `values` for one match; without values, another match's text."""
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = draw.choice(found)
    value = draw.choice(values if values is not None else [other.group() for other in found])
    return text[: match.start()] + value + text[match.end() :]


def change_lines(draw: random.Random, text: str) -> str:
    lines = text.split("\n")
    i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
    kind = draw.randrange(4)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(j, lines[i])
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        del lines[min(i, j) : min(i, j) + 3]
    return "\n".join(lines)


CHANGES = [
    # A number of its own, or an extent; not a part of a name or a type.
    lambda draw, text: replace_one(draw, text, r"(?<![\w%#@.])-?\d+(?![\w.])", NUMBERS),
    lambda draw, text: replace_one(draw, text, r"(?<![\w%#@.])-?\d+(?![\w.])"),
    lambda draw, text: replace_one(draw, text, r"\b(?:f32|i64|i32|i1|index)\b", TYPES),
    lambda draw, text: replace_one(draw, text, r"\b\d+x", EXTENTS),
    lambda draw, text: replace_one(draw, text, r"tensor<[^>]*>"),
    lambda draw, text: replace_one(draw, text, r"%\w+"),
    lambda draw, text: replace_one(draw, text, r'"[^"\n]*"'),
    lambda draw, text: replace_one(draw, text, r"@\w+"),
    lambda draw, text: replace_one(draw, text, r"\b(?:het|dist|exec|onnx)\.\w+"),
    lambda draw, text: replace_one(draw, text, r"[\w.]+ *= *[^,}{\[\]()]+,? ?", [""]),
    lambda draw, text: replace_one(draw, text, r", [^,{}\[\]()<>]+", [""]),
    lambda draw, text: replace_one(draw, text, r"\[[-\d, ]*\]", ["[]", "[0]", "[-1]", "[1, 0]", "[2, 2]"]),
    change_lines,
]


def change(draw: random.Random, text: str) -> str:
    for _ in range(draw.choice([1, 1, 2, 3])):
        text = draw.choice(CHANGES)(draw, text)
    # MLIR 22's own parser crashes there: mlir-opt does so too.
    return text.replace("array<index", "array<i64")


# ===-- Runs ---------------------------------------------------------------===#


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def find_failure(passes: List[str], texts: List[str], symbolize: bool = False) -> Optional[str]:
    """What is wrong with how autohet-opt answers, in a line; None where nothing is."""
    try:
        result = subprocess.run(
            ["autohet-opt", "-", "-o", "/dev/null", "--split-input-file", "--mlir-disable-threading", *passes],
            input=SEPARATOR.join(texts).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=TIME_LIMIT_S,
            preexec_fn=limit_memory,
            # Names for the frames of a stack take seconds.
            env=dict(os.environ, LLVM_DISABLE_SYMBOLIZATION="" if symbolize else "1"),
        )
    except subprocess.TimeoutExpired:
        return "no answer within %d s" % TIME_LIMIT_S
    errors = result.stderr.decode(errors="replace")
    if result.returncode == 0 or (result.returncode == 1 and "error:" in errors):
        return None
    if result.returncode == 1:
        return "fails without an error message"
    assertion = re.search(r"[\w./]*:\d+: .*Assertion .*", errors)
    if assertion:
        return assertion.group()
    if not symbolize:
        return find_failure(passes, texts, symbolize=True) if len(texts) == 1 else "a signal"
    frames = re.findall(r"autohet::(?:\(anonymous namespace\)::)?[\w:]+", errors)
    return "exit status %d %s" % (result.returncode, " ".join(frames[:3]))


class Failures:
    """The different ones, each with its smallest input."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.paths: Dict[str, str] = {}

    def check(self, passes: List[str], texts: List[str]) -> None:
        failure = find_failure(passes, texts)
        if failure is None:
            return
        if len(texts) > 1:
            self.check(passes, texts[: len(texts) // 2])
            self.check(passes, texts[len(texts) // 2 :])
            return
        # A line number differs with every change of the code; what failed does not.
        key = re.sub(r":\d+:", "", failure)
        if key in self.paths:
            return
        path = os.path.join(self.folder, "failure-%d.mlir" % len(self.paths))
        self.paths[key] = path
        with open(path, "w") as file:
            file.write(texts[0])
        print("FAILED: autohet-opt %s %s\n    %s" % (path, shlex.join(passes), failure), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source_root")
    parser.add_argument("work_folder")
    parser.add_argument("--rounds", type=int, default=100, help="processes, of %d inputs" % INPUTS_PER_PROCESS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="every input through every pass, unchanged")
    options = parser.parse_args()
    shutil.rmtree(options.work_folder, ignore_errors=True)
    os.makedirs(options.work_folder)

    sources, passes = read_sources(options.source_root), find_passes()
    failures = Failures(options.work_folder)
    inputs = 0
    if options.plain:
        for run in passes:
            failures.check(run, [source.text for source in sources])
            inputs += len(sources)
    by_run: Dict[str, List[Source]] = {}
    for source in sources:
        for run in source.runs:
            by_run.setdefault(shlex.join(run), []).append(source)
    draw = random.Random(options.seed)
    for _ in range(0 if options.plain else options.rounds):
        # Mostly what a pass is for; sometimes what it is not for.
        if draw.random() < 0.75:
            words = draw.choice(sorted(by_run))
            run, pool = shlex.split(words), by_run[words]
        else:
            run, pool = draw.choice(passes), sources
        texts = [change(draw, draw.choice(pool).text) for _ in range(INPUTS_PER_PROCESS)]
        failures.check(run, texts)
        inputs += len(texts)
    print("%d inputs, %d passes, %d failures" % (inputs, len(passes), len(failures.paths)))
    return 1 if failures.paths or inputs == 0 or len(passes) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
