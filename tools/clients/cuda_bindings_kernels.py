# tools/clients/cuda_bindings_kernels.py - CUDA C++ kernels through cuda.bindings: NVRTC and the driver
import ctypes

import numpy as np
from checks import check, run, same
from cuda.bindings import driver, nvrtc

SOURCE = rb"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void sum(const int* x, int* total, unsigned n) {
  extern __shared__ int part[];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(total, part[0]);
}
"""


def done(result):
    """The values of a call, or its error."""
    status, *values = result
    if status != type(status)(0):
        raise RuntimeError(str(status))
    return values[0] if len(values) == 1 else values


def started():
    done(driver.cuInit(0))
    device = done(driver.cuDeviceGet(0))
    done(driver.cuCtxSetCurrent(done(driver.cuDevicePrimaryCtxRetain(device))))
    return device


def compiled(device):
    """SOURCE as PTX for the device, loaded."""
    attribute = driver.CUdevice_attribute
    major = done(driver.cuDeviceGetAttribute(
        attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = done(driver.cuDeviceGetAttribute(
        attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    program = done(nvrtc.nvrtcCreateProgram(SOURCE, b"kernels.cu", 0, [], []))
    done(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=compute_{major}{minor}".encode()]))
    ptx = b" " * done(nvrtc.nvrtcGetPTXSize(program))
    done(nvrtc.nvrtcGetPTX(program, ptx))
    done(nvrtc.nvrtcDestroyProgram(program))
    return done(driver.cuModuleLoadData(np.char.array(ptx)))


class Buffer:
    def __init__(self, array):
        self.array = array
        self.address = done(driver.cuMemAlloc(array.nbytes))
        done(driver.cuMemcpyHtoD(self.address, array.ctypes.data, array.nbytes))

    def read(self):
        result = np.empty_like(self.array)
        done(driver.cuMemcpyDtoH(result.ctypes.data, self.address, result.nbytes))
        done(driver.cuMemFree(self.address))
        return result


def launch(module, name, blocks, threads, shared, values, types):
    kernel = done(driver.cuModuleGetFunction(module, name))
    done(driver.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, shared, 0, (values, types), 0))
    done(driver.cuCtxSynchronize())


@check
def saxpy():
    module = compiled(started())
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    to_x, to_y = Buffer(x), Buffer(y)
    launch(module, b"saxpy", 8, 128, 0, (2.5, to_x.address, to_y.address, x.size),
           (ctypes.c_float, None, None, ctypes.c_uint))
    same(to_y.read(), np.float32(2.5) * x + y)


@check
def sum_with_shared_memory():
    module = compiled(started())
    x = np.arange(-300, 700, dtype=np.int32)
    to_x, total = Buffer(x), Buffer(np.zeros(1, np.int32))
    launch(module, b"sum", 4, 256, 4 * 256, (to_x.address, total.address, x.size),
           (None, None, ctypes.c_uint))
    same(total.read(), [x.sum()])


@check
def graph_of_copies():
    started()
    stream = done(driver.cuStreamCreate(0))
    source, target = Buffer(np.arange(64, dtype=np.uint64)), Buffer(np.zeros(64, np.uint64))
    done(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    done(driver.cuMemcpyDtoDAsync(target.address, source.address, 512, stream))
    graph = done(driver.cuGraphInstantiate(done(driver.cuStreamEndCapture(stream)), 0))
    before = np.ones(64, np.uint64)
    done(driver.cuMemcpyDtoH(before.ctypes.data, target.address, before.nbytes))
    same(before, np.zeros(64))  # a capture runs nothing
    done(driver.cuGraphLaunch(graph, stream))
    done(driver.cuStreamSynchronize(stream))
    same(target.read(), np.arange(64))


@check
def an_error_is_an_error():
    started()
    status, _ = driver.cuModuleLoadData(b".version 9.0\n.target sm_80\n.address_size 64\nnonsense\0")
    assert status == driver.CUresult.CUDA_ERROR_INVALID_PTX, str(status)
    status, = driver.cuMemFree(0x1234)
    assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE, str(status)


run()
