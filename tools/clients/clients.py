# tools/clients/clients.py - clients from PyPI, their environment on the stand-in
import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLKIT_13 = ["nvidia-cuda-nvrtc>=13,<13.1", "nvidia-nvvm>=13,<13.1", "nvidia-cuda-nvcc>=13,<13.1",
              "nvidia-cuda-crt>=13,<13.1", "nvidia-cuda-cccl>=13,<13.1",
              "nvidia-cuda-runtime>=13,<13.1"]

CUDA_PYTHON = "https://github.com/NVIDIA/cuda-python"
# 13 June 2026: cuda.bindings after 13.3.1, cuda.core after 1.1.0.
CUDA_PYTHON_OF_JUNE = "ae1617dd0cedbb472226e137f53f4cd165484a42"


@dataclass(frozen=True)
class Tests:
    """Where a client's own tests are, and how they are run. One of package, archive and repository."""
    folder: str  # of the names in suites/CLIENT.txt
    package: bool = False  # the folder is in the package
    archive: str = ""  # a package of PyPI whose source archive has the folder
    repository: str = ""  # a Git repository that has it
    revision: str = ""  # of the repository; {version}: the client's
    also: tuple = ()  # files of the repository beside the folder that the tests import
    needs: tuple = ()  # packages of PyPI beside pytest
    settings: dict = field(default_factory=dict)
    pytest: tuple = ()  # options
    together: bool = False  # a failure leaves the context usable: go on in the same process
    seconds: int = 60  # limit for each test


@dataclass(frozen=True)
class Client:
    packages: list
    settings: dict = field(default_factory=dict)
    tests: Tests = None
    # Debian's package of a module that the tests compare with; it brings the interpreter too.
    debian: str = ""
    built: bool = False  # by the toolkit's compiler, at installation
    # Loads cubins of NVRTC or nvJitLink, which libptxgen_toolkit_ptx.so (LD_AUDIT) makes PTX.
    loads_cubins: bool = False
    # Libraries of the package that hold a static CUDA runtime: they are loaded first, when the
    # stand-in leads its calls to libcudart.
    static_runtime: tuple = ()


# The emulated driver is one of CUDA 13.0: NVRTC and NVVM are no newer.
CLIENTS = {
    "tinygrad": Client(
        ["tinygrad", "numpy"], {"DEV": "CUDA:PTX"},
        Tests(".", repository="https://github.com/tinygrad/tinygrad", revision="a9069c177a",
              needs=("hypothesis",), together=True, seconds=120), debian="python3-torch"),
    "drjit": Client(
        # On newer GPUs its tests count instructions that they do not expect themselves.
        ["drjit", "numpy"], {"PTXGEN_EMULATED_GPU": "a100"},
        Tests("tests", repository="https://github.com/mitsuba-renderer/drjit", revision="v{version}",
              pytest=("-k", "cuda"))),
    "taichi": Client(
        ["taichi", "numpy"], {"TI_OFFLINE_CACHE": "0"},
        Tests("tests/python", repository="https://github.com/taichi-dev/taichi",
              revision="v{version}", also=("tests/__init__.py", "tests/test_utils.py"),
              needs=("pytest-rerunfailures",),
              settings={"TI_WANTED_ARCHS": "cuda"}, seconds=240)),
    "triton": Client(
        ["triton", "numpy"],
        {"PTXGEN_EMULATED_GPU": "a100", "TRITON_PTXAS_PATH": str(HERE / "ptxas")}),
    "halide": Client(
        ["halide", "numpy", "imageio"], {"HL_JIT_TARGET": "host-cuda-cuda_capability_80"},
        Tests("python_bindings", repository="https://github.com/halide/Halide",
              revision="v{version}")),
    "cuda_bindings": Client(
        ["cuda-bindings>=13,<14", *TOOLKIT_13, "numpy"], {},
        Tests("cuda_bindings/tests", repository=CUDA_PYTHON, revision=CUDA_PYTHON_OF_JUNE,
              also=("cuda_python_test_helpers",), together=True,
              needs=("cuda-bindings==13.3.1", "pytest<9.1", "pytest-benchmark"), pytest=("-p", "cuda_runtime")),
        loads_cubins=True),
    "cuda_core": Client(
        ["cuda-core", "cuda-bindings>=13,<14", *TOOLKIT_13, "numpy"], {},
        Tests("cuda_core/tests", repository=CUDA_PYTHON, revision=CUDA_PYTHON_OF_JUNE,
              also=("cuda_python_test_helpers",), together=True,
              needs=("cuda-core==1.1.0", "cuda-bindings==13.3.1", "pytest<9.1", "pytest-benchmark",
                     "pytest-rerunfailures", "pytest-timeout", "cloudpickle", "psutil", "cffi",
                     "ml_dtypes"),
              pytest=("-p", "cuda_runtime")),
        loads_cubins=True),
    "numba": Client(
        ["numba-cuda", "cuda-bindings>=13,<14", *TOOLKIT_13, "numpy"], {},
        Tests("numba_cuda/numba/cuda/tests", package=True, needs=("filecheck", "psutil", "cffi", "ml_dtypes"),
              pytest=("-o", "consider_namespace_packages=true", "-p", "numba_fixtures")),
        loads_cubins=True),
    "cupy": Client(
        ["cupy-cuda13x", *TOOLKIT_13, "numpy"], 
        # Its library of reductions and sorts has PTX for sm_120 only.
        {"CUPY_COMPILE_WITH_PTX": "1", "PTXGEN_EMULATED_GPU": "rtx5090",
         "PTXGEN_EMULATED_PTX": "9.5"},
        Tests("tests/cupy_tests", archive="cupy", together=True,
              pytest=("-m", "not slow and not multi_gpu")),
        static_runtime=("cupy_backends/cuda/api/runtime.*.so", "cupy/random/_generator_api.*.so",
                        "cupy/cuda/thrust.*.so", "cupy/cuda/jitify.*.so", "cupy/cuda/cub.*.so")),
    "pycuda": Client(
        ["pycuda", "numpy"], {"PATH": f"{HERE / 'bin'}:{os.environ.get('PATH', '')}"},
        Tests("test", archive="pycuda"), built=True),
    "warp": Client(
        ["warp-lang", "numpy"], {}, Tests("warp/tests", package=True, together=True,
                                           pytest=("-k", "cuda_0"))),
}


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


def tried(what, command, **options):
    """What a command prints; raises RuntimeError with its last line if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{what}: " + last_line(done.stdout + done.stderr))
    return done.stdout


def interpreter_of(client):
    """The interpreter to make an environment with, and options for it."""
    if not client.debian:
        return [sys.executable, "-m", "venv"]
    found = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Abbrev}", client.debian],
                           capture_output=True, text=True) if shutil.which("dpkg-query") else None
    if found is None or not found.stdout.startswith("ii"):
        raise RuntimeError(f"its tests compare with Debian's {client.debian}, which is not installed")
    return ["/usr/bin/python3", "-m", "venv", "--system-site-packages"]


def install(name, options, more=()):
    """The interpreter that has a client's packages; raises RuntimeError with the reason why not."""
    client, folder = CLIENTS[name], options.work / name
    python = folder / "bin/python"
    if not python.exists():
        tried("python -m venv", [*interpreter_of(client), folder])
    settings = os.environ | (build_settings(folder, options) if client.built else {})
    tried("pip", [python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                  *client.packages, *more], env=settings)
    return python


def toolkit():
    """The folder of CUDA's compiler and headers; raises RuntimeError."""
    nvcc = shutil.which("nvcc", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    pypi = HERE.parents[1] / "build/tools/nvcc/nvidia/cu13"
    if nvcc is None and not (pypi / "bin/nvcc").exists():
        raise RuntimeError("it is compiled when it is installed; `scripts/setup --cuda` gets nvcc")
    return Path(nvcc).resolve().parents[1] if nvcc else pypi


def build_settings(folder, options):
    """What compiling a client needs: the toolkit, and the stand-in to link with."""
    root = toolkit()
    (folder / "home").mkdir(parents=True, exist_ok=True)
    (folder / "home/.aksetup-defaults.py").write_text(
        f"CUDA_ROOT = {str(root)!r}\nCUDA_ENABLE_CURAND = False\n"
        f"CUDADRV_LIB_DIR = [{str(options.standin.resolve())!r}]\n")
    return {"HOME": str(folder / "home"), "CUDA_ROOT": str(root),
            "PATH": f"{root / 'bin'}:{os.environ.get('PATH', '')}"}


def source_folder(name, options, python):
    """The folder of a client's own tests; raises RuntimeError with the reason why there is none."""
    tests, target = CLIENTS[name].tests, options.work / f"{name}-source"
    number = version(python, CLIENTS[name].packages[0])
    if tests.package:
        site = tried("python", [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        target = Path(site.strip())
    elif tests.archive:
        target = options.work / f"{name}-{number}"
        if not (target / tests.folder).exists():
            # pip has no way to get an archive without asking it for its metadata.
            archives = options.work / "archives"
            tried("pip", [python, "-m", "pip", "download", "-q", "--disable-pip-version-check",
                          "--no-deps", "--no-binary", tests.archive, "-d", archives,
                          f"{tests.archive}=={number}"])
            archive = next(archives.glob(f"{tests.archive}-{number}.tar.*"))
            shutil.unpack_archive(archive, options.work)
    else:
        revision = tests.revision.format(version=number)
        if not target.exists():
            tried("git", ["git", "init", "-q", target])
        if subprocess.run(["git", "-C", target, "rev-parse", "-q", "--verify", revision + "^{commit}"],
                          capture_output=True).returncode != 0:
            tried("git", ["timeout", "300", "git", "-C", target, "fetch", "-q", "--depth", "1",
                          "--tags", tests.repository, revision])
            revision = "FETCH_HEAD"
        tried("git", ["git", "-C", target, "checkout", "-q", revision, "--", tests.folder,
                      *tests.also])
    if not (target / tests.folder).is_dir():
        raise RuntimeError(f"its sources have no folder {tests.folder}")
    return target / tests.folder


def version(python, package):
    package = re.match(r"[\w-]+", package).group()
    code = f"from importlib.metadata import version; print(version('{package}'))"
    return last_line(subprocess.run([python, "-c", code], capture_output=True, text=True).stdout)


def audited(name, options):
    """LD_AUDIT of a client that loads cubins."""
    if not CLIENTS[name].loads_cubins:
        return {}
    library = options.standin.resolve() / "libptxgen_toolkit_ptx.so"
    if not library.exists():
        raise RuntimeError(f"it loads cubins, and {options.standin} has no {library.name}")
    return {"LD_AUDIT": str(library)}


def preloaded(name, options):
    """LD_PRELOAD of a client with a static CUDA runtime; suite_plugin.py keeps it from programs that
    its tests start."""
    patterns, leading = CLIENTS[name].static_runtime, "libptxgen_static_cudart.so"
    if not patterns:
        return {}
    if not (options.standin / leading).exists():
        raise RuntimeError(f"it has a static CUDA runtime, and {options.standin} has no {leading}")
    found = [str(path) for pattern in patterns
             for path in (options.work / name).glob(f"lib/python3*/site-packages/{pattern}")]
    if len(found) != len(patterns):
        raise RuntimeError(f"of the libraries {', '.join(patterns)} only {len(found)} are there")
    return {"LD_PRELOAD": ":".join([leading, *found])}


def environment(name, options):
    """The environment in which a client runs on the stand-in."""
    folder = options.work / name
    (folder / "home").mkdir(parents=True, exist_ok=True)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PTXGEN_")}
    own = {"LD_LIBRARY_PATH": str(options.standin.resolve()), "XDG_CACHE_HOME": str(folder / "cache"),
           "HOME": str(folder / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    return inherited | CLIENTS[name].settings | preloaded(name, options) | audited(name, options) | own
