// tests/emulator/cuda/kernels/recursion.cu - device functions that call themselves and each other
__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ bool odd(unsigned n);
__device__ __noinline__ bool even(unsigned n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(unsigned n) { return n != 0 && even(n - 1); }

__device__ __noinline__ void quicksort(int* data, int low, int high) {
  if (low >= high) return;
  const int pivot = data[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (data[i] < pivot) ++i;
    while (data[j] > pivot) --j;
    if (i <= j) {
      const int kept = data[i];
      data[i++] = data[j];
      data[j--] = kept;
    }
  }
  quicksort(data, low, j);
  quicksort(data, i, high);
}

extern "C" __global__ void recursion(int* out) {
  const int t = threadIdx.x;
  out[t] = fibonacci(t % 13);
  out[32 + t] = static_cast<int>(ackermann(2, t % 5));
  out[64 + t] = even(t) ? 1 : 2;
}

// Each lane sorts a row of its own: all of them diverge.
extern "C" __global__ void quicksorts(int* data, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  quicksort(data + row * n, 0, n - 1);
}
