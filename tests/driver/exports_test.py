#!/usr/bin/env python3
# tests/driver/exports_test.py - what the stand-in for libcuda shows to programs
"""Exactly the symbols of functions.def, of the stand-in's own .def files and the marker are exported,
nothing of ours or of the C++ library; libc is all that it needs; soname and links are those of a
driver. Where a toolkit is installed: no symbol of its stub library is missing. The same for both
versions of libcudart, whose symbols have the version that programs ask for."""
import argparse
import re
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--source", required=True)
parser.add_argument("--standin", required=True, help="the folder of our libcuda.so.1")
parser.add_argument("--kind", choices=["static", "shared"], required=True, help="of libptxgen")
options = parser.parse_args()
source = Path(options.source)
library = Path(options.standin) / "libcuda.so.1"


def rows(path, pattern):
    found = re.findall(pattern, (source / path).read_text())
    if not found:
        sys.exit(f"FAILED: no rows in {path}")
    return found


expected = set(rows("include/ptxgen/driver/functions.def",
                    r"PTXGEN_DRIVER_FUNCTION\(\w+,\s*(cu\w+),"))
own = "src/driver/standin/"
expected |= {symbol + suffix for symbol, suffix in
             rows(own + "per_thread.def", r"PTXGEN_PER_THREAD\((cu\w+), (_\w+)\)")}
expected |= set(rows(own + "same.def", r"PTXGEN_SAME\((cu\w+),"))
expected |= set(rows(own + "older.def", r"PTXGEN_OLDER\((cu\w+),"))
expected |= set(rows(own + "refused.def", r"PTXGEN_REFUSED\((cu\w+)\)"))
expected |= {"ptxgen_emulated_driver", "ptxgen_driver_log", "ptxgen_driver_records"}


def tool(*command):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout


failed = []
symbols = {line.split()[-1] for line in tool("nm", "-D", "--defined-only", library).splitlines()}
if symbols != expected:
    failed.append(f"symbols: missing {sorted(expected - symbols)}, "
                  f"not expected {sorted(symbols - expected)[:20]}")
stub = Path("/usr/local/cuda/lib64/stubs/libcuda.so")
if stub.exists():
    toolkits = {line.split()[-1] for line in tool("nm", "-D", "--defined-only", stub).splitlines()}
    toolkits -= {symbol for symbol in toolkits if not symbol.startswith("cu")}
    version = re.search(r"CUDA_VERSION (\d+)", (stub.parents[2] / "include/cuda.h").read_text())
    if int(version.group(1)) < 13010 and (missing := toolkits - symbols):
        failed.append(f"symbols that the toolkit's stub has: {sorted(missing)}")
dynamic = tool("readelf", "-d", library)
if "Library soname: [libcuda.so.1]" not in dynamic:
    failed.append("the soname is not libcuda.so.1:\n" + dynamic)
needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
allowed = re.compile(r"lib(c|m|dl|pthread)\.so\.\d+|ld-linux.*" +
                     (r"|lib(ptxgen|stdc\+\+|gcc_s)\.so.*" if options.kind == "shared" else ""))
if strange := {name for name in needed if not allowed.fullmatch(name)}:
    failed.append(f"it needs {sorted(strange)}")
if not library.is_symlink() or not (library.parent / "libcuda.so").exists():
    failed.append("libcuda.so or the file with a version is missing")


def symbols_of_runtime(major):
    """What libcudart of one version exports: the rows of its .def files and those written by hand."""
    folder = "src/driver/cudart/"
    by_hand = "".join((source / folder / name).read_text() for name in ("devices.cpp", "registry.cpp"))
    found = set(re.findall(r"^[\w* ]+ ((?:__)?cuda\w+)\(", by_hand.split('extern "C"', 1)[1], re.M))
    for part in ("", f"_{major}"):
        found |= set(rows(f"{folder}functions{part}.def", r"PTXGEN_CUDART_FUNCTION\((cuda\w+),"))
        found |= {symbol + suffix for symbol, suffix in
                  rows(f"{folder}per_thread{part}.def", r"PTXGEN_PER_THREAD\((\w+), (_\w+)\)")}
        found |= set(rows(f"{folder}refused{part}.def", r"PTXGEN_REFUSED\(((?:__)?cuda\w+)\)"))
    return found


def symbols_of_linker(major):
    """What libnvJitLink of one version exports."""
    names = list(rows("src/driver/nvjitlink/functions.def", r"PTXGEN_NVJITLINK_FUNCTION\(([A-Z]\w+),"))
    suffixes = [f"_12_{minor}" for minor in range(10)] if major == "12" else ["_13_0"]
    return ({"nvJitLinkVersion", "ptxgen_emulated_nvjitlink"} | {f"nvJitLink{name}" for name in names} |
            {f"__nvJitLink{name}{suffix}" for name in names for suffix in suffixes})


for name, symbols_of in (("libcudart", symbols_of_runtime), ("libnvJitLink", symbols_of_linker)):
    for major in ("12", "13"):
        version = f"{name}.so.{major}"
        path = Path(options.standin) / version
        found = {line.split()[-1] for line in tool("nm", "-D", "--defined-only", path).splitlines()}
        wanted = {f"{symbol}@@{version}" for symbol in symbols_of(major)}
        found.discard(version)
        if found != wanted:
            failed.append(f"{version}: missing {sorted(wanted - found)}, not expected "
                          f"{sorted(found - wanted)[:20]}")
        dynamic = tool("readelf", "-d", path)
        if f"Library soname: [{version}]" not in dynamic:
            failed.append(f"the soname is not {version}:\n{dynamic}")
        needed_of_it = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
        if strange := {library for library in needed_of_it
                       if not re.fullmatch(r"lib(cuda|c|m|dl|pthread)\.so\.\d+|ld-linux.*", library)}:
            failed.append(f"{version} needs {sorted(strange)}")
        if "libcuda.so.1" not in needed_of_it:
            failed.append(f"{version} does not need libcuda.so.1")
# What LD_PRELOAD and LD_AUDIT bring into every process needs libc and libm alone and hides no symbol of
# them.
for name, exported in (("libptxgen_static_cudart.so", set()),
                       ("libptxgen_toolkit_ptx.so", {"la_objopen", "la_objsearch", "la_symbind64",
                                                     "la_version"})):
    path = Path(options.standin) / name
    dynamic = tool("readelf", "-d", path)
    if not exported and "INITFIRST" not in dynamic:
        failed.append(f"{name} does not start before other libraries:\n{dynamic}")
    if strange := {needed for needed in re.findall(r"NEEDED.*\[(.*)\]", dynamic)
                   if not re.fullmatch(r"lib(c|m|dl)\.so\.\d+|ld-linux.*", needed)}:
        failed.append(f"{name} needs {sorted(strange)}")
    shown = {line.split()[-1].split("@")[0]
             for line in tool("nm", "-D", "--defined-only", path).splitlines()}
    if shown != exported:
        failed.append(f"{name} exports {sorted(shown)[:40]}, expected {sorted(exported)}")
for line in failed:
    print("FAILED: " + line)
print(f"{len(symbols)} symbols, needs {sorted(needed)}")
sys.exit(1 if failed else 0)
