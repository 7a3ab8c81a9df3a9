#!/usr/bin/env python3
# tests/compile_fail/compile_fail.py - checks that a program does not compile, and why
"""compile_fail.py COMPILER ID INCLUDE BUILD [CASE]

Without a case: precompiles builder.hpp, and compiles all cases as they are, which must succeed.
With one: compiles it with WRONG defined, which must fail for the reasons that it names.

g++ compiles all cases with WRONG as one, too: a case whose reasons are among the messages about its
file is not compiled alone, unless PTXGEN_TEST_FULL is 1."""
import glob
import os
import re
import subprocess
import sys

HEADER = "ptxgen/builder.hpp"


class Compiler:
    def __init__(self, program, kind, include, build):
        self.program = program
        self.clang = "Clang" in kind
        self.include = include
        self.header = os.path.join(include, HEADER)
        self.messages = os.path.join(build, "wrong.txt")
        self.precompiled = os.path.join(build, "precompiled", HEADER + (".pch" if self.clang else ".gch"))

    def run(self, *arguments):
        colour = "-fno-color-diagnostics" if self.clang else "-fdiagnostics-color=never"
        command = [self.program, "-std=c++20", colour, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def prepare(self):
        os.makedirs(os.path.dirname(self.precompiled), exist_ok=True)
        done = self.run("-x", "c++-header", "-I", self.include, self.header, "-o", self.precompiled)
        if done.returncode != 0:
            sys.exit(done.stderr)

    def compile(self, source, *options):
        if self.clang:
            use = ["-include-pch", self.precompiled, "-I", self.include]
        else:
            before = os.path.dirname(os.path.dirname(self.precompiled))
            use = ["-I", before, "-I", self.include]
        return self.run("-fsyntax-only", *use, *options, source)

    def compile_controls(self, cases):
        """All cases in one source, each in a namespace; their headers come first, outside of those."""
        headers, parts = [], []
        for case in cases:
            with open(case, encoding="utf-8") as lines:
                headers += [line for line in lines if line.startswith("#include ")]
            name = os.path.splitext(os.path.basename(case))[0]
            parts.append(f'namespace {name} {{\n#include "{case}"\n}}\n')
        source = os.path.join(os.path.dirname(os.path.dirname(self.precompiled)), "controls.cpp")
        # A precompiled header is used where it is the first.
        first = f'#include "{HEADER}"\n'
        with open(source, "w", encoding="utf-8") as file:
            file.write(first + "".join(sorted(set(headers) - {first})) + "".join(parts))
        done = self.compile(source)
        if done.returncode != 0:
            sys.exit(f"a case does not compile without WRONG\n{done.stderr}")
        print(f"{len(cases)} cases compile without WRONG")
        if not self.clang:
            wrong = self.compile(source, "-DWRONG").stderr
            with open(self.messages, "w", encoding="utf-8") as file:
                file.write(wrong)

    def messages_about(self, case):
        """What g++ said about a case among all the others: from a line with its name up to one with
        another's. Nothing where that is no error."""
        if self.clang or not os.path.exists(self.messages):
            return ""
        with open(self.messages, encoding="utf-8") as file:
            lines = file.read().splitlines()
        # Named before the error that it has in a header, `required from here`.
        named, about = "", []
        for line in lines:
            found = re.match(r"(?:In file included from |\s+from )?(/\S*/compile_fail/\w+\.cpp):", line)
            named = found.group(1) if found else named
            if named == case:
                about.append(line)
        return "\n".join(about) if any(" error: " in line for line in about) else ""


def without_namespaces(messages):
    return messages.replace("v0::", "").replace("ptxgen::", "")


def main():
    compiler = Compiler(*sys.argv[1:5])
    if len(sys.argv) == 5:
        compiler.prepare()
        here = os.path.dirname(os.path.abspath(__file__))
        compiler.compile_controls(sorted(glob.glob(os.path.join(here, "*.cpp"))))
        return
    source = sys.argv[5]
    prefixes = ("// expect: ", f"// expect {'clang' if compiler.clang else 'gcc'}: ")
    with open(source, encoding="utf-8") as lines:
        expected = [line[len(p):].strip() for line in lines for p in prefixes if line.startswith(p)]
    if not expected:
        sys.exit(f"{source}: no line `// expect: TEXT`")
    if os.environ.get("PTXGEN_TEST_FULL") != "1":
        messages = without_namespaces(compiler.messages_about(source))
        if messages and all(text in messages for text in expected):
            return
    print("compiled alone")
    wrong = compiler.compile(source, "-DWRONG")
    if wrong.returncode == 0:
        sys.exit(f"{source}: compiles with WRONG defined, and must not")
    messages = without_namespaces(wrong.stderr)
    for text in expected:
        if text not in messages:
            sys.exit(f"{source}: no message contains `{text}`\n{wrong.stderr}")


main()
