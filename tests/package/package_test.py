#!/usr/bin/env python3
# tests/package/package_test.py - installs ptxgen, moves it, builds consumers against it
"""Installs a static or shared libptxgen under --work, moves the installed tree to another place
(nothing in it may remember where it was), then builds and runs tests/package/consumer twice: with
find_package(ptxgen) and with pkg-config. examples/engine is a consumer, too: it is built and run.

The kind that --build holds is installed from there; the other one is built first, library only.
Unless PTXGEN_TEST_FULL is 1: a shared one comes from the objects of a static one; examples/engine
uses the kind of --build only; with pkg-config the consumer is preprocessed and linked, the object
between the two is that of find_package(ptxgen)."""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--kind", choices=["static", "shared"], required=True)
for name in ("source", "build", "build-kind", "build-type", "flags", "werror", "work", "cmake",
             "generator", "compiler"):
    parser.add_argument("--" + name, required=True)
options = parser.parse_args()

source = Path(options.source)
work = Path(options.work)
consumer = source / "tests/package/consumer"
full = os.environ.get("PTXGEN_TEST_FULL") == "1"
clean_environment = {name: value for name, value in os.environ.items()
                     if name not in ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH",
                                     "DESTDIR")}


def run(*command, **extra):
    command = [str(part) for part in command]
    print("+", shlex.join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, env=dict(clean_environment, **extra))
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        fail(f"status {done.returncode}")
    return done.stdout


def fail(reason):
    print(f"FAILED ({options.kind}): {reason}")
    sys.exit(1)


def check(condition, reason):
    if not condition:
        fail(reason)


# The build of the other kind is kept between runs; what is installed from it is not.
for stale in ("first-place", "installed", "consumer", "engine", "cache", "pkg-config"):
    shutil.rmtree(work / stale, ignore_errors=True)
work.mkdir(parents=True, exist_ok=True)

built = Path(options.build)
if options.kind != options.build_kind:
    built = work / "build"
    archive = Path(options.build) / "lib/libptxgen.a"
    from_objects = options.kind == "shared" and archive.exists() and not full
    run(options.cmake, "-S", source, "-B", built, "-G", options.generator,
        "-DCMAKE_BUILD_TYPE=" + options.build_type,
        f"-DCMAKE_CXX_FLAGS_{options.build_type.upper()}={options.flags}",
        "-DPTXGEN_WERROR=" + options.werror, "-DCMAKE_CXX_COMPILER=" + options.compiler,
        "-DBUILD_SHARED_LIBS=" + ("ON" if options.kind == "shared" else "OFF"),
        "-DPTXGEN_ARCHIVE=" + (str(archive) if from_objects else ""),
        # The kind that was built here already has the stand-ins.
        "-DPTXGEN_BUILD_STANDIN=" + ("OFF" if from_objects else "ON"),
        "-DPTXGEN_UNITY=" + ("ON" if from_objects else "OFF"),
        "-DPTXGEN_BUILD_TESTS=OFF", "-DPTXGEN_BUILD_EXAMPLES=OFF", "-DPTXGEN_BUILD_CLI=OFF")
    run(options.cmake, "--build", built, "--parallel", "2")

run(options.cmake, "--install", built, "--prefix", work / "first-place")
prefix = work / "installed"
(work / "first-place").rename(prefix)

# What is installed.
suffix = "so" if options.kind == "shared" else "a"
library = next(prefix.glob("lib*/**/libptxgen." + suffix), None)
check(library, f"no {options.kind} library is installed")
expected = sorted(path.relative_to(source / "include") for path in source.glob("include/**/*.h*"))
found = sorted(path.relative_to(prefix / "include") for path in prefix.glob("include/**/*.h*"))
check(expected and expected == found, f"installed headers differ: {expected} and {found}")
exported = [*prefix.glob("lib*/**/cmake/ptxgen/*.cmake"), *prefix.glob("lib*/**/ptxgen.pc")]
check(len(exported) >= 5, f"the package files are incomplete: {exported}")
for path in exported:
    text = path.read_text()
    for word in ("spdlog", "fmt", "nlohmann", "CLI11", str(source), str(work)):
        check(word not in text, f"{path.name} speaks of {word}")

# Documents and examples, linked to each other as in the source tree.
documents = next(prefix.glob("share/doc/*/README.md"), None)
check(documents is not None, "README.md is not installed")
folder = documents.parent
for name in ("LICENSE", "CHANGELOG.md"):
    check((folder / name).is_file(), f"{name} is not installed")
links = re.findall(r"\]\(((?:docs|examples)/[^)#]+)\)", documents.read_text())
check(len(links) >= 12, f"README.md links to few documents: {links}")
for link in links:
    check((folder / link).exists(), f"README.md links to {link}, which is not installed")
for path in (*source.glob("docs/*.md"), *source.glob("examples/**/*.*")):
    if path.is_file() and "__pycache__" not in path.parts:
        check((folder / path.relative_to(source)).is_file(), f"{path.name} is not installed")

# The program with its manual, completions and plot scripts, where it is built.
if "PTXGEN_BUILD_CLI:BOOL=ON" in (built / "CMakeCache.txt").read_text():
    check(run(prefix / "bin/ptxgen", "--version").strip(), "the program does not run")
    page = (prefix / "share/man/man1/ptxgen.1").read_text()
    check(page == run(prefix / "bin/ptxgen", "manual"), "the manual page is not the program's")
    for shell, place in (("bash", "share/bash-completion/completions/ptxgen"),
                         ("zsh", "share/zsh/site-functions/_ptxgen"),
                         ("fish", "share/fish/vendor_completions.d/ptxgen.fish")):
        check((prefix / place).read_text() == run(prefix / "bin/ptxgen", "completion", shell),
              f"the completion of {shell} is not the program's")
    # ptxgen starts the second program from its own folder.
    for call in (("gemv-bench", "--help"), ("ptxgen", "tune", "--help")):
        check("gemv-bench" in run(prefix / "bin" / call[0], *call[1:]), f"{call} does not run")
    for script in ("ptxgen-plot-bench", "ptxgen-plot-gemv"):
        check("usage: " in run(sys.executable, prefix / "bin" / script, "--help"),
              f"{script} does not run")

# The stand-in for libcuda, where it is built.
standin = next(prefix.glob("lib*/**/ptxgen/libcuda.so.1"), None)
if standin is not None:
    started = run(sys.executable, "-c",
                  "import ctypes; print('cuInit:', ctypes.CDLL('libcuda.so.1').cuInit(0))",
                  LD_LIBRARY_PATH=str(standin.parent))
    check("cuInit: 0" in started, f"{standin} does not start")
else:
    check("PTXGEN_BUILD_STANDIN:BOOL=ON" not in (built / "CMakeCache.txt").read_text(),
          "the stand-in for libcuda is built and not installed")


# CMake projects.
def build_project(folder, name):
    run(options.cmake, "-S", folder, "-B", work / name, "-G", options.generator,
        "-DCMAKE_CXX_COMPILER=" + options.compiler, f"-DCMAKE_PREFIX_PATH={prefix}")
    run(options.cmake, "--build", work / name)
    return work / name / name


def needs_libptxgen(program):
    dynamic = run("readelf", "-d", program)
    return re.search(r"NEEDED.*libptxgen\.so", dynamic) is not None


projects = {"consumer": consumer}
if full or options.kind == options.build_kind:
    projects["engine"] = source / "examples/engine"
said = {}
for name, folder in projects.items():
    program = build_project(folder, name)
    said[name] = run(program, PTXGEN_CACHE_DIR=str(work / "cache"))
    check(needs_libptxgen(program) == (options.kind == "shared"),
          f"the {name} is not linked to the {options.kind} library")
run(work / "consumer/consumer_c")
if "engine" in said:
    check("\n0 wrong elements, " in said["engine"], "the engine did not say that all elements are right")

# A project that uses pkg-config.
if shutil.which("pkg-config") is None:
    print("SKIP: the pkg-config half: no pkg-config found (install the package pkg-config)")
    sys.exit(0)
pc = next(prefix.glob("lib*/**/ptxgen.pc")).parent
flags = run("pkg-config", "--cflags", "--libs", "ptxgen", PKG_CONFIG_PATH=str(pc)).split()
version = run("pkg-config", "--modversion", "ptxgen", PKG_CONFIG_PATH=str(pc)).strip()
check(re.fullmatch(r"\d+\.\d+\.\d+", version), f"ptxgen.pc has the version {version!r}")
(work / "pkg-config").mkdir()
program = work / "pkg-config/consumer"
translated = consumer / "main.cpp"
if not full:
    run(options.compiler, "-std=c++20", "-E", translated, "-o", work / "pkg-config/main.ii", *flags)
    translated = next((work / "consumer/CMakeFiles").glob("consumer.dir/main.cpp.o*"), translated)
run(options.compiler, "-std=c++20", translated, "-o", program, *flags)
check(needs_libptxgen(program) == (options.kind == "shared"),
      f"the pkg-config consumer is not linked to the {options.kind} library")
run(program, LD_LIBRARY_PATH=str(library.parent))
flags = run("pkg-config", "--cflags", "--libs", "ptxgen_c", PKG_CONFIG_PATH=str(pc)).split()
run("cc", "-std=c99", consumer / "main.c", "-o", work / "pkg-config/consumer_c", *flags)
run(work / "pkg-config/consumer_c", LD_LIBRARY_PATH=str(library.parent))
print(f"both consumers of the {options.kind} library build and run")
