#!/usr/bin/env python3
# tests/house/check_format.py - every C++ file is as clang-format 14 leaves it
"""usage: check_format.py SOURCE_DIR

Other versions of clang-format disagree in details, so only version 14 decides."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

source = Path(sys.argv[1])
for program in ("clang-format-14", "clang-format"):
    if shutil.which(program):
        version = subprocess.run([program, "--version"], stdout=subprocess.PIPE,
                                 universal_newlines=True).stdout
        if re.search(r"version 14\.", version):
            break
else:
    print("SKIP: no clang-format 14 found (install the package clang-format-14)")
    sys.exit(77)

files = sorted(str(path) for folder in ("include", "src", "tests", "examples", "bench", "tools")
               for path in (source / folder).rglob("*") if path.suffix in (".cpp", ".hpp", ".h"))
wrong = []
for name in files:
    # Not --dry-run --Werror: version 14 complains of `namespace a::inline b` comments and then
    # leaves them as they are.
    done = subprocess.run([program, "--style=file", name], stdout=subprocess.PIPE, cwd=source)
    if done.returncode != 0 or done.stdout != Path(name).read_bytes():
        wrong.append(name)
for name in wrong:
    print(f"{Path(name).relative_to(source)}: not formatted; run {program} -i on it")
print(f"{len(files)} files checked, {len(wrong)} not formatted")
sys.exit(1 if wrong or not files else 0)
