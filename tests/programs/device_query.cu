// tests/programs/device_query.cu - what the runtime tells about devices
#include <cstring>

#include "check.cuh"

int main() {
  int count = 0, driver = 0, runtime = 0, device = -1;
  CUDA(cudaGetDeviceCount(&count));
  CHECK(count >= 1);
  CUDA(cudaDriverGetVersion(&driver));
  CUDA(cudaRuntimeGetVersion(&runtime));
  CHECK(runtime / 1000 == CUDART_VERSION / 1000 && driver >= 12000);
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p;
    CUDA(cudaGetDeviceProperties(&p, i));
    std::printf("%s: sm_%d%d, %d multiprocessors, %zu MiB\n", p.name, p.major, p.minor,
                p.multiProcessorCount, p.totalGlobalMem >> 20);
    CHECK(std::strlen(p.name) > 0 && p.warpSize == 32 && p.maxThreadsPerBlock == 1024);
    CHECK(p.maxThreadsDim[2] == 64 && p.maxGridSize[0] == 0x7fffffff);
    CHECK(p.sharedMemPerBlockOptin >= p.sharedMemPerBlock && p.regsPerBlock == 65536);
    CHECK(p.unifiedAddressing == 1 && p.cooperativeLaunch == 1 && p.memoryPoolsSupported == 1);
    int value = 0;
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, i));
    CHECK(value == p.multiProcessorCount);
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, i));
    CHECK(value == p.major);
    char bus[20];
    CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, i));
    CUDA(cudaDeviceGetByPCIBusId(&value, bus));
    CHECK(value == i);
  }
  CUDA(cudaSetDevice(0));
  CUDA(cudaGetDevice(&device));
  CHECK(device == 0);
  FAILS(cudaSetDevice(count), cudaErrorInvalidDevice);
  std::size_t free = 0, total = 0, stack = 0;
  CUDA(cudaMemGetInfo(&free, &total));
  CHECK(free <= total && free > 0);
  CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  CUDA(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
  CHECK(stack == 4096);
  int peer = 1;
  CUDA(cudaDeviceCanAccessPeer(&peer, 0, 0));
  CHECK(peer == 0);
  FAILS(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  std::puts("ok");
}
