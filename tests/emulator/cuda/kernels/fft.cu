// tests/emulator/cuda/kernels/fft.cu - 256-point FFT in shared memory; number-theoretic one, exact
extern "C" __global__ void fft(float2* data, float direction) {
  __shared__ float2 x[256];
  const int t = threadIdx.x;
  float2* mine = data + blockIdx.x * 256;
  x[__brev(t) >> 24] = mine[t];
  x[__brev(t + 128) >> 24] = mine[t + 128];
  __syncthreads();
  for (int half = 1; half < 256; half *= 2) {
    const int k = t % half, low = t / half * 2 * half + k, high = low + half;
    float s, c;
    sincospif(direction * k / half, &s, &c);
    const float2 a = x[low], b = x[high];
    const float2 turned = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
    x[low] = make_float2(a.x + turned.x, a.y + turned.y);
    x[high] = make_float2(a.x - turned.x, a.y - turned.y);
    __syncthreads();
  }
  mine[t] = x[t];
  mine[t + 128] = x[t + 128];
}

#define PRIME 998244353u

__device__ unsigned times(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b % PRIME);
}

__device__ unsigned power(unsigned base, unsigned exponent) {
  unsigned result = 1;
  for (; exponent != 0; exponent /= 2, base = times(base, base))
    if (exponent & 1) result = times(result, base);
  return result;
}

extern "C" __global__ void number_fft(unsigned* data) {
  __shared__ unsigned x[128];
  const int t = threadIdx.x;
  x[__brev(t) >> 25] = data[t];
  x[__brev(t + 64) >> 25] = data[t + 64];
  __syncthreads();
  for (int half = 1; half < 128; half *= 2) {
    const int k = t % half, low = t / half * 2 * half + k, high = low + half;
    const unsigned root = power(3, (PRIME - 1) / (2 * half) * k);
    const unsigned a = x[low], b = times(x[high], root);
    x[low] = a + b >= PRIME ? a + b - PRIME : a + b;
    x[high] = a >= b ? a - b : a + PRIME - b;
    __syncthreads();
  }
  data[t] = x[t];
  data[t + 64] = x[t + 64];
}
