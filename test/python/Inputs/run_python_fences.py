"""Runs the ```python test fences of a documentation page, in the current folder.

run_python_fences.py PAGE
"""

import re
import sys

with open(sys.argv[1]) as page:
    fences = re.findall(r"^```python test\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
if not fences:
    sys.exit(f"{sys.argv[1]}: no ```python test fence: nothing would be tested")
for fence in fences:
    exec(compile(fence, sys.argv[1], "exec"), {})
