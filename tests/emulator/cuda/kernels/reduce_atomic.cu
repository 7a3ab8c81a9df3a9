// tests/emulator/cuda/kernels/reduce_atomic.cu - every atomic as a reduction
struct Totals {
  unsigned long long sum64;
  unsigned sum;
  int least, most;
  unsigned all, any, odd;
  float fsum;
  double dsum;
  unsigned wraps;
};

extern "C" __global__ void reduce_atomic(const int* in, int n, Totals* totals) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int value = in[i];
  atomicAdd(&totals->sum64, static_cast<unsigned long long>(value) * 1000003ull);
  atomicAdd(&totals->sum, static_cast<unsigned>(value));
  atomicMin(&totals->least, value);
  atomicMax(&totals->most, value);
  atomicAnd(&totals->all, static_cast<unsigned>(value) | 0x10u);
  atomicOr(&totals->any, static_cast<unsigned>(value));
  atomicXor(&totals->odd, static_cast<unsigned>(value));
  atomicAdd(&totals->fsum, static_cast<float>(value % 16));
  atomicAdd(&totals->dsum, static_cast<double>(value));
  atomicInc(&totals->wraps, 96);
}

// In shared memory first, then one atomic for each block.
extern "C" __global__ void reduce_atomic_shared(const int* in, int n, int* sum) {
  __shared__ int part;
  if (threadIdx.x == 0) part = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&part, in[i]);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(sum, part);
}

// A maximum of floats by compare-and-swap, and the largest of float bits seen as integers.
extern "C" __global__ void reduce_atomic_cas(const float* in, int n, float* most) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int* bits = reinterpret_cast<int*>(most);
  int seen = *reinterpret_cast<volatile int*>(bits);
  while (__int_as_float(seen) < in[i]) {
    const int before = atomicCAS(bits, seen, __float_as_int(in[i]));
    if (before == seen) break;
    seen = before;
  }
}
