#!/usr/bin/env python3
# tests/python/run_tests.py - pytest on the package of the source tree
"""usage: run_tests.py --source DIR --library libptxgen_c.so TEST_FILE

Runs the tests of a file with the package of the tree and that library, on the emulated device. Packages
come from this interpreter or from build/tools/python, where scripts/setup installs them."""
import argparse
import os
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--source", type=Path, required=True)
parser.add_argument("--library", type=Path, required=True)
parser.add_argument("file", type=Path)
options = parser.parse_args()

folders = [options.source / "python/src", options.source / "build/tools/python"]
environment = dict(os.environ, PTXGEN_DEVICE="emulator", PTXGEN_CACHE="memory",
                   PTXGEN_C_LIBRARY=str(options.library.resolve()), PYTHONDONTWRITEBYTECODE="1",
                   PYTHONPATH=os.pathsep.join(str(folder) for folder in folders))
environment.pop("PTXGEN_LOG", None)
for module in ("cffi", "numpy", "pytest"):
    found = subprocess.run([sys.executable, "-c", f"import {module}"], env=environment,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if found.returncode != 0:
        last = (found.stdout.strip().splitlines() or ["no output"])[-1]
        print(f"SKIP: the Python package {module} cannot be imported ({last}); scripts/setup installs it")
        sys.exit(77)
done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p",
                       "ptxgen_pytest", "-W", "error", "--rootdir", str(options.file.parent),
                       str(options.file)], env=environment, stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, universal_newlines=True)
print(done.stdout, end="")
if done.returncode == 0 and " passed" not in done.stdout:
    skips = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    print(f"SKIP: {skips[0] if skips else 'no test ran'}")
    sys.exit(77)
sys.exit(done.returncode)
