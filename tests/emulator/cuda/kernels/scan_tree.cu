// tests/emulator/cuda/kernels/scan_tree.cu - exclusive scan up and down a tree
__device__ int padded(int i) { return i + i / 32; }

extern "C" __global__ void scan_tree(const int* in, int* out) {
  __shared__ int tree[512 + 16];
  const int n = 2 * blockDim.x, t = threadIdx.x;
  const int* mine = in + blockIdx.x * n;
  tree[padded(2 * t)] = mine[2 * t];
  tree[padded(2 * t + 1)] = mine[2 * t + 1];
  int step = 1;
  for (int active = n / 2; active > 0; active /= 2) {
    __syncthreads();
    if (t < active) tree[padded(step * (2 * t + 2) - 1)] += tree[padded(step * (2 * t + 1) - 1)];
    step *= 2;
  }
  if (t == 0) tree[padded(n - 1)] = 0;
  for (int active = 1; active < n; active *= 2) {
    step /= 2;
    __syncthreads();
    if (t < active) {
      const int left = padded(step * (2 * t + 1) - 1), right = padded(step * (2 * t + 2) - 1);
      const int kept = tree[left];
      tree[left] = tree[right];
      tree[right] += kept;
    }
  }
  __syncthreads();
  out[blockIdx.x * n + 2 * t] = tree[padded(2 * t)];
  out[blockIdx.x * n + 2 * t + 1] = tree[padded(2 * t + 1)];
}
