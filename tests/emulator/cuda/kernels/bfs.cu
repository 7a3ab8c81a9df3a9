// tests/emulator/cuda/kernels/bfs.cu - breadth-first search, a frontier for each level
extern "C" __global__ void bfs_level(const int* starts, const int* edges, int* depth,
                                     const int* frontier, int count, int* next, int* next_count,
                                     int level) {
  __shared__ int found[256];
  __shared__ int found_count, base;
  if (threadIdx.x == 0) found_count = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    const int node = frontier[i];
    for (int e = starts[node]; e < starts[node + 1]; ++e) {
      const int other = edges[e];
      if (atomicCAS(&depth[other], -1, level) != -1) continue;
      const int at = atomicAdd(&found_count, 1);
      if (at < 256)
        found[at] = other;
      else
        next[atomicAdd(next_count, 1)] = other;
    }
  }
  __syncthreads();
  const int kept = min(found_count, 256);
  if (threadIdx.x == 0) base = atomicAdd(next_count, kept);
  __syncthreads();
  for (int k = threadIdx.x; k < kept; k += blockDim.x) next[base + k] = found[k];
}
