#!/usr/bin/env python3
# tests/driver/cudart_h/cudart_h_test.py - compares our runtime declarations with the toolkit's
"""Reads src/driver/cudart/{api.hpp,*.def}, writes one line of C++ for every error, enumerator, member
and function in them, compiles that with compare.cpp against the toolkit's cuda_runtime_api.h, and
runs it; and compares the exports of our library with those of the toolkit's. Exit status 77 and a line
SKIP where there is no toolkit of that version.

The headers are those of PTXGEN_CUDA12_PATH or PTXGEN_CUDA_PATH (CUDA_HOME, CUDA_PATH), of
/usr/local/cuda*, or those that scripts/setup --cuda has from PyPI."""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("major", choices=["12", "13"])
for name in ("source", "work", "compiler", "library"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--launcher", default="")
options = parser.parse_args()
source = Path(options.source)
cudart = source / "src/driver/cudart"
major = options.major


def skip(reason):
    print("SKIP: " + reason)
    sys.exit(77)


def find_toolkit():
    """The root of the toolkit."""
    names = ["PTXGEN_CUDA12_PATH"] if major == "12" else []
    roots = [os.environ.get(name) for name in [*names, "PTXGEN_CUDA_PATH", "CUDA_HOME", "CUDA_PATH"]]
    roots += ["/usr/local/cuda", *sorted(map(str, Path("/usr/local").glob("cuda-*")), reverse=True)]
    roots += [source / "build/tools/cuda12/nvidia/cuda_runtime", source / "build/tools/nvcc/nvidia/cu13"]
    wanted = {"12": (12090, 13000), "13": (13000, 13010)}[major]
    for root in filter(None, roots):
        header = Path(root) / "include/cuda_runtime_api.h"
        if not header.exists():
            continue
        version = int(re.search(r"#define CUDART_VERSION\s+(\d+)", header.read_text()).group(1))
        if wanted[0] <= version < wanted[1]:
            return Path(root)
    skip(f"no cuda_runtime_api.h of CUDA {'12.9' if major == '12' else '13.0'} to compare with "
         "(scripts/setup --cuda)")


toolkit = find_toolkit()


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def rows_of(file, macro):
    """The rows of a .def file: its macro's arguments as one string each."""
    text = without_comments((cudart / file).read_text())
    found = re.findall(macro + r"\((.*?)\)\n(?=\S|\n|$)", text, re.DOTALL)
    if not found:
        sys.exit(f"FAILED: no rows in {file}")
    return [re.sub(r"\s+", " ", row) for row in found]


def members(body, prefix=""):
    """Names of the members of a structure, those of structures without a name inside it too."""
    while nested := re.search(r"(?:struct|union)\s*\{", body):
        end, depth = nested.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(body[end], 0)
            end += 1
        name = re.match(r"\s*(\w*)\s*;", body[end:])
        inside = f"{prefix}{name.group(1)}." if name.group(1) else prefix
        yield from members(body[nested.end():end - 1], inside)
        body = body[:nested.start()] + body[end + name.end():]
    for statement in filter(None, (part.strip() for part in body.split(";"))):
        for part in statement.split(","):
            yield prefix + re.search(r"(\w+)\s*(?:\[[^\]]*\])?$", part.strip()).group(1)


api = without_comments((cudart / "api.hpp").read_text())
twins, rows, signatures = [], [], []

numbers = re.findall(r"PTXGEN_CUDART_ERROR\((\w+),", (cudart / "errors.def").read_text())
numbers = [name for name in numbers if name.startswith("cuda")]
for name, body in re.findall(r"enum (\w+) : int \{(.*?)\};", api, re.DOTALL):
    if name != "cudaError_t":
        numbers += re.findall(r"(\w+) =", body)
rows += [f"PTXGEN_NUMBER({name})" for name in numbers]

# Structures of our own, and the driver's that stand for the runtime's.
structs = re.findall(r"\nstruct (\w+) \{\n(.*?)\n\};", api, re.DOTALL)
other = "cudaDeviceProp" if major == "12" else "cudaDeviceProp12"
for name, body in structs:
    if name == other:
        continue
    twin = name.removesuffix("12") if name.endswith("Prop12") else name
    twins.append(f"PTXGEN_TWIN(ours::{name}, ::{twin})")
    if name in ("cudaPointerAttributes", "cudaResourceDesc") and major == "12":
        body = re.sub(r"long reserved\[8\];", "", body)
    else:
        rows.append(f"PTXGEN_STRUCT({name}, {twin})")
    for member in members(body):
        # CUDA 12 has cudaResourceDesc without these.
        if "reserved" not in member and (name, member) != ("cudaResourceDesc", "flags"):
            rows.append(f"PTXGEN_MEMBER({name}, {twin}, {member})")
handles = {name: "ours::" + name for name in re.findall(r"using (cuda\w+_t) = CU\w+;", api)}
handles |= {"cudaArray_t": "ptxgen::driver::CUarray",
            "cudaMipmappedArray_t": "ptxgen::driver::CUmipmappedArray"}
if major == "13":
    handles["cudaLogsCallbackHandle"] = "ptxgen::driver::CUlogsCallbackHandle"
for theirs, mine in handles.items():
    if theirs != "cudaHostFn_t":
        twins.append(f"PTXGEN_TWIN(std::remove_pointer_t<{mine}>, std::remove_pointer_t<::{theirs}>)")
for name in re.findall(r"using (cuda\w+) = CU\w+;", api):
    if not name.endswith("_t"):
        twins.append(f"PTXGEN_TWIN(ours::{name}, ::{name})")
        # CUDA 12 has cudaResourceViewDesc without `reserved`.
        longer = (name, major) == ("cudaResourceViewDesc", "12")
        rows.append(f"PTXGEN_MEMBER({name}, {name}, lastLayer)" if longer
                    else f"PTXGEN_STRUCT({name}, {name})")
twins.append("PTXGEN_TWIN(ptxgen::driver::CUuuid, ::cudaUUID_t)")

header = (toolkit / "include/cuda_runtime_api.h").read_text()
profiler = toolkit / "include/cuda_profiler_api.h"  # not in the package of the headers alone
if profiler.exists():
    header += profiler.read_text()
wrong, compared = [], []
for file in ("functions.def", f"functions_{major}.def"):
    for row in rows_of(file, "PTXGEN_CUDART_FUNCTION"):
        symbol, parameters = re.match(r"(\w+), \((.*?)\), \(", row).groups()
        # Some symbols of CUDA 12 are for programs built with older headers only: today's headers
        # declare the newer symbol by that name.
        if re.search(rf"#define {symbol}\s+.*{symbol}_v\d", header):
            continue
        declared = re.search(rf"\s{symbol}\s*\(", header)
        if not declared and not re.search(rf"#define\s+\w+\s+.*\b{symbol}\b", header):
            if not symbol.startswith("cudaProfiler") or profiler.exists():
                wrong.append(f"{symbol}: the headers do not declare it")
            continue
        signatures.append(f"using Signature_{symbol} = cudaError_t({parameters});")
        rows.append(f"PTXGEN_SIGNATURE({symbol})")
        compared.append(symbol)

# A pattern that no longer fits would compare nothing and be content.
for what, found, least in (("errors and enumerators", numbers, 150), ("structures", structs, 15),
                           ("functions", compared, 165)):
    if len(found) < least:
        wrong.append(f"only {len(found)} {what} compared, expected {least} or more")

work = Path(options.work)
work.mkdir(parents=True, exist_ok=True)
for name, lines in (("twins", twins), ("rows", rows), ("signatures", signatures)):
    (work / (name + ".inc")).write_text("\n".join(lines) + "\n")
compiled = subprocess.run(
    [*filter(None, options.launcher.split(";")), options.compiler, "-std=c++20", "-O0",
     "-Wno-deprecated-declarations", "-Wno-invalid-offsetof", "-I", str(source / "include"), "-I",
     str(source / "src"), "-I", str(work), "-isystem", str(toolkit / "include"),
     str(Path(__file__).with_name("compare.cpp")), "-o", str(work / "cudart_h_facts")],
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
if compiled.returncode != 0:
    print(compiled.stdout)
    sys.exit("FAILED: does not compile, see above")
status = subprocess.run([str(work / "cudart_h_facts")]).returncode


def exports_of(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], stdout=subprocess.PIPE,
                            check=True, universal_newlines=True).stdout
    return {line.split()[-1].partition("@")[0] for line in listed.splitlines()} - {Path(library).name}


theirs = next((toolkit / folder / f"libcudart.so.{major}" for folder in ("lib64", "lib")
               if (toolkit / folder / f"libcudart.so.{major}").exists()), None)
if theirs is None:
    print(f"no libcudart.so.{major} in {toolkit}: exports not compared")
else:
    missing = exports_of(theirs) - exports_of(options.library)
    if missing:
        wrong.append(f"exports that the toolkit's library has: {sorted(missing)}")
for line in wrong:
    print("differs: " + line)
sys.exit(1 if wrong or status != 0 else 0)
