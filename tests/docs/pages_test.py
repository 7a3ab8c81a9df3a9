#!/usr/bin/env python3
# tests/docs/pages_test.py - programs in documents print what the documents say
"""usage: pages_test.py PAGE --work DIR [--compiler CC --include DIR] --library libptxgen_c.so

Runs the C and Python programs of a page on the emulated device, each in a process of its own, and
compares what it prints with the text block that follows it; one without such a block prints nothing.
`--print` shows the outputs instead, `--write` puts them into the page. Python programs find the package
of the tree, and what it needs in this interpreter or in build/tools/python."""
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
parser.add_argument("--write", action="store_true")
parser.add_argument("--python", default=sys.executable,
                    help="an interpreter that has the package; not that of the tree then")
options = parser.parse_args()
TREE = Path(__file__).resolve().parents[2]




def environment():
    made = dict(os.environ, PTXGEN_DEVICE="emulator", PTXGEN_CACHE="memory",
                PTXGEN_C_LIBRARY=str(options.library))
    made.pop("PTXGEN_LOG", None)
    if options.python == sys.executable:
        folders = [TREE / "python/src", TREE / "build/tools/python"]
        made.update(PYTHONPATH=os.pathsep.join(map(str, folders)), PYTHONDONTWRITEBYTECODE="1")
    else:
        del made["PTXGEN_C_LIBRARY"]
    return made


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, env=environment())
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def need_packages():
    """Skips where the package of the tree cannot be imported."""
    for module in ("cffi", "numpy", "pytest"):
        found = subprocess.run([options.python, "-c", f"import {module}"], env=environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if found.returncode != 0:
            print(f"SKIP: the Python package {module} cannot be imported; scripts/setup installs it")
            sys.exit(77)


def output_of(language, program, number):
    source = options.work / f"page_{number}.{'c' if language == 'c' else 'py'}"
    source.write_text(program)
    if language == "python":
        return run(options.python, source)
    binary = options.work / f"page_{number}"
    run(options.compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic",
        "-I" + options.include, source, "-o", binary, options.library,
        f"-Wl,-rpath,{options.library.parent}")
    return run(binary)


page = options.page.read_text()
blocks = list(re.finditer(r"^```(c|python|text)\n(.*?)^```$", page, re.M | re.S))
programs = [at for at, block in enumerate(blocks) if block[1] != "text"]
if not programs or len(blocks) - len(programs) < 1:
    sys.exit(f"{options.page} has {len(programs)} programs and no output of one")
options.work.mkdir(parents=True, exist_ok=True)
if any(blocks[at][1] == "python" for at in programs):
    need_packages()
lines = 0
for at in reversed(programs):  # so that --write does not move what is still to be written
    has_output = at + 1 < len(blocks) and blocks[at + 1][1] == "text"
    said = blocks[at + 1][2] if has_output else ""
    printed = output_of(blocks[at][1], blocks[at][2], at)
    lines += len(printed.splitlines())
    if options.print:
        print(printed, end="")
    elif options.write and has_output:
        page = page[:blocks[at + 1].start(2)] + printed + page[blocks[at + 1].end(2):]
    elif printed != said:
        sys.exit(f"{options.page} says that its program {at} prints\n{said}but it prints\n{printed}")
if options.write:
    options.page.write_text(page)
print(f"{options.page.name}: {lines} lines as documented")
