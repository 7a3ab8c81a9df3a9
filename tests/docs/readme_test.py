#!/usr/bin/env python3
# tests/docs/readme_test.py - the README's first picture is what the program prints
"""usage: readme_test.py README.md PTXGEN [--print]

Runs the command of the first text block that begins with `$ ptxgen`, in the README's folder, and
compares the findings that it prints with the rest of the block. `--print` shows them instead."""
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

readme, program = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
block = re.search(r"^```text\n\$ (ptxgen .*?)\n(.*?)^```$", readme.read_text(), re.M | re.S)
if block is None:
    sys.exit(f"{readme} has no text block that begins with '$ ptxgen'")
# Asked for by name, the emulator does not say that there is no GPU.
done = subprocess.run([str(program), *shlex.split(block[1])[1:]], cwd=readme.parent,
                      env=dict(os.environ, PTXGEN_DEVICE="emulator"), stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE, universal_newlines=True)
if "--print" in sys.argv:
    print(done.stderr, end="")
elif done.returncode != 1 or not block[2] or not done.stderr.startswith(block[2]):
    sys.exit(f"{readme} says that '{block[1]}' prints\n{block[2]}but with status "
             f"{done.returncode} it prints\n{done.stderr}")
print(f"{block[1]}: {len(block[2].splitlines())} lines as documented")
