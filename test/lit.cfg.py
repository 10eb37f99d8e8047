# ===- lit.cfg.py - how the tests that are text run -----------------------===#
#
# Tests are .mlir files (a pass: input and CHECK lines in one) and .test files
# (command lines). Tools are found through PATH, so a RUN line is what a user
# would type. What a machine may lack is a feature, and a test that needs it
# says `REQUIRES:` and is counted as skipped, never as passed.
#
# ===----------------------------------------------------------------------===#

import glob
import os
import shutil
import subprocess

import lit.formats

config.name = "autohet"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.join(config.autohet_src_root, "test")
config.test_exec_root = os.path.join(config.autohet_obj_root, "test")

# A test that hangs is a failure, not the end of the run.
lit_config.maxIndividualTestTime = int(lit_config.params.get("timeout", 2400))

# ===-- Environment --------------------------------------------------------===#

config.environment["PATH"] = os.pathsep.join(
    [
        os.path.join(config.autohet_obj_root, "bin"),
        config.llvm_tools_dir,
        os.environ.get("PATH", "/usr/bin:/bin"),
    ]
)
# The Python package is tested from the source tree, without installing it.
config.environment["PYTHONPATH"] = os.path.join(config.autohet_src_root, "python")
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
for name, value in os.environ.items():
    if name.startswith(("AUTOHET_", "UCX_", "ASAN_", "UBSAN_", "CCACHE_")) or name in (
        "HOME",
        "TMPDIR",
        "XDG_CACHE_HOME",
        "LD_LIBRARY_PATH",
    ):
        config.environment[name] = value

# ===-- Substitutions ------------------------------------------------------===#

# The interpreter of scripts/setup has numpy and onnx; a plain one runs the rest.
venv_python = os.path.join(config.autohet_src_root, ".venv", "bin", "python")
config.has_venv = os.path.exists(venv_python)
config.substitutions += [
    ("%python", venv_python if config.has_venv else "python3"),
    ("%src", config.autohet_src_root),
    ("%build", config.autohet_obj_root),
    ("%e2e", os.path.join(config.test_source_root, "e2e")),
    ("%examples", os.path.join(config.autohet_src_root, "examples")),
]

# Goldens that are too large for the repository lie beside it.
cases = os.environ.get("AUTOHET_CASES") or os.path.join(
    os.path.dirname(os.path.realpath(config.autohet_src_root)), "shared", "cases"
)
config.substitutions.append(("%cases", cases))

# ===-- Features -----------------------------------------------------------===#

features = config.available_features
if os.path.isdir(os.path.join(cases, "torch")):
    features.add("shared-cases")
else:
    lit_config.note("no %s: the tests that read it are skipped" % cases)
if config.has_venv:
    features.add("venv")
if glob.glob(os.path.join(config.autohet_src_root, ".venv", "lib", "python3*", "site-packages", "highspy")):
    features.add("highs")
else:
    lit_config.note("no package highspy in .venv: the planner is not compared with HiGHS")
if os.geteuid() == 0:
    features.add("root")
# Root of a container may not make network namespaces.
probe = "autohet-probe-%d" % os.getpid()
if shutil.which("ip") and subprocess.run(["ip", "netns", "add", probe], capture_output=True).returncode == 0:
    subprocess.run(["ip", "netns", "del", probe])
    features.add("network-namespaces")
# PyTorch is no dependency: an interpreter that has it can be named.
torch_python = os.environ.get("AUTOHET_TORCH_PYTHON")
if torch_python:
    features.add("torch")
config.substitutions.append(("%torch_python", torch_python or "false"))
for tool in ("mpirun", "chromium"):
    if shutil.which(tool):
        features.add(tool)
# `scripts/test --all`: the full product of plans and models, and random pairs.
if lit_config.params.get("all"):
    features.add("all")
# Training runs and random tests take their seed from here, to be repeated.
config.substitutions.append(("%seed", lit_config.params.get("seed", "1")))
