// tests/emulator/cuda/kernels/kmeans.cu - one step of k-means in two dimensions, integer points
extern "C" __global__ void kmeans_assign(const int2* points, int n, const int2* centres, int k,
                                         int* label, int* sums) {
  extern __shared__ int part[];  // k x (x, y, count)
  for (int i = threadIdx.x; i < 3 * k; i += blockDim.x) part[i] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int2 p = points[i];
    int best = 0, least = 0x7fffffff;
    for (int c = 0; c < k; ++c) {
      const int dx = p.x - centres[c].x, dy = p.y - centres[c].y, d = dx * dx + dy * dy;
      if (d < least) {
        least = d;
        best = c;
      }
    }
    label[i] = best;
    atomicAdd(&part[3 * best], p.x);
    atomicAdd(&part[3 * best + 1], p.y);
    atomicAdd(&part[3 * best + 2], 1);
  }
  __syncthreads();
  for (int j = threadIdx.x; j < 3 * k; j += blockDim.x) atomicAdd(&sums[j], part[j]);
}

extern "C" __global__ void kmeans_move(const int* sums, int2* centres) {
  const int c = threadIdx.x;
  if (sums[3 * c + 2] > 0)
    centres[c] = make_int2(sums[3 * c] / sums[3 * c + 2], sums[3 * c + 1] / sums[3 * c + 2]);
}
