# tools/clients/cuda_core_kernels.py - kernels through cuda.core
import numpy as np
from checks import check, run, same
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
extern "C" __device__ int counter = 5;
extern "C" __global__ void scale(float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
template <class T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value; }
"""

device = Device()
device.set_current()
stream = device.create_stream()


def compiled(kind="ptx", names=()):
    options = ProgramOptions(std="c++17", arch="sm_80")
    return Program(SOURCE, code_type="c++", options=options).compile(kind, name_expressions=names)


def array(buffer, count, dtype):
    """The bytes of memory that the host can reach."""
    return np.from_dlpack(buffer).view(np.uint8)[:count * np.dtype(dtype).itemsize].view(dtype)


@check
def properties():
    assert "emulated" in device.name, device.name
    assert device.properties.multiprocessor_count > 0


def scaled(resource):
    n = 1000
    buffer = resource.allocate(4 * n, stream=stream)
    host = np.arange(n, dtype=np.float32)
    from cuda.bindings import driver
    (status,) = driver.cuMemcpyHtoD(int(buffer.handle), host, host.nbytes)
    assert int(status) == 0, status
    launch(stream, LaunchConfig(grid=4, block=256), compiled().get_kernel("scale"), buffer,
           np.float32(3), np.int32(n))
    stream.sync()
    (status,) = driver.cuMemcpyDtoH(host, int(buffer.handle), host.nbytes)
    assert int(status) == 0, status
    same(host, np.arange(n, dtype=np.float32) * 3)
    buffer.close(stream)


@check
def memory_of_the_default_pool():
    scaled(device.memory_resource)


@check
def memory_of_a_pool():
    from cuda.core import DeviceMemoryResource, DeviceMemoryResourceOptions
    scaled(DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 20)))


@check
def pinned_memory():
    from cuda.core import LegacyPinnedMemoryResource
    buffer = LegacyPinnedMemoryResource().allocate(4 * 256)
    x = array(buffer, 256, np.float32)
    x[:] = 2
    launch(stream, LaunchConfig(grid=1, block=256), compiled().get_kernel("scale"), buffer,
           np.float32(5), np.int32(256))
    stream.sync()
    same(x, np.full(256, 10, np.float32))
    buffer.close()


@check
def templates():
    code = compiled(names=("fill<int>", "fill<double>"))
    from cuda.core import LegacyPinnedMemoryResource
    buffer = LegacyPinnedMemoryResource().allocate(8 * 32)
    launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel("fill<double>"), buffer,
           np.float64(2.5))
    stream.sync()
    same(array(buffer, 32, np.float64), np.full(32, 2.5))
    buffer.close()


@check
def kernel_attributes():
    kernel = compiled().get_kernel("scale")
    assert kernel.attributes.max_threads_per_block == 1024
    assert kernel.attributes.num_regs > 0
    assert kernel.num_arguments == 3, kernel.num_arguments
    assert kernel.occupancy.max_active_blocks_per_multiprocessor(256, 0) > 0


@check
def events():
    from cuda.core import EventOptions
    first = stream.record(options=EventOptions(timing_enabled=True))
    last = stream.record(options=EventOptions(timing_enabled=True))
    last.sync()
    assert last - first >= 0


@check
def ptx_from_elsewhere():
    from cuda.core import ObjectCode
    assert ObjectCode.from_ptx(compiled().code).get_kernel("scale") is not None


@check
def graph_of_launches():
    from cuda.core import LegacyPinnedMemoryResource
    buffer = LegacyPinnedMemoryResource().allocate(4 * 32)
    x = array(buffer, 32, np.float32)
    x[:] = 1
    kernel = compiled().get_kernel("scale")
    builder = device.create_graph_builder().begin_building()
    for factor in (2, 3):
        launch(builder, LaunchConfig(grid=1, block=32), kernel, buffer, np.float32(factor),
               np.int32(32))
    graph = builder.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    same(x, np.full(32, 36, np.float32))
    buffer.close()


run()
