#!/usr/bin/env python3
# tests/capi/exports_test.py - libptxgen_c exports what ptxgen.h declares, nothing else
"""usage: exports_test.py HEADER LIBRARY"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

header, library = sys.argv[1:]
if shutil.which("nm") is None:
    print("SKIP: no nm (binutils)")
    sys.exit(77)
declared = set(re.findall(r"PTXGEN_API [^;(]*?\b(ptxgen_\w+|ptx_run)\(", Path(header).read_text()))
listing = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, check=True,
                         universal_newlines=True).stdout
exported = {}
for line in listing.splitlines():
    name, _, version = line.split()[-1].partition("@@")
    exported[name] = version
versions = {name for name in exported if name.startswith("PTXGEN_C_")}
functions = set(exported) - versions
problems = [f"{name} is declared and not exported" for name in sorted(declared - functions)]
problems += [f"{name} is exported and not declared" for name in sorted(functions - declared)]
problems += [f"{name} has the version '{exported[name]}', not PTXGEN_C_1"
             for name in sorted(functions & declared) if exported[name] != "PTXGEN_C_1"]
if not declared:
    problems.append("no declaration was found in the header")
if versions - {"PTXGEN_C_1"}:  # GNU ld lists the version as a symbol, mold does not
    problems.append(f"the versions are {sorted(versions)}")
soname = subprocess.run(["readelf", "-d", library], stdout=subprocess.PIPE, check=True,
                        universal_newlines=True).stdout
if not re.search(r"SONAME.*\[libptxgen_c\.so\.\d+\]", soname):
    problems.append("the library has no SONAME libptxgen_c.so.N")
print(f"{len(declared)} functions declared, {len(functions)} exported")
print("\n".join(problems))
sys.exit(1 if problems else 0)
