"""Null is absent is the default, for every key of every family.

    config_defaults.py DEFAULTS.json WORK_FOLDER

The defaults are those of transformers (config/make_cases.py wrote them down). A config that
says the sizes alone, one that says all defaults, and one in which all of these are null make
the same model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict

# Where transformers takes null for something else than the default: no window, and as many
# key/value heads as heads.
NULL_MEANS = {
    "mistral": {"sliding_window", "num_key_value_heads"},
    "mixtral": {"num_key_value_heads"},
    "qwen2": {"num_key_value_heads"},
    "qwen3": {"num_key_value_heads"},
    "gemma": {"num_key_value_heads"},
}


def model(config: Dict[str, Any], work: str) -> str:
    path = os.path.join(work, "config.json")
    with open(path, "w") as text:
        json.dump(config, text)
    command = ["autohet-compile", path, "--seq-len=8", "--microbatch=1", "--emit=imported"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else "refused: " + done.stderr


def main() -> None:
    with open(sys.argv[1]) as text:
        families = json.load(text)
    os.makedirs(sys.argv[2], exist_ok=True)
    failures = 0
    for kind, facts in families.items():
        sizes, defaults = facts["sizes"], facts["defaults"]
        absent = model(sizes, sys.argv[2])
        given = model({**defaults, **sizes}, sys.argv[2])
        nulls = {key: None for key in defaults if key not in NULL_MEANS.get(kind, ())}
        null = model({**nulls, **sizes}, sys.argv[2])
        problems = [name for name, found in (("given", given), ("null", null)) if found != absent]
        if absent.startswith("refused"):
            problems = ["absent"]
        print(kind, "FAIL: " + ", ".join(problems) if problems else f"ok, {len(defaults)} keys")
        for found in (absent, given, null):
            if found.startswith("refused"):
                print("   ", found[:600])
        failures += bool(problems)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
