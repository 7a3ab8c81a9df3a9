// tests/emulator/cuda/kernels/cluster_groups.cu - clusters by cooperative groups: sums, a histogram
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Each block sums its part; then every block reads the sums of all.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
    cluster_scan(const int* in, int* out, int per_block) {
  __shared__ int sum;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  const int* mine = in + blockIdx.x * per_block;
  int part = 0;
  for (int i = threadIdx.x; i < per_block; i += blockDim.x) part += mine[i];
  atomicAdd(&sum, part);
  cluster.sync();
  int before = 0;
  for (unsigned rank = 0; rank < cluster.block_rank(); ++rank) {
    before += *cluster.map_shared_rank(&sum, rank);
  }
  if (threadIdx.x == 0) out[blockIdx.x] = before;
  // Nobody leaves while its sum is read.
  cluster.sync();
}

// The bins of a histogram lie in parts in the memory of the blocks of a cluster.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    cluster_histogram(const unsigned* in, int count, int* bins, int bins_per_block) {
  extern __shared__ int part[];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) part[i] = 0;
  cluster.sync();
  const int threads = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
    const int bin = static_cast<int>(in[i]) % (2 * bins_per_block);
    int* there = cluster.map_shared_rank(part, bin / bins_per_block);
    atomicAdd(there + bin % bins_per_block, 1);
  }
  cluster.sync();
  int* out = bins + cluster.block_rank() * bins_per_block;
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) atomicAdd(out + i, part[i]);
}

// What a block is in its cluster and grid.
extern "C" __global__ void __cluster_dims__(2, 2, 1) cluster_places(int* out) {
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  const dim3 place = cluster.block_index();
  out[4 * block] = static_cast<int>(cluster.block_rank());
  out[4 * block + 1] = static_cast<int>(place.x + 10 * place.y);
  out[4 * block + 2] = static_cast<int>(cluster.num_blocks());
  out[4 * block + 3] = static_cast<int>(cluster.num_threads());
}
