#!/usr/bin/env python3
# tests/compile_fail/cpp17.py - headers compiled as C++17 say so, once
"""cpp17.py COMPILER INCLUDE: each header for users gives one #error, and the compilation ends."""
import glob
import os
import subprocess
import sys

compiler, include = sys.argv[1:]
CURE = "ptxgen needs C++20: compile with -std=c++20"
headers = sorted(glob.glob(os.path.join(include, "ptxgen", "*.hpp")))
headers = [h for h in headers if os.path.basename(h) not in ("version.hpp", "log_spdlog.hpp")]
if len(headers) < 10:
    sys.exit(f"only {len(headers)} headers found in {include}/ptxgen")
wrong = []
for header in headers:
    name = "ptxgen/" + os.path.basename(header)
    done = subprocess.run([compiler, "-std=c++17", "-fsyntax-only", "-I", include, "-x", "c++", "-"],
                          input=f'#include "{name}"\nptxgen::KernelBuilder k("a");\n',
                          capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if " error: " in line]
    # The second ends the compilation: the file that it names does not exist.
    told = len(errors) == 2 and CURE in errors[0] and "fatal error" in errors[1]
    if done.returncode == 0 or not told:
        wrong.append(f"{name}:\n{done.stderr[:2000]}")
print("\n".join(wrong) or f"{len(headers)} headers ask for C++20, once each")
sys.exit(1 if wrong else 0)
