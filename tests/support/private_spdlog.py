#!/usr/bin/env python3
# tests/support/private_spdlog.py - libptxgen brings no spdlog under its public name
"""usage: private_spdlog.py LIBRARY

A host application may be linked with spdlog of another version. Were both to define the functions of
namespace spdlog, the linker would take either; so the library's own is in a namespace of its own."""
import re
import shutil
import subprocess
import sys

if shutil.which("nm") is None:
    print("SKIP: no nm (binutils)")
    sys.exit(77)
listing = subprocess.run(["nm", sys.argv[1]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         universal_newlines=True).stdout
symbols = [line.split()[-1] for line in listing.splitlines() if line.strip()]
private = [symbol for symbol in symbols if "21ptxgen_private_spdlog" in symbol]
# Mangled: the length of the name, then the name; a local symbol of log.cpp may contain the word.
public = [symbol for symbol in symbols if re.search(r"(?<!\d)6spdlog\d", symbol)]
print(f"{len(symbols)} symbols, {len(private)} of the private spdlog, {len(public)} of the public")
for symbol in public[:10]:
    print(f"  {symbol}")
if not private:
    print("the private spdlog was not found: does this test look at the right library?")
sys.exit(1 if public or not private else 0)
