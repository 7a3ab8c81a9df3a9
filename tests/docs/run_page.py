#!/usr/bin/env python3
# tests/docs/run_page.py - compiles and runs the program of a page
"""run_page.py extract PAGE FILE: writes the page's program. run_page.py run PAGE PROGRAM: runs it
and compares with the page's text block, in which * stands for a number."""
import os
import re
import subprocess
import sys

mode, page, path = sys.argv[1:]
with open(page, encoding="utf-8") as lines:
    text = lines.read()


def block(language):
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)
    if len(found) != 1:
        sys.exit(f"{page}: {len(found)} blocks of {language}, not one")
    return found[0]


if mode == "extract":
    with open(path, "w", encoding="utf-8") as out:
        out.write(block("cpp"))
    sys.exit()
environment = dict(os.environ, PTXGEN_DEVICE="emulator")
done = subprocess.run([path], capture_output=True, text=True, check=False, env=environment)
expected = block("text")
pattern = re.escape(expected).replace(r"\*", r"[0-9.]+")
if done.returncode != 0 or not re.fullmatch(pattern, done.stdout):
    sys.exit(f"{page} says\n{expected}\nthe program (status {done.returncode}) says\n{done.stdout}{done.stderr}")
print(f"{os.path.basename(page)}: the program prints what the page says")
