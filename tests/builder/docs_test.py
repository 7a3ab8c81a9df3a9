#!/usr/bin/env python3
# tests/builder/docs_test.py - compiles the code of a document
"""docs_test.py COMPILER INCLUDE DOCUMENT LEAST: at least LEAST blocks of C++; those with #include are
programs, others fragments."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

compiler, include, guide, least = sys.argv[1:]
blocks = re.findall(r"^```cpp\n(.*?)^```", Path(guide).read_text(encoding="utf-8"), re.S | re.M)
if len(blocks) < int(least):
    sys.exit(f"{guide}: only {len(blocks)} code blocks found")
fragments = ["#include <ptxgen/builder.hpp>\nusing namespace ptxgen;\n"]
programs = []
for block in blocks:
    if "#include" in block:
        programs.append(block)
    else:
        fragments.append(f"void fragment_{len(fragments)}([[maybe_unused]] KernelBuilder& k, "
                         "[[maybe_unused]] Ptr<f32> x, [[maybe_unused]] Ptr<f32> y, "
                         f"[[maybe_unused]] Value<u32> n, [[maybe_unused]] Value<f32> a) {{\n{block}}}\n")
programs.append("".join(fragments))
with tempfile.TemporaryDirectory() as folder:
    for number, program in enumerate(programs):
        source = Path(folder) / f"program_{number}.cpp"
        source.write_text(program, encoding="utf-8")
        done = subprocess.run([compiler, "-std=c++20", "-Wall", "-Wextra", "-Wno-unused-variable",
                               "-Werror", "-fsyntax-only", "-I", include, str(source)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{guide}: a block does not compile\n{done.stderr}\n{program}")
print(f"{len(blocks)} code blocks compile")
