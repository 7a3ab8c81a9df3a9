#!/usr/bin/env python3
# tests/driver/stranger/stranger_test.py - builds strangers' programs, runs them on the stand-in
"""The programs know cuda.h and libcuda only; what lets them run here is LD_LIBRARY_PATH alone.

part `c`        stranger.c against cuda.h, linked to the toolkit's stub and to our libcuda.so
part `threads`  the same built for per-thread default streams
part `images`   fat binaries and cubins made by nvcc
part `python`   stranger.py, which needs no toolkit
part `record`   stranger.py recorded by our libcuda and by the one in front of it, and replayed
part `runtime`  runtime.py, the CUDA runtime of both versions, which needs no toolkit either
part `static`   static_runtime.c, whose calls libptxgen_static_cudart.so leads to our runtime
part `nvrtc`    nvrtc.c, whose cubins libptxgen_toolkit_ptx.so makes PTX
part `nvjitlink` nvjitlink.py, whose linked images are PTX
part `settings` PTXGEN_EMULATED_GPU, PTXGEN_EMULATED_PTX, PTXGEN_LOG
part `strict`   strict.py with and without PTXGEN_STRICT

Exit status 77 and a line SKIP where the toolkit or a C compiler is missing."""
import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("part", choices=["c", "threads", "images", "python", "record", "runtime",
                                         "static", "nvrtc", "nvjitlink", "settings", "strict"])
parser.add_argument("--standin", required=True, help="the folder of our libcuda.so.1")
parser.add_argument("--work", required=True)
parser.add_argument("--shim", help="the folder of the libcuda.so.1 that records, for part record")
parser.add_argument("--ptxgen", help="the program, for part record")
options = parser.parse_args()
here = Path(__file__).parent
standin = Path(options.standin)
work = Path(options.work)
work.mkdir(parents=True, exist_ok=True)


def skip(reason):
    print("SKIP: " + reason)
    sys.exit(77)


def check(condition, reason):
    if not condition:
        sys.exit("FAILED: " + reason)


def run(*command, status=0, **settings):
    """Runs a command where of our library only its folder is known."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PTXGEN_", "CUDA_", "LD_"))}
    environment.update(settings)
    done = subprocess.run(list(map(str, command)), env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
    check(done.returncode == status, f"{command} gives {done.returncode}, expected {status}:\n"
          f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


def on_standin(*command, **settings):
    return run(*command, LD_LIBRARY_PATH=str(standin), **settings)


def toolkit():
    roots = [os.environ.get(name) for name in ("PTXGEN_CUDA_PATH", "CUDA_HOME", "CUDA_PATH")]
    for root in filter(None, [*roots, "/usr/local/cuda"]):
        header = Path(root) / "include/cuda.h"
        if not header.exists():
            continue
        version = int(re.search(r"#define CUDA_VERSION (\d+)", header.read_text()).group(1))
        if version < 12000:
            skip(f"{header} is older than CUDA 12, whose functions stranger.c uses")
        return Path(root)
    skip("no cuda.h found (install a CUDA toolkit, or set CUDA_HOME)")


def c_compiler():
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    return compiler or skip("no C compiler found")


def build(name, folder_of_libcuda, *flags):
    program = work / name
    run(c_compiler(), "-std=c99", "-O1", "-g", "-Wall", "-Wextra", *flags, "-isystem",
        toolkit() / "include", here / "stranger.c", "-o", program, "-L", folder_of_libcuda,
        "-lcuda", "-lpthread")
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", program).stdout)
    check("libcuda.so.1" in needed, f"{name} does not need libcuda.so.1 but {needed}")
    check(not any("ptxgen" in library for library in needed), f"{name} needs {needed}")
    loaded = on_standin("ldd", program).stdout
    check(f"libcuda.so.1 => {standin}/libcuda.so.1" in loaded, f"ldd says\n{loaded}")
    return program


def all_of_it(program, **settings):
    done = on_standin(program, **settings)
    print(done.stdout + done.stderr, end="")
    last = done.stdout.splitlines()[-1]
    count = re.fullmatch(r"(\d+) checks passed", last)
    check(count and int(count.group(1)) > 6000, f"the last line is {last!r}")
    return done


def part_c():
    stubs = toolkit() / "lib64/stubs"
    done = all_of_it(build("stranger", standin))
    check("store_at" in done.stderr, "the log does not tell which kernel faulted")
    if (stubs / "libcuda.so").exists():
        all_of_it(build("stranger_stub", stubs), LD_BIND_NOW="1")
    else:
        print(f"no {stubs}/libcuda.so: not linked to the toolkit's stub")


def part_threads():
    program = build("stranger_threads", standin, "-DCUDA_API_PER_THREAD_DEFAULT_STREAM")
    symbols = run("nm", "-D", program).stdout
    check("cuLaunchKernel_ptsz" in symbols, "the program does not use per-thread streams")
    all_of_it(program)


def part_images():
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path=toolkit() / "bin")
    if nvcc is None:
        skip("no nvcc found")
    program = build("stranger_images", standin)

    def image(name, *flags):
        file = work / name
        run(nvcc, *flags, here / "saxpy.cu", "-o", file, PATH=os.environ["PATH"])
        return file

    ptx = image("saxpy.ptx", "-ptx", "-arch=compute_80")
    version = re.search(r"\.version (\S+)", ptx.read_text()).group(1)

    def loads(file, code, *words):
        done = on_standin(program, file, PTXGEN_EMULATED_PTX=version)
        print(file.name + ": " + done.stdout, end="")
        result, _, log = done.stdout.partition("\n")
        check(result == str(code), f"{file.name} gives {result}, expected {code}:\n{log}")
        for word in words:
            check(word in log, f"{file.name}: {word!r} is not in the log:\n{log}")

    both = ("-gencode=arch=compute_80,code=compute_80", "-gencode=arch=compute_80,code=sm_80")
    loads(ptx, 0)
    loads(image("ptx.fatbin", "-fatbin", "--no-compress", both[0]), 0)
    loads(image("both.fatbin", "-fatbin", "--no-compress", *both), 0)
    loads(image("default.fatbin", "-fatbin", both[0]), 0)
    loads(image("packed.fatbin", "-fatbin", "-Xfatbin=-compress-all", both[0]), 0)
    loads(image("binary.fatbin", "-fatbin", "--no-compress", both[1]), 209)
    loads(image("saxpy.cubin", "-cubin", "-arch=sm_90"), 209, "cubin")


def part_python():
    done = on_standin(sys.executable, here / "stranger.py")
    print(done.stdout, end="")
    check(done.stdout.endswith("passed\n"), "stranger.py does not reach its end")


# Functions by cuGetProcAddress: a recorded one, one that is not; and functions that are forwarded.
FORWARDED = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
for name, symbol in (b"cuMemAlloc", "cuMemAlloc_v2"), (b"cuStreamQuery", "cuStreamQuery"):
    entry, status = ctypes.c_void_p(), ctypes.c_int()
    result = cuda.cuGetProcAddress_v2(name, ctypes.byref(entry), 13000, ctypes.c_uint64(0),
                                      ctypes.byref(status))
    own = ctypes.cast(getattr(cuda, symbol), ctypes.c_void_p).value == entry.value
    print(result, "own" if own else "real")
table, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(16)
print(cuda.cuMipmappedArrayCreate(None), cuda.cuGetExportTable(ctypes.byref(table), uuid))
"""


def part_record():
    """The same program on the stand-in, and on the shim that calls the stand-in: one recording."""
    script = here / "stranger.py"
    own, shim = work / "own.json", work / "shim.json"
    for recording in (own, shim):
        recording.unlink(missing_ok=True)
    plain = on_standin(sys.executable, script)
    recorded = on_standin(sys.executable, script, PTXGEN_RECORD=str(own))
    check(recorded.stdout == plain.stdout, f"recorded, it prints\n{recorded.stdout}")
    through = {"LD_LIBRARY_PATH": options.shim,
               "PTXGEN_LIBCUDA_PATH": str(standin / "libcuda.so.1")}
    shimmed = run(sys.executable, script, PTXGEN_RECORD=str(shim), **through)
    check(shimmed.stdout == plain.stdout, f"through the shim it prints\n{shimmed.stdout}")
    unrecorded = run(sys.executable, script, **through)
    check(unrecorded.stdout == plain.stdout, f"unrecorded it prints\n{unrecorded.stdout}")
    texts = [re.sub(r"ptxgen [\d.]+, ", "", path.read_text()) for path in (own, shim)]
    check(texts[0] == texts[1], "the recordings are not the same")
    for recording in (own, shim):
        done = run(options.ptxgen, "replay", recording)
        print(done.stdout, end="")
        check("\nthe same\n" in done.stdout and " launch" in done.stdout, done.stdout)
    listed = run(options.ptxgen, "replay", own, "--list").stdout.splitlines()
    check(len(listed) == 3 and listed[0] == "0 square <<<(8,1,1), (128,1,1), 0>>> changes 3991 bytes "
          "in 1 buffer" and listed[2].endswith(", fails: CUDA_ERROR_ILLEGAL_ADDRESS"), str(listed))
    first = run(options.ptxgen, "replay", own, "--launch", "0").stdout
    check(first.startswith("1 of 2 launches as recorded by ") and "\nthe same\n" in first, first)
    flipped = run(options.ptxgen, "replay", own, "--flip", "1:memory0:80", status=1).stdout
    check("launch 1 (square): " in flipped and " of memory0 differs, the first is byte 10: " in flipped,
          flipped)
    done = run(sys.executable, "-c", FORWARDED, PTXGEN_RECORD=str(work / "%p.json"), **through)
    print(done.stdout, end="")
    check(done.stdout == "0 own\n0 real\n801 801\n", done.stdout + done.stderr)
    check("cuMipmappedArrayCreate: the emulated driver has no such function" in done.stderr, done.stderr)
    nowhere = run(sys.executable, "-c", "import ctypes; "
                  "print(ctypes.CDLL('libcuda.so.1').cuInit(0))", LD_LIBRARY_PATH=options.shim,
                  PTXGEN_LIBCUDA_PATH="/nowhere/libcuda.so.1", PTXGEN_RECORD=str(work / "no.json"))
    check(nowhere.stdout == "100\n" and "there is no driver" in nowhere.stderr,
          nowhere.stdout + nowhere.stderr)


def part_runtime():
    for major in ("12", "13"):
        done = on_standin(sys.executable, here / "runtime.py", major)
        print(done.stdout, end="")
        check(done.stdout.endswith("passed\n"), "runtime.py does not finish")
        for words in ("cudaMemcpy: the destination is device memory, and the direction of the copy "
                      "calls it host memory", "cudaMallocMipmappedArray: the emulated CUDA runtime has no such"):
            check(words in done.stderr, f"{words!r} is not in the log:\n{done.stderr}")


def part_static():
    def built(name, *flags):
        program = work / name
        # Aligned as optimised code is, but with its calls.
        run(c_compiler(), "-O0", "-falign-functions=16", *flags, here / "static_runtime.c", "-o",
            program)
        return program

    def preloaded(program, *lines, log=""):
        done = on_standin(program, LD_PRELOAD="libptxgen_static_cudart.so")
        print(f"{program.name}: {done.stdout}{done.stderr}", end="")
        check(done.stdout.splitlines() == [*lines], f"{program.name}: expected {lines}")
        check(log in done.stderr and bool(log) == bool(done.stderr),
              f"{program.name}: expected {log!r} in the log:\n{done.stderr}")

    ipc = "cudaIpcCloseMemHandle: the emulated CUDA runtime has no such function"
    own = "registered with the program's own runtime"
    preloaded(built("static_12", "-DMAJOR=12"), "0 12090 7 cudaErrorNotSupported", "not own",
              "not own", log=ipc)
    preloaded(built("static_13", "-DMAJOR=13"), "0 13000 7 cudaErrorNotSupported", log=ipc)
    preloaded(built("static_11", "-DMAJOR=11"), own, "-1 -1 7 own", "own",
              log="static_11: its static CUDA runtime is older than CUDA 12; build it with")
    preloaded(built("static_short", "-DMAJOR=13", "-DSHORT"), own, "-1 -1 7 own",
              log="static_short: cudaDeviceReset is too short (1 of 14 bytes)" if
              platform.machine() == "x86_64" else "cudaDeviceReset is too short")
    # A program without a runtime, and one of the shared runtime.
    done = on_standin("/bin/echo", "quiet", LD_PRELOAD="libptxgen_static_cudart.so")
    check(done.stdout == "quiet\n" and not done.stderr, f"echo says {done.stdout}{done.stderr}")
    done = on_standin(sys.executable, here / "runtime.py", "13",
                      LD_PRELOAD="libptxgen_static_cudart.so")
    check(done.stdout.endswith("passed\n"), "runtime.py does not finish")


def part_nvrtc():
    def library(name, folder):
        path = work / folder / name
        path.parent.mkdir(exist_ok=True)
        run(c_compiler(), "-shared", "-fPIC", "-DLIBRARY", f"-Wl,-soname,{name}",
            here / "nvrtc.c", "-o", path)
        return path

    linked = library("libnvrtc.so.13", "linked")
    opened = library("libnvrtc.so.12", "opened"), library("libnvrtc-copy.so", "opened")
    for binding in ("now", "lazy"):
        program = work / f"nvrtc_{binding}"
        run(c_compiler(), "-fplt", here / "nvrtc.c", linked, f"-Wl,-z,{binding}",
            f"-Wl,-rpath,{linked.parent.resolve()}", "-ldl", "-o", program)
        without = on_standin(program, *opened)
        check(without.stdout.splitlines() == ["linked: 64 bytes, ELF, 209",
                                              "libnvrtc.so.12: 64 bytes, ELF, 209",
                                              "libnvrtc-copy.so: 64 bytes, ELF, 209"],
              f"{program.name} prints\n{without.stdout}")
        check("LD_AUDIT=.../ptxgen/libptxgen_toolkit_ptx.so" in without.stderr,
              f"the log does not say how to get PTX:\n{without.stderr}")
        done = on_standin(program, *opened, LD_AUDIT=str(standin / "libptxgen_toolkit_ptx.so"))
        print(done.stdout, end="")
        check(done.stdout.splitlines() == ["linked: 74 bytes, .version, 0",
                                           "libnvrtc.so.12: 74 bytes, .version, 0",
                                           "libnvrtc-copy.so: 64 bytes, ELF, 209"],
              f"{program.name} prints\n{done.stdout}\n{done.stderr}")
    # A process without NVRTC.
    done = on_standin("/bin/echo", "quiet", LD_AUDIT=str(standin / "libptxgen_toolkit_ptx.so"))
    check(done.stdout == "quiet\n" and not done.stderr, f"echo says {done.stdout}{done.stderr}")


# Stands for NVIDIA's: makes the PTX of `twice` of LTO IR, and as that refuses other inputs with -ptx.
OTHER_LINKER = r"""
#include <stddef.h>
#include <string.h>
static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .func (.param .b32 r) twice (.param .b32 a) {"
    " .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }\n";
static int inputs;
int nvJitLinkVersion(unsigned *major, unsigned *minor) { *major = 13; *minor = 99; return 0; }
int nvJitLinkCreate(void **handle, unsigned count, const char **options) {
  static int link;
  *handle = &link;
  inputs = 0;
  return strcmp(options[count - 2], "-lto") == 0 && strcmp(options[count - 1], "-ptx") == 0 ? 0 : 1;
}
int nvJitLinkDestroy(void **handle) { *handle = NULL; return 0; }
int nvJitLinkAddData(void *handle, int type, const void *data, size_t size, const char *name) {
  inputs += type == 3 ? 1 : 10; /* LTO IR, or another */
  return handle == NULL || data == NULL || size == 0 || name == NULL;
}
int nvJitLinkComplete(void *handle) { return handle != NULL && inputs == 1 ? 0 : 12; }
int nvJitLinkGetLinkedPtxSize(void *handle, size_t *size) { *size = sizeof ptx; return handle == NULL; }
int nvJitLinkGetLinkedPtx(void *handle, char *text) { strcpy(text, ptx); return handle == NULL; }
int nvJitLinkGetErrorLogSize(void *handle, size_t *size) { *size = 0; return handle == NULL; }
int nvJitLinkGetErrorLog(void *handle, char *log) { return handle == NULL || log == NULL; }
"""
LINKED_WITH_IT = """
#include <stdio.h>
int nvJitLinkVersion(unsigned *major, unsigned *minor);
int main(void) { unsigned a, b; nvJitLinkVersion(&a, &b); printf("%u %u\\n", a, b); return 0; }
"""


def part_nvjitlink():
    (work / "other.c").write_text(OTHER_LINKER)
    (work / "main.c").write_text(LINKED_WITH_IT)
    other = (work / "other/libnvJitLink.so.13").resolve()
    other.parent.mkdir(exist_ok=True)
    run(c_compiler(), "-shared", "-fPIC", f"-Wl,-soname,{other.name}", work / "other.c", "-o", other)
    audit = {"LD_AUDIT": str(standin / "libptxgen_toolkit_ptx.so")}
    own = ["2", "1", "1", "18", "10", "18 18 3 8", "42 10", "4",
           "ptxas wrong, line 4; error   : expected a directive, a variable or a function, found 'add' "
           "[syntax]"]
    with_lto = ["complete: 0 LTO IR runs: 42", "PTX: 3 3", ".version 7.0"]
    missing = "NVIDIA's libnvJitLink, which compiles LTO IR, is not found; set PTXGEN_NVJITLINK_PATH"

    def linked(library, name, first, lines, lto_linker, **settings):
        done = on_standin(sys.executable, here / "nvjitlink.py", library, name,
                          PTXGEN_NVJITLINK_PATH=str(lto_linker), **settings)
        print(done.stdout, end="")
        check(done.stdout.splitlines() == [first, *own, *lines], f"{library} prints\n{done.stdout}")
        for text in ("the option -arch=sm_NN is missing", "'-fast' is no option of nvJitLink.h (13.0)",
                     "'-arch=90' names no target; write -arch=sm_90", "-ptx needs -lto",
                     "the input 'lto.bc' is LTO IR: add -lto", "-ptx: no input is LTO IR",
                     "the input 'unknown' is of kind 9, which nvJitLink.h (13.0) does not have"):
            check(f"ptxgen emulated driver: error: nvJitLink: {text}\n" in done.stderr,
                  f"{text!r} is not in the log:\n{done.stderr}")

    linked("libnvJitLink.so.13", "13_0", "13 0", with_lto, other)
    linked("libnvJitLink.so.12", "12_4", "12 9", ["LTO IR: 6 " + missing, "PTX: 3 3"], "/nowhere/lib.so")
    # Its own library is no other one.
    linked("libnvJitLink.so.13", "13_0", "13 0", ["LTO IR: 6 " + missing, "PTX: 3 3"],
           standin / "libnvJitLink.so.13")
    # In place of another one, which a program opens by its path or is linked with.
    run(c_compiler(), work / "main.c", other, f"-Wl,-rpath,{other.parent}", "-o", work / "main")
    plain = run(sys.executable, here / "nvjitlink.py", other, "13_0", LD_LIBRARY_PATH=str(standin))
    check(plain.stdout == "13 99\n", f"{other} prints {plain.stdout}")
    linked(other, "13_0", "13 0", with_lto, other, **audit)
    for settings, expected in (({}, "13 99\n"), (audit, "13 0\n")):
        done = run(work / "main", **settings)
        check(done.stdout == expected, f"main with {settings} prints {done.stdout}, not {expected}")


SMALL = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
version, name = ctypes.c_int(), ctypes.create_string_buffer(100)
print(cuda.cuInit(0), cuda.cuDeviceGetName(name, 100, 0), name.value.decode())
cuda.cuDriverGetVersion(ctypes.byref(version))
print(version.value)
"""


def part_settings():
    def small(**settings):
        done = on_standin(sys.executable, "-c", SMALL, **settings)
        return done.stdout.splitlines(), done.stderr

    lines, said = small()
    print(*lines, sep="\n")
    check(lines == ["0 0 NVIDIA H200 SXM (emulated)", "13000"] and said == "", f"{lines} {said}")
    lines, said = small(PTXGEN_EMULATED_GPU="a100", PTXGEN_EMULATED_PTX="8.0")
    check(lines[0].startswith("0 0 NVIDIA A100") and lines[1] == "12000", f"{lines} {said}")
    lines, said = small(PTXGEN_EMULATED_GPU="voodoo2", PTXGEN_LOG="off")
    check(lines[0].startswith("100 "), f"{lines}")
    check("PTXGEN_EMULATED_GPU=voodoo2 is not an emulated GPU; there are t4 " in said, said)
    lines, said = small(PTXGEN_EMULATED_PTX="nine")
    check(lines[0].startswith("1 "), f"{lines}")
    check("PTXGEN_EMULATED_PTX=nine is not a PTX version" in said, said)
    done = on_standin(sys.executable, "-c", "import ctypes\n"
                      "print(ctypes.CDLL('libcuda.so.1').cuMipmappedArrayCreate(None))")
    check(done.stdout == "801\n", done.stdout)
    check("cuMipmappedArrayCreate: the emulated driver has no such function" in done.stderr, done.stderr)


FINDING = r"""ptxgen emulated driver: error: <module>:11: error: thread reads 4 bytes at offset 0x4 of \
shared memory, byte 4 of shared variable 'tile' .* \[uninitialized-read\]
    ld\.shared\.b32 %r2, \[%r1\+4\];
    by thread \(0,0,0\) of block \(0,0,0\)
""".replace("\\\n", "")
STRICT = """
    PTXGEN_STRICT=1: an error is a fault, also where hardware would go on
    the context cannot be used any more: CUDA_ERROR_LAUNCH_FAILED (719)
"""


def part_strict():
    for value, printed in (("0", "0 0 0 0\n"), ("1", "0 719 719 719\n")):
        done = on_standin(sys.executable, here / "strict.py", PTXGEN_STRICT=value)
        print(f"PTXGEN_STRICT={value}: {done.stdout}{done.stderr}", end="")
        check(done.stdout == printed, f"expected {printed!r}")
        check(re.match(FINDING, done.stderr), f"the log does not begin with\n{FINDING}")
        check(done.stderr.endswith(STRICT) == (value == "1"), f"the log ends otherwise:\n{STRICT}")


{"c": part_c, "threads": part_threads, "images": part_images, "python": part_python,
 "record": part_record, "runtime": part_runtime, "static": part_static, "nvrtc": part_nvrtc,
 "nvjitlink": part_nvjitlink,
 "settings": part_settings, "strict": part_strict}[options.part]()
