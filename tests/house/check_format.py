#!/usr/bin/env python3
# tests/house/check_format.py - every C++ file is as clang-format 14 leaves it
"""usage: check_format.py SOURCE_DIR

Other versions of clang-format disagree in details, so only version 14 decides."""
import re
import shutil
import subprocess
import sys
import tempfile
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

files = sorted(path.relative_to(source) for folder in ("include", "src", "tests", "examples", "bench", "tools")
               for path in (source / folder).rglob("*") if path.suffix in (".cpp", ".hpp", ".h"))
# Not --dry-run --Werror: version 14 complains of `namespace a::inline b` comments and then leaves
# them as they are. One process formats copies of all files; a process each takes ten times as long.
with tempfile.TemporaryDirectory() as folder:
    copies = Path(folder)
    shutil.copy(source / ".clang-format", copies)
    for name in files:
        (copies / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, copies / name)
    done = subprocess.run([program, "--style=file", "-i", *files], cwd=copies)
    wrong = [name for name in files if (copies / name).read_bytes() != (source / name).read_bytes()]
for name in wrong:
    print(f"{name}: not formatted; run {program} -i on it")
print(f"{len(files)} files checked, {len(wrong)} not formatted")
sys.exit(1 if wrong or done.returncode != 0 or not files else 0)
