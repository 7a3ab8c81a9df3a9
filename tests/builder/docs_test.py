#!/usr/bin/env python3
# tests/builder/docs_test.py - compiles the code of a document
"""docs_test.py COMPILER INCLUDE DOCUMENT LEAST: at least LEAST blocks of C++; those with #include are
programs, others fragments. Unless PTXGEN_TEST_FULL is 1 they are first compiled as one source, since
most of the time goes into the headers; each is compiled alone where that fails."""
import os
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


def together(texts):
    """All in one source, each in a namespace; the headers come first, outside of those."""
    headers = sorted({line for text in texts for line in text.splitlines() if line.startswith("#")})
    # Only the main of a program may end without a return.
    bodies = [re.sub(r"^#include .*$", "", text, flags=re.M).replace("int main(", "void start(")
              for text in texts]
    parts = [f"namespace program_{number} {{\n{body}}}\n" for number, body in enumerate(bodies)]
    return "\n".join(headers + parts)


def problem_of(text, folder):
    source = Path(folder) / "program.cpp"
    source.write_text(text, encoding="utf-8")
    done = subprocess.run([compiler, "-std=c++20", "-Wall", "-Wextra", "-Wno-unused-variable",
                           "-Werror", "-fsyntax-only", "-I", include, str(source)],
                          capture_output=True, text=True, check=False)
    return done.stderr if done.returncode != 0 else None


with tempfile.TemporaryDirectory() as folder:
    full = os.environ.get("PTXGEN_TEST_FULL") == "1"
    plain = all(line.startswith("#include ") for text in programs for line in text.splitlines()
                if line.startswith("#"))
    if full or not plain or problem_of(together(programs), folder) is not None:
        for program in programs:
            problem = problem_of(program, folder)
            if problem is not None:
                sys.exit(f"{guide}: a block does not compile\n{problem}\n{program}")
print(f"{len(blocks)} code blocks compile")
