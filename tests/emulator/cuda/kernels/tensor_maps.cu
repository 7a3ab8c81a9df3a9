// tests/emulator/cuda/kernels/tensor_maps.cu - one tensor map, changed for each of several tensors
#include <cstdint>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

// A tensor map, as cuTensorMapEncodeTiled makes it.
struct alignas(128) Map {
  unsigned char bytes[128];
};

constexpr int kColumns = 32, kRows = 16;

// sums[starts[g] + row] of tensors of 32 columns. A block takes every gridDim.x-th tensor, and has
// a map of its own in global memory.
extern "C" __global__ void __launch_bounds__(64)
    row_sums(const __grid_constant__ Map first, Map* maps, const float* const* tensors,
             const int* starts, int count, float* sums) {
  __shared__ Map own;
  __shared__ alignas(128) float tile[kRows * kColumns];
  __shared__ uint64_t bar;
  Map* const map = maps + blockIdx.x;
  const int thread = threadIdx.x;
  if (thread < 32) {
    reinterpret_cast<uint32_t*>(own.bytes)[thread] =
        reinterpret_cast<const uint32_t*>(first.bytes)[thread];
    if (thread == 0) ptx::mbarrier_init(&bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  uint32_t parity = 0;
  for (int g = blockIdx.x; g < count; g += gridDim.x) {
    const int rows = starts[g + 1] - starts[g];
    if (thread < 32) {
      if (thread == 0) {
        ptx::tensormap_replace_global_address(ptx::space_shared, &own,
                                              reinterpret_cast<uint64_t>(tensors[g]));
        ptx::tensormap_replace_global_dim(ptx::space_shared, &own, ptx::n32_t<1>{},
                                          static_cast<uint32_t>(rows));
      }
      __syncwarp();
      ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, map, &own,
                                   ptx::n32_t<128>{});
    }
    for (int row = 0; row < rows; row += kRows) {
      if (thread == 0) {
        if (row == 0) {
          ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, map,
                                             ptx::n32_t<128>{});
        }
        const int32_t at[2] = {0, row};
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar,
                                       sizeof tile);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, map, at, &bar);
      }
      while (!ptx::mbarrier_try_wait_parity(&bar, parity)) {
      }
      parity ^= 1;
      if (thread < kRows && row + thread < rows) {
        float sum = 0;
        for (int i = 0; i < kColumns; ++i) sum += tile[thread * kColumns + i];
        sums[starts[g] + row + thread] = sum;
      }
      __syncthreads();
    }
  }
}
