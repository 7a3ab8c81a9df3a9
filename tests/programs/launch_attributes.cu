// tests/programs/launch_attributes.cu - cudaLaunchKernelEx with attributes and clusters
#include <cooperative_groups.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void plain(int* out, int value) { out[blockIdx.x] = value + blockIdx.x; }

// nvcc's default target has no clusters; the rank is 0 there.
__global__ void ranks(int* out) {
#if __CUDA_ARCH__ >= 900
  out[blockIdx.x] = cg::this_cluster().block_rank();
#else
  out[blockIdx.x] = 0;
#endif
}

int main() {
  int* out;
  CUDA(cudaMallocManaged(&out, 16 * sizeof(int)));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributePriority;
  attribute.val.priority = -1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(8);
  config.blockDim = dim3(1);
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA(cudaLaunchKernelEx(&config, plain, out, 5));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 8; ++i) CHECK(out[i] == 5 + i);
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  int clusters = 0, major = 0;
  CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  if (major >= 9) {
    CUDA(cudaOccupancyMaxActiveClusters(&clusters, ranks, &config));
    CHECK(clusters > 0);
    CUDA(cudaLaunchKernelEx(&config, ranks, out));
    CUDA(cudaDeviceSynchronize());
    cudaFuncAttributes attributes;
    CUDA(cudaFuncGetAttributes(&attributes, ranks));
    for (int i = 0; i < 8; ++i) CHECK(out[i] == (attributes.ptxVersion >= 90 ? i % 2 : 0));
  } else {
    FAILS(cudaLaunchKernelEx(&config, ranks, out), cudaErrorNotSupported);
  }
  config.gridDim = dim3(0);
  config.numAttrs = 0;
  FAILS(cudaLaunchKernelEx(&config, plain, out, 5), cudaErrorInvalidConfiguration);
  std::puts("ok");
}
