#!/usr/bin/env python3
# tests/programs/programs_test.py - builds CUDA programs with nvcc, runs them on the stand-ins
"""The programs know the CUDA toolkit only; what lets them run here is LD_LIBRARY_PATH alone, and
LD_PRELOAD for those with the static runtime, nvcc's default.

part `some`    a few programs, of every part of the runtime API
part `all`     every program of this folder, without options of the compiler other than the
               runtime's, with the shared and with the static runtime
part `static`  a few with the static runtime, in libraries too; what is refused
part `recorded` programs recorded (PTXGEN_RECORD) and replayed by `ptxgen replay`, in another process
part `images`  compressed PTX, PTX beside machine code, machine code alone; per-thread streams

With PTXGEN_TEST_FULL `some` is skipped and `all` runs, else the other way round; `recorded` then has
all programs. Without, objects are kept in the build tree: what is compiled once, for one part, is only
linked for another and in the next run. Exit status 77 and a line SKIP where nvcc is missing."""
import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("part", choices=["some", "all", "static", "recorded", "images"])
parser.add_argument("--standin", required=True, help="the folder of our libcuda.so.1")
parser.add_argument("--work", required=True)
parser.add_argument("--ptxgen", help="the program, for part recorded")
parser.add_argument("--only", default="", help="programs whose name has this")
options = parser.parse_args()
here = Path(__file__).parent
standin = Path(options.standin)
work = Path(options.work)
work.mkdir(parents=True, exist_ok=True)

RECORDED = ("symbols", "pools", "managed_saxpy", "graph_nodes", "graph_capture", "graph_conditions",
            "graph_memory", "surface_write")
SOME = ("vector_add", "managed_saxpy", "surface_write", "graph_nodes", "symbols", "errors",
        "cooperative")
# Programs of several files, and what else the compiler is told.
FLAGS = {"separate_main": ["-rdc=true", str(here / "separate_other.cu")],
         "driver_and_runtime": ["-lcuda"],
         "virtual_memory": ["-lcuda"],
         "warp_functions": ["-arch=sm_80"],
         "half": ["-arch=sm_80"],
         "launch_attributes": ["-arch=sm_90"]}
PRINTED = {"printf": "thread 100: has  0.00 abcdef0123 x\nthread 101: has  1.50 abcdef0123 x\n"
                     "thread 102: has  3.00 abcdef0123 x\nok\n"}
# What recordings do not hold, and say so.
NOTED = {"graph_conditions": "a graph with a node that is not recorded"}
LOGGED = {"cooperative": "a cooperative grid of 100000 blocks",
          "device_assert": "positive",
          "graph_memory": "cuGraphClone: a graph with nodes that allocate",
          "graph_conditions": "cuGraphClone: a graph with conditional nodes",
          "dynamic_shared": "60000 bytes of dynamic shared memory; it may have 49152",
          "launch_attributes": r"a grid of \(0,1,1\) blocks",
          "illegal_address": "write",
          "refused": "(?s)cudaMallocMipmappedArray: the emulated CUDA runtime has no such function"
                     ".*cubemaps are not emulated.*sRGB is not emulated.*cudaArraySurfaceLoadStore",
          "errors": "the destination is device memory|the source is device memory"}


def skip(reason):
    print("SKIP: " + reason)
    sys.exit(77)


def find_nvcc():
    roots = [os.environ.get(name) for name in ("PTXGEN_CUDA_PATH", "CUDA_HOME", "CUDA_PATH")]
    roots += ["/usr/local/cuda", here.parents[1] / "build/tools/nvcc/nvidia/cu13"]
    for root in filter(None, roots):
        nvcc = Path(root) / "bin/nvcc"
        if nvcc.exists():
            return str(nvcc)
    return shutil.which("nvcc") or skip("no nvcc found (install a CUDA toolkit, set CUDA_HOME, or "
                                        "run scripts/setup)")


nvcc = find_nvcc()


def run(*command, **settings):
    """Runs a command where of our libraries only their folder is known."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PTXGEN_", "CUDA_", "LD_"))}
    environment.update(settings)
    return subprocess.run(list(map(str, command)), env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=300)


def linker_option(flag):
    return flag.startswith(("-cudart", "-l", "-Xlinker")) or flag.endswith(".so")


def compiled(source, flags):
    """The object of a source, made by these options once; or None and what the compiler says."""
    texts = [source.read_text(), (here / "check.cuh").read_text(), *flags, nvcc,
             run(nvcc, "--version").stdout]
    name = source.stem + "_" + hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    kept = work.parent / "objects" / (name + ".o")
    kept.parent.mkdir(exist_ok=True)
    # Other parts run at the same time.
    with open(kept.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            made = kept.with_suffix(".new.o")
            done = run(nvcc, source, "-c", *flags, "-o", made)
            if done.returncode != 0:
                return None, done.stdout + done.stderr
            made.rename(kept)
    return kept, ""


def build(name, *flags, program=None):
    """The program, built like its users build it, or a line that says why not."""
    program = work / (program or name)
    flags = [*FLAGS.get(name, []), *flags]
    source = here / (name + ".cu")
    # Sources among the options are compiled by one call with the program's.
    if not os.environ.get("PTXGEN_TEST_FULL") and not any(flag.endswith(".cu") for flag in flags):
        at = [i for i, flag in enumerate(flags) if linker_option(flag)]
        values = {i + 1 for i in at if flags[i] in ("-cudart", "-Xlinker")}
        source, problem = compiled(source, [flag for i, flag in enumerate(flags)
                                            if i not in at and i not in values])
        if source is None:
            return None, problem
    done = run(nvcc, source, *flags, "-o", program)
    return (program, "") if done.returncode == 0 else (None, done.stdout + done.stderr)


def on_standin(program, **settings):
    return run(program, LD_LIBRARY_PATH=str(standin), PTXGEN_EMULATED_PTX="9.9", **settings)


# With the shared runtime, and as the compiler does it when it is told nothing.
PRELOAD = {"LD_PRELOAD": "libptxgen_static_cudart.so"}
SHARED, STATIC = ("shared", ["-cudart", "shared"], {}), ("static", [], PRELOAD)


def try_program(name, kind):
    runtime, flags, settings = kind
    program, problem = build(name, *flags, program=f"{name}_{runtime}")
    if program is None:
        return f"does not compile:\n{problem}"
    try:
        done = on_standin(program, **settings)
    except subprocess.TimeoutExpired:
        return "takes longer than 300 s"
    if done.returncode != 0 or not done.stdout.endswith("ok\n"):
        return f"ends with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    if name in PRINTED and done.stdout != PRINTED[name]:
        return f"prints\n{done.stdout}"
    if not re.search(LOGGED.get(name, ""), done.stderr):
        return f"logs\n{done.stderr}"
    if name not in LOGGED and "error" in done.stderr:
        return f"has findings:\n{done.stderr}"
    return ""


def run_programs(names, *kinds):
    """Several at a time: most of the time goes into the compiler."""
    runs = [(name, kind) for name in names for kind in kinds]
    with ThreadPoolExecutor(max_workers=2) as pool:
        problems = list(pool.map(lambda one: try_program(*one), runs))
    wrong = []
    for (name, kind), problem in zip(runs, problems):
        print(f"{name} ({kind[0]}): {problem or 'ok'}")
        if problem:
            wrong.append(f"{name} ({kind[0]})")
    print(f"{len(runs)} programs, {len(runs) - len(wrong)} right")
    check(not wrong, ", ".join(wrong))


def check(condition, reason):
    if not condition:
        sys.exit("FAILED: " + reason)


def part_some():
    if os.environ.get("PTXGEN_TEST_FULL"):
        skip("all programs run instead (PTXGEN_TEST_FULL)")
    run_programs(SOME, SHARED)


def all_programs():
    names = sorted(path.stem for path in here.glob("*.cu")
                   if path.stem not in ("separate_other", "in_library"))
    check(len(names) >= 40, f"only {len(names)} programs found")
    return names


def part_all():
    if not os.environ.get("PTXGEN_TEST_FULL"):
        skip("only with PTXGEN_TEST_FULL (scripts/test --full)")
    run_programs([name for name in all_programs() if options.only in name], SHARED, STATIC)


def part_static():
    run_programs(("vector_add", "managed_variable", "errors"), STATIC)
    program = work / "vector_add_static"
    # The runtime is asked for by the program's constructors already; its first call finds no driver
    # that it could use.
    done = on_standin(program)
    check(done.returncode == 1 and "start it with LD_PRELOAD=" in done.stderr,
          f"without the library the program ends with {done.returncode}:\n{done.stderr}")
    stripped = work / "vector_add_stripped"
    shutil.copy(program, stripped)
    check(run("strip", stripped).returncode == 0, "strip fails")
    done = on_standin(stripped, **PRELOAD)
    check(done.returncode == 1 and f"{stripped}: it was stripped, and ptxgen finds the functions of "
          "its static CUDA runtime by its symbol table" in done.stderr, f"stripped:\n{done.stderr}")
    # A library with a runtime of its own, and a program with another one.
    library = work / "libhalf.so"
    done = run(nvcc, here / "in_library.cu", "-DLIBRARY", "-shared", "-Xcompiler", "-fPIC", "-o",
               library)
    check(done.returncode == 0, done.stdout + done.stderr)
    program, problem = build("in_library", "-Xlinker", "-rpath," + str(work), str(library))
    check(program is not None, problem)
    done = on_standin(program, **PRELOAD)
    check(done.returncode == 0 and done.stdout == "ok\n" and not done.stderr,
          f"in_library: {done.stdout}{done.stderr}")
    # The same library, opened by a program that has none; its kernel writes to a null pointer.
    late = f"import ctypes; print(ctypes.CDLL('{library}')._Z15halve_on_devicePfi(None, 1))"
    settings = {"LD_LIBRARY_PATH": str(standin), "PTXGEN_EMULATED_PTX": "9.9"}
    done = run(sys.executable, "-c", late, **settings,
               LD_PRELOAD=f"{PRELOAD['LD_PRELOAD']} {library}")
    check(done.stdout == "1\n", f"a library of LD_PRELOAD: {done.stdout}{done.stderr}")
    done = run(sys.executable, "-c", late, **settings, **PRELOAD)
    check(done.stdout == "-1\n" and "one of its libraries has that runtime" in done.stderr,
          f"a library that is opened later: {done.stdout}{done.stderr}")


def record(name):
    """A program recorded while it runs as always, and its replay: the problem, or nothing."""
    program, problem = build(name, "-cudart", "shared", program=name + "_recorded")
    if program is None:
        return problem
    recording = work / (name + ".json")
    recording.unlink(missing_ok=True)
    done = on_standin(program, PTXGEN_RECORD=str(recording))
    noted = NOTED.get(name)
    right = noted in done.stderr if noted else "PTXGEN_RECORD" not in done.stderr
    if done.returncode != 0 or not done.stdout.endswith("ok\n") or not right:
        return f"recorded, it ends with {done.returncode}:\n{done.stdout}{done.stderr}"
    replay = work / (name + "_replay.json")
    run(options.ptxgen, "replay", recording, "--json", "-o", replay, PTXGEN_EMULATED_PTX="9.9")
    report = json.loads(replay.read_text())
    print(f"{name}: {report['frames']} launches, hash {report['hash']}")
    moved = report["moved"] and not noted  # conditions are allocations that are not recorded
    if not report["same"] or report["hash"] != report["expected_hash"] or moved:
        return f"is not the same: {report}"
    launches = name not in ("batch_copies", "device_query", "errors", "graph_conditions", "occupancy")
    if ((report["frames"] != 0) != launches or bool(report["notes"]) != bool(noted)
            or report["cut_off"]):
        return f"is not recorded: {report}"
    return ""


def check_changed(name, bit):
    """A bit of memory, and then of the kernel's text, is another one: the replay says where."""
    recording = work / (name + ".json")
    flipped = run(options.ptxgen, "replay", recording, "--flip", bit)
    print(flipped.stdout, end="")
    check(flipped.returncode == 1 and re.search(r"^launch 0 \(.*\): .*, the first is byte ",
                                                flipped.stdout, re.M), flipped.stderr)
    text = recording.read_text()
    damaged = work / (name + "_damaged.json")
    damaged.write_text(text.replace(".visible .entry", ".visible  .entry", 1))
    refused = run(options.ptxgen, "replay", damaged)
    check("the file was changed" in refused.stderr, refused.stderr)
    listed = run(options.ptxgen, "replay", recording, "--list").stdout.splitlines()
    check(len(listed) == 2 and re.match(r"0 \w+ <<<\(1,1,1\), .* changes \d+ bytes in ", listed[0]),
          str(listed))


def part_recorded():
    names = all_programs() if os.environ.get("PTXGEN_TEST_FULL") else RECORDED
    with ThreadPoolExecutor(max_workers=2) as pool:
        problems = dict(zip(names, pool.map(record, names)))
    for name, problem in problems.items():
        check(not problem, f"{name} {problem}")
    check_changed("symbols", "0:coefficients:30")
    listed = run(options.ptxgen, "replay", work / "graph_memory.json", "--list").stdout
    check(re.match(r"  \w*square\w* <<<.*>>>\n  \w*reverse\w* <<<.*>>>\n0 graph changes 505 bytes "
                   r"in 1 buffer\n", listed), listed)
    again = on_standin(work / "symbols_recorded", PTXGEN_RECORD=str(work / "symbols.json"))
    check(again.returncode == 0 and "nothing is recorded: File exists" in again.stderr, again.stderr)


def part_images():
    ptx = "-gencode=arch=compute_80,code=compute_80"
    for program, flags in (("packed", ["-Xfatbin=-compress-all", ptx]),
                           ("newer", ["-gencode=arch=compute_120,code=sm_120", ptx]),
                           ("thread_streams", ["-default-stream=per-thread", ptx])):
        built, problem = build("streams", "-cudart", "shared", *flags, program=program)
        check(built is not None, problem)
        done = on_standin(built)
        check(done.returncode == 0 and not done.stderr, f"{program}: {done.stdout}{done.stderr}")
    symbols = run("nm", "-D", work / "thread_streams").stdout
    check("cudaMemcpyAsync_ptsz" in symbols, "thread_streams does not use per-thread streams")
    built, problem = build("vector_add", "-cudart", "shared", "-gencode=arch=compute_80,code=sm_80",
                           program="machine_code")
    check(built is not None, problem)
    done = on_standin(built)
    print(done.stdout + done.stderr, end="")
    check("cudaErrorNoKernelImageForDevice" in done.stdout, "machine code is not refused")
    check("add -gencode arch=" in done.stderr, "the log does not say what to do")


{"some": part_some, "all": part_all, "static": part_static, "recorded": part_recorded,
 "images": part_images}[options.part]()
