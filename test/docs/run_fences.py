"""Runs the commands of a documentation page, as a reader would.

    run_fences.py PAGE SOURCE_ROOT BUILD_ROOT WORK_FOLDER

A fence that begins with ```sh test is run; a plain ```sh is shown only. All of
one page run in one shell, in a folder that looks like the checkout but is
empty where a reader's commands write.
"""

import os
import re
import shutil
import subprocess
import sys

FENCE = re.compile(r"^```sh test\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What commands read. Everything else (out/, data/) is theirs to write.
LINKED = (".venv", "examples", "python", "scripts", "bench", "docs", "README.md", "test")


def main() -> int:
    page, source, build, work = map(os.path.abspath, sys.argv[1:5])
    with open(page) as text:
        fences = FENCE.findall(text.read())
    if not fences:
        print("%s: no ```sh test fence: nothing would be tested" % page)
        return 1
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    for name in LINKED:
        if os.path.exists(os.path.join(source, name)):
            os.symlink(os.path.join(source, name), os.path.join(work, name))
    os.symlink(build, os.path.join(work, "build"))
    # One shell for the page: a variable of one fence serves the next.
    script = "set -euo pipefail\n" + "\n".join(fences)
    # `build/bin/...` and bare tool names both work, as after `cmake --install`.
    print("\n".join("$ " + line for line in script.splitlines()[1:]), flush=True)
    return subprocess.run(["bash", "-c", script], cwd=work, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
