#!/usr/bin/env python3
# tests/docs/pages_test.py - programs in documents print what the documents say
"""usage: pages_test.py PAGE --work DIR [--compiler CC --include DIR] --library libptxgen_c.so

Runs the one C or Python program of a page on the emulated device and compares what it prints with
the text block that follows it. `--print` shows the output instead."""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("page", type=Path)
parser.add_argument("--work", type=Path, required=True)
parser.add_argument("--library", type=Path, required=True)
parser.add_argument("--compiler")
parser.add_argument("--include")
parser.add_argument("--print", action="store_true")
options = parser.parse_args()


def run(*command):
    environment = dict(os.environ, PTXGEN_DEVICE="emulator", PTXGEN_CACHE="memory",
                       PTXGEN_C_LIBRARY=str(options.library))
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout


blocks = re.findall(r"^```(\w+)\n(.*?)^```$", options.page.read_text(), re.M | re.S)
programs = [(language, text) for language, text in blocks if language in ("c", "python")]
outputs = [text for language, text in blocks if language == "text"]
if len(programs) != 1 or len(outputs) != 1:
    sys.exit(f"{options.page} has {len(programs)} programs and {len(outputs)} outputs, not one each")

options.work.mkdir(parents=True, exist_ok=True)
language, program = programs[0]
source = options.work / f"page.{'c' if language == 'c' else 'py'}"
source.write_text(program)
if language == "c":
    binary = options.work / "page"
    run(options.compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic",
        "-I" + options.include, source, "-o", binary, options.library,
        f"-Wl,-rpath,{options.library.parent}")
    printed = run(binary)
else:
    printed = run(sys.executable, source)
if options.print:
    print(printed, end="")
elif printed != outputs[0]:
    sys.exit(f"{options.page} says that its program prints\n{outputs[0]}but it prints\n{printed}")
print(f"{options.page.name}: {len(printed.splitlines())} lines as documented")
