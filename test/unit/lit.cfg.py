# ===- lit.cfg.py - the GoogleTests, one result a test --------------------===#
#
# Every executable that autohet_add_unittest makes lies in build/test/unit and
# ends in `Tests`; lit lists and runs what is in it.
#
# ===----------------------------------------------------------------------===#

import os

import lit.formats

config.name = "autohet-unit"
config.test_format = lit.formats.GoogleTest(".", "Tests")
config.suffixes = []
config.test_source_root = os.path.join(config.autohet_obj_root, "test", "unit")
config.test_exec_root = config.test_source_root

cases = os.environ.get("AUTOHET_CASES") or os.path.join(
    os.path.dirname(os.path.realpath(config.autohet_src_root)), "shared", "cases"
)
config.environment["AUTOHET_CASES"] = cases
# Published measurements (bench/planner/README.md); tests skip without them.
config.environment["AUTOHET_DATA"] = os.environ.get("AUTOHET_DATA") or os.path.join(
    os.path.dirname(os.path.realpath(config.autohet_src_root)), "shared", "data"
)
config.environment["PATH"] = os.environ.get("PATH", "/usr/bin:/bin")
