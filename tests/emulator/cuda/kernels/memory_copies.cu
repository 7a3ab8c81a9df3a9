// tests/emulator/cuda/kernels/memory_copies.cu - copies of every width, generic pointers
struct Packed {
  char bytes[13];
};
struct alignas(16) Wide {
  double x;
  int y[3];
  char z;
};

extern "C" __global__ void structures(const Packed* in, Packed* out, const Wide* from, Wide* to) {
  const int i = threadIdx.x;
  Packed p = in[i];
  p.bytes[i % 13] ^= 0x55;
  memcpy(&out[i], &p, sizeof p);
  Wide w = from[i];
  w.y[i % 3] += i;
  w.x *= 2;
  to[i].x = w.x;
  to[i].y[0] = w.y[0];
  to[i].y[1] = w.y[1];
  to[i].y[2] = w.y[2];
  to[i].z = w.z;
}

extern "C" __global__ void widths(const unsigned char* in, unsigned char* out, int bytes) {
  const int t = threadIdx.x, n = blockDim.x;
  for (int i = t; i < bytes; i += n) out[i] = in[i];
  for (int i = t; i < bytes / 2; i += n)
    reinterpret_cast<short*>(out + bytes)[i] = reinterpret_cast<const short*>(in)[i];
  for (int i = t; i < bytes / 8; i += n)
    reinterpret_cast<double*>(out + 2 * bytes)[i] = reinterpret_cast<const double*>(in)[i];
  for (int i = t; i < bytes / 16; i += n)
    reinterpret_cast<uint4*>(out + 3 * bytes)[i] = __ldcs(reinterpret_cast<const uint4*>(in) + i);
  for (int i = t; i < bytes / 4; i += n)
    __stcg(reinterpret_cast<char4*>(out + 4 * bytes) + i,
           __ldcg(reinterpret_cast<const char4*>(in) + i));
}

// Generic pointers into shared, local and global memory through one function.
__device__ __noinline__ int sum_of(const int* p, int n, int stride) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum = sum * 31 + p[i * stride];
  return sum;
}

extern "C" __global__ void generic_pointers(const int* in, int* out) {
  __shared__ int shared[64];
  int local[8];
  const int t = threadIdx.x;
  shared[t] = in[t];
  for (int i = 0; i < 8; ++i) local[i] = in[(t * 5 + i) % 64];
  __syncthreads();
  const int* const where = t % 3 == 0 ? in : t % 3 == 1 ? shared : local;
  out[t] = sum_of(where, 8, t % 3 == 2 ? 1 : 7) + __isShared(where) * 2 + __isGlobal(where) * 3 +
           __isLocal(where) * 5;
}
