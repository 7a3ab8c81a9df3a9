# tools/clients/clients.py - clients from PyPI, their environment on the stand-in
import argparse
import ctypes.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Packages and settings. The emulated driver is one of CUDA 13.0: NVRTC and NVVM are no newer.
CLIENTS = {
    "tinygrad": (["tinygrad", "numpy"], {"DEV": "CUDA:PTX"}),
    "drjit": (["drjit", "numpy"], {}),
    "taichi": (["taichi", "numpy"], {"TI_OFFLINE_CACHE": "0"}),
    "triton": (["triton", "numpy"], {"PTXGEN_EMULATED_GPU": "a100",
                                     "TRITON_PTXAS_PATH": str(HERE / "ptxas")}),
    "cuda_core": (["cuda-core", "cuda-bindings>=13,<14", "nvidia-cuda-nvrtc>=13,<13.1", "numpy"], {}),
    "numba": (["numba-cuda", "cuda-bindings>=13,<14", "nvidia-cuda-nvrtc>=13,<13.1",
               "nvidia-nvvm>=13,<13.1", "nvidia-cuda-nvcc>=13,<13.1", "nvidia-cuda-cccl>=13,<13.1",
               "numpy"], {}),
}
# These link with nvJitLink where it is installed, to machine code, which no emulated GPU runs; else
# with the driver. Libraries of its name without its functions stand in front of it.
LINK_WITH_DRIVER = ("numba", "cuda_core")


def parser_of(description):
    """The options that say where the stand-in and the clients are."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--standin", default=HERE.parents[1] / "build/dev/lib/emulated", type=Path,
                        help="the folder of libcuda.so.1 (default: build/dev/lib/emulated)")
    parser.add_argument("--work", default=HERE.parents[1] / "build/clients", type=Path,
                        help="where the clients are installed (default: build/clients)")
    return parser


def options_of(parser):
    options = parser.parse_args()
    options.work = options.work.resolve()
    if not (options.standin / "libcuda.so.1").exists():
        parser.exit(1, f"{parser.prog}: no libcuda.so.1 in {options.standin}; build the target "
                       "ptxgen_libcuda, or name its folder with --standin\n")
    return options


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"


def install(folder, packages):
    """The interpreter that has the packages; raises RuntimeError with the reason why there is none."""
    python = folder / "bin/python"
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True)
        if made.returncode != 0:
            raise RuntimeError("python -m venv: " + last_line(made.stdout + made.stderr))
    done = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                           *packages], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError("pip: " + last_line(done.stderr))
    return python


def version(python, package):
    package = re.match(r"[\w-]+", package).group()
    code = f"from importlib.metadata import version; print(version('{package}'))"
    return last_line(subprocess.run([python, "-c", code], capture_output=True, text=True).stdout)


def libraries(name, options):
    """LD_LIBRARY_PATH of a client."""
    folders = [str(options.standin.resolve())]
    empty = ctypes.util.find_library("dl")
    if name in LINK_WITH_DRIVER and empty is not None:
        hiding = options.work / name / "no-nvjitlink"
        hiding.mkdir(parents=True, exist_ok=True)
        found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                               env={"PATH": "/sbin:/usr/sbin:" + os.environ.get("PATH", "")}).stdout
        path = re.search(rf"{re.escape(empty)} .*=> (\S+)", found)
        for major in (12, 13) if path else ():
            shutil.copy(path.group(1), hiding / f"libnvJitLink.so.{major}")
        folders.append(str(hiding))
    return ":".join(folders)


def environment(name, options):
    """The environment in which a client runs on the stand-in."""
    folder = options.work / name
    (folder / "home").mkdir(parents=True, exist_ok=True)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PTXGEN_")}
    return inherited | CLIENTS[name][1] | {"LD_LIBRARY_PATH": libraries(name, options),
                                           "XDG_CACHE_HOME": str(folder / "cache"),
                                           "HOME": str(folder / "home"),
                                           "PYTHONDONTWRITEBYTECODE": "1"}
