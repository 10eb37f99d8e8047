"""Counts the parameters of every config.json that people have sent, and looks at their names.

    config_counts.py CONFIGS_FOLDER

The counts are those of transformers' own models of these configs (PyTorch's meta device),
which share tied weights. A file that is not in the table fails the test.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys

COUNTS = {
    "bert-4L-312D.json": 14_383_272,
    "bert-6L-768D.json": 66_991_680,
    "bert-base.vocab30528.nvidia.json": 109_518_912,
    "bert-large-uncased.nvidia.json": 335_174_458,
    "galvatron-gpt-1.5b.json": 1_557_611_200,
    "gpt2-chinese-12L.json": 102_068_736,
    "gpt2-tiny-1L-128.json": 1_911_296,
    "llama-4L-2048.json": 468_731_904,
    "llama-7b.meta-keys.json": 6_738_415_616,
    "llama2-70b.json": 68_976_648_192,
    "llama2-7b.json": 6_738_415_616,
    "llama3-8b.json": 8_030_261_248,
    "mixtral-1L.json": 1_713_418_240,
    "mixtral-8x1b-4L.json": 434_676_736,
    "mixtral-8x7b.json": 46_702_792_704,
    "qwen2-14b.json": 14_770_033_664,
    "qwen2-7b.json": 7_615_616_512,
}


def main() -> None:
    failures = 0
    for name in sorted(os.listdir(sys.argv[1])):
        command = ["autohet-compile", os.path.join(sys.argv[1], name), "--seq-len=16", "--microbatch=1", "--emit=imported"]
        done = subprocess.run(command, capture_output=True, text=True)
        shapes = re.findall(r"het\.weight_source.*?tensor<([\dx]+)xf32>", done.stdout)
        count = sum(math.prod(map(int, shape.split("x"))) for shape in shapes)
        good = count == COUNTS.get(name)
        print(name, "ok" if good else f"FAIL: {count} {done.stderr[:200]}, wanted {COUNTS.get(name)}")
        failures += not good
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
