"""Relative links of the documentation lead somewhere.

    check_links.py SOURCE_ROOT
"""

import os
import re
import sys

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")

root, errors, count = os.path.abspath(sys.argv[1]), [], 0
pages = [os.path.join(root, "README.md")]
for folder in ("docs", "dialects", "passes", "examples", "bench", "runtime", "lib"):
    for where, folders, files in os.walk(os.path.join(root, folder)):
        pages += [os.path.join(where, name) for name in files if name.endswith(".md")]
for page in pages:
    with open(page) as text:
        for number, line in enumerate(text, 1):
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue
                count += 1
                if not os.path.exists(os.path.join(os.path.dirname(page), target)):
                    errors.append("%s:%d: no such file: %s" % (os.path.relpath(page, root), number, target))
print("\n".join(errors))
print("%d pages, %d links, %d dead" % (len(pages), count, len(errors)))
sys.exit(1 if errors or not count else 0)
