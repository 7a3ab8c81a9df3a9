#!/usr/bin/env python3
# tests/driver/cuda_h/cuda_h_test.py - compares our driver declarations with cuda.h
"""Reads include/ptxgen/driver/{api.hpp,*.def}, writes one line of C++ for every enumerator, member,
constant and function in them, compiles that with compare.cpp against the toolkit's cuda.h, and runs
it. Also compares `since` with the versions in cudaTypedefs.h. Exit status 77 and a line SKIP where
there is no cuda.h of CUDA 13."""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
for name in ("source", "work", "compiler"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--launcher", default="")
options = parser.parse_args()

headers = Path(options.source) / "include/ptxgen/driver"


def skip(reason):
    print("SKIP: " + reason)
    sys.exit(77)


def find_toolkit():
    """The folder of the toolkit's headers."""
    roots = [os.environ.get(name) for name in ("PTXGEN_CUDA_PATH", "CUDA_HOME", "CUDA_PATH")]
    roots += ["/usr/local/cuda", *sorted(map(str, Path("/usr/local").glob("cuda-*")), reverse=True)]
    seen = []
    for root in filter(None, roots):
        header = Path(root) / "include/cuda.h"
        if not header.exists() or not header.with_name("cudaTypedefs.h").exists():
            continue
        version = int(re.search(r"#define CUDA_VERSION (\d+)", header.read_text()).group(1))
        if 13000 <= version < 14000:
            return header.parent
        seen.append(f"{header} of CUDA {version // 1000}.{version % 1000 // 10}")
    skip("no cuda.h of CUDA 13 to compare with" + (f", only {', '.join(seen)}" if seen else ""))


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def members(body, prefix=""):
    """Names of the members of a structure, those of structures without a name inside it too."""
    while nested := re.search(r"(?:struct|union)\s*\{", body):
        end, depth = nested.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(body[end], 0)
            end += 1
        name = re.match(r"\s*(\w*)\s*;", body[end:])
        if name.group(1):
            yield from members(body[nested.end():end - 1], f"{prefix}{name.group(1)}.")
            yield prefix + name.group(1), False
        else:  # its members are those of the structure around it
            yield from members(body[nested.end():end - 1], prefix)
        body = body[:nested.start()] + body[end + name.end():]
    for statement in filter(None, (part.strip() for part in body.split(";"))):
        pointer = re.search(r"\(\*(\w+)\)\(", statement)
        names = [pointer.group(1)] if pointer else [
            re.search(r"(\w+)\s*(?:\[[^\]]*\])?$", part.strip()).group(1)
            for part in statement.split(",")]
        for name in names:
            yield prefix + name, bool(re.match(r"void\s*\*", statement)) and not pointer


api = without_comments((headers / "api.hpp").read_text())
functions = without_comments((headers / "functions.def").read_text())
twins, rows = [], []

numbers = re.findall(r"PTXGEN_DRIVER_RESULT\((\w+),", (headers / "results.def").read_text())
numbers += re.findall(r"PTXGEN_DEVICE_ATTRIBUTE\((\w+),",
                      (headers / "device_attributes.def").read_text())
enums = re.findall(r"enum (\w+) : int \{(.*?)\};", api, re.DOTALL)
for name, body in enums:
    twins.append(f"PTXGEN_TWIN({name}, ::{name})")
    numbers += re.findall(r"(\w+) =", body)
rows += [f"PTXGEN_NUMBER({name})" for name in numbers if name not in ("name", "value")]

structs = re.findall(r"\n(?:struct|union) (?:alignas\(\d+\) )?(\w+) \{\n(.*?)\n\};", api, re.DOTALL)
for name, body in structs:
    twins.append(f"PTXGEN_TWIN({name}, ::{name})")
    rows.append(f"PTXGEN_STRUCT({name})")
    for member, untyped in members(body):
        # What a named structure inside holds is compared one by one; itself it has no name to us.
        nested = any(other.startswith(member + ".") for other, _ in members(body))
        reserved = member.startswith("reserved") or member == "pad"
        if nested:
            rows.append(f'compare_number("{name}.{member}", offsetof(ours::{name}, {member}), '
                        f"offsetof({name}, {member}));")
        else:
            kind = "UNTYPED_MEMBER" if untyped and not reserved and "Data" not in member else "MEMBER"
            rows.append(f"PTXGEN_{kind}({name}, {member})")

handles = re.findall(r"using (CU\w+) = (CU\w+_st)\*;", api)
for name, pointee in handles:
    twins.append(f"PTXGEN_TWIN({pointee}, std::remove_pointer_t<::{name}>)")
aliases = re.findall(r"using (CU\w+) =", api)
rows += [f"PTXGEN_TYPE({name})" for name in aliases]

# Macros of cuda.h cannot have an enumerator's name, so these have names of ours.
constants = re.findall(r"inline constexpr [\w:]+ (k\w+) =", api)
MACROS = {
    "kDeviceCpu": "CU_DEVICE_CPU",
    "kDeviceInvalid": "CU_DEVICE_INVALID",
    "kStreamLegacy": "CU_STREAM_LEGACY",
    "kStreamPerThread": "CU_STREAM_PER_THREAD",
    "kLaunchParamEnd": "CU_LAUNCH_PARAM_END",
    "kLaunchParamBufferPointer": "CU_LAUNCH_PARAM_BUFFER_POINTER",
    "kLaunchParamBufferSize": "CU_LAUNCH_PARAM_BUFFER_SIZE",
    "kMemHostAllocPortable": "CU_MEMHOSTALLOC_PORTABLE",
    "kMemHostAllocDeviceMap": "CU_MEMHOSTALLOC_DEVICEMAP",
    "kMemHostAllocWriteCombined": "CU_MEMHOSTALLOC_WRITECOMBINED",
    "kJitTargetAccelerated": "CU_COMPUTE_ACCELERATED_TARGET_BASE",
    "kJitTargetFamily": "CU_COMPUTE_FAMILY_TARGET_BASE",
    "kArrayLayered": "CUDA_ARRAY3D_LAYERED",
    "kArraySurface": "CUDA_ARRAY3D_SURFACE_LDST",
    "kArrayCubemap": "CUDA_ARRAY3D_CUBEMAP",
    "kArrayGather": "CUDA_ARRAY3D_TEXTURE_GATHER",
    "kTextureAsInteger": "CU_TRSF_READ_AS_INTEGER",
    "kTextureNormalized": "CU_TRSF_NORMALIZED_COORDINATES",
    "kTextureSrgb": "CU_TRSF_SRGB",
    "kTextureNoTrilinear": "CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION",
    "kTextureSeamless": "CU_TRSF_SEAMLESS_CUBEMAP",
}
for name in constants:
    if name not in MACROS:
        sys.exit(f"FAILED: which macro of cuda.h is {name}? say it in {Path(__file__).name}")
    rows.append(f"PTXGEN_CONSTANT({name}, {MACROS[name]})")

toolkit = find_toolkit()
typedefs = set(re.findall(r"\*(PFN_\w+)\)", (toolkit / "cudaTypedefs.h").read_text()))
wrong = []
listed = re.findall(r"PTXGEN_DRIVER_FUNCTION\((\w+),\s*(cu\w+),\s*\w+,\s*(\d+),", functions)
for field, symbol, since in listed:
    base = re.sub(r"_v\d+$", "", symbol)
    typedefed = f"PFN_{base}_v{since}"
    if typedefed not in typedefs:
        known = sorted(name for name in typedefs if re.fullmatch(rf"PFN_{base}_v\d+", name))
        wrong.append(f"{symbol}: cudaTypedefs.h has no {typedefed}, it has {', '.join(known)}")
        typedefed = f"decltype(&::{symbol})"
    rows.append(f"PTXGEN_SIGNATURE({field}, {symbol}, {typedefed})")

# A pattern that no longer fits the headers would compare nothing and be content.
for what, found, least in (("enumerators", numbers, 300), ("structures", structs, 12),
                           ("handles", handles, 13), ("functions", listed, 120),
                           ("constants", constants, 10), ("aliases", aliases, 19)):
    if len(found) < least:
        wrong.append(f"only {len(found)} {what} read from our headers, expected {least} or more")
if len(listed) != functions.count("PTXGEN_DRIVER_FUNCTION("):
    wrong.append("not every row of functions.def was read")

work = Path(options.work)
work.mkdir(parents=True, exist_ok=True)
(work / "twins.inc").write_text("\n".join(twins) + "\n")
(work / "rows.inc").write_text("\n".join(rows) + "\n")
compiled = subprocess.run(
    [*filter(None, options.launcher.split(";")), options.compiler, "-std=c++20", "-O0",
     "-Wno-deprecated-declarations", "-Wno-invalid-offsetof", "-I", str(headers.parents[1]), "-I",
     str(work), "-isystem", str(toolkit), str(Path(__file__).with_name("compare.cpp")), "-o",
     str(work / "cuda_h_facts")],
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
if compiled.returncode != 0:
    print(compiled.stdout)
    sys.exit("FAILED: does not compile, see above")
status = subprocess.run([str(work / "cuda_h_facts")]).returncode
for line in wrong:
    print("differs: " + line)
sys.exit(1 if wrong or status != 0 else 0)
