#!/usr/bin/env python3
# tests/house/check_format.py - every C++ file is as clang-format 14 leaves it
"""usage: check_format.py SOURCE_DIR

Other versions of clang-format disagree in details, so only version 14 decides.
With PTXGEN_TEST_FULL all files; else those that differ from the tree of 20 commits ago, and a fifth of
the others, another one for every PTXGEN_TEST_SEED. Without git all."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

COMMITS, SHARE, MINIMUM = 20, 5, 300

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


def changed_files():
    """The files that differ from earlier commits, new ones too; None where git does not say."""
    names = set()
    for command in (["diff", "--name-only", f"HEAD~{COMMITS}"],
                    ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", "-C", str(source), *command], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, universal_newlines=True)
        if done.returncode != 0:
            return None
        names.update(done.stdout.splitlines())
    return names


everything = len(files)
changed = None if os.environ.get("PTXGEN_TEST_FULL") else changed_files()
if changed is not None:
    seed = os.environ.get("PTXGEN_TEST_SEED", "")
    files = [name for name in files if str(name) in changed or
             zlib.crc32(f"{seed} {name}".encode()) % SHARE == 0]
    if len(files) < MINIMUM:
        sys.exit(f"FAILED: a sample of {len(files)} files, expected at least {MINIMUM}")

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
print(f"{len(files)} of {everything} files checked, {len(wrong)} not formatted")
sys.exit(1 if wrong or done.returncode != 0 or not files else 0)
