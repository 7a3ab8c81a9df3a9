#!/usr/bin/env python3
# tests/house/check_bundle.py - bundled programs need only libc and their own folder
"""usage: check_bundle.py FOLDER

A program in FOLDER may need shared libraries of libc, and libraries in FOLDER that it finds by an
rpath of $ORIGIN."""
import re
import subprocess
import sys
from pathlib import Path

LIBC = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux[\w-]*)\.so\.\d+")
folder = Path(sys.argv[1])
findings = []
programs = [path for path in sorted(folder.iterdir()) if path.is_file() and
            path.read_bytes()[:4] == b"\x7fELF" and ".so" not in path.name]
for program in programs:
    dynamic = subprocess.run(["readelf", "-d", str(program)], stdout=subprocess.PIPE,
                             universal_newlines=True, check=True).stdout
    paths = re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic)
    beside = paths == ["$ORIGIN"]
    if paths and not beside:
        findings.append(f"{program.name} looks for libraries in {paths}, not in its own folder")
    for library in re.findall(r"NEEDED.*\[(.+)\]", dynamic):
        if not LIBC.fullmatch(library) and not (beside and (folder / library).exists()):
            findings.append(f"{program.name} needs {library}, which the other machine may not have")
print("\n".join(findings))
print(f"{len(programs)} programs checked, {len(findings)} findings")
if not programs:
    print("no program was found, so nothing was checked")
sys.exit(1 if findings or not programs else 0)
