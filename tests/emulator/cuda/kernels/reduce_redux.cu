// tests/emulator/cuda/kernels/reduce_redux.cu - the warp-wide reduction instructions of sm_80
extern "C" __global__ void reduce_redux(const int* in, int* out) {
  const int value = in[threadIdx.x];
  const unsigned bits = static_cast<unsigned>(value);
  int* mine = out + threadIdx.x * 8;
  mine[0] = __reduce_add_sync(0xffffffffu, value);
  mine[1] = __reduce_min_sync(0xffffffffu, value);
  mine[2] = __reduce_max_sync(0xffffffffu, value);
  mine[3] = static_cast<int>(__reduce_min_sync(0xffffffffu, bits));
  mine[4] = static_cast<int>(__reduce_max_sync(0xffffffffu, bits));
  mine[5] = static_cast<int>(__reduce_and_sync(0xffffffffu, bits));
  mine[6] = static_cast<int>(__reduce_or_sync(0xffffffffu, bits));
  mine[7] = static_cast<int>(__reduce_xor_sync(0xffffffffu, bits));
}

// Each third of the lanes apart, in branches of their own.
extern "C" __global__ void reduce_redux_parts(const int* in, int* out) {
  const unsigned lane = threadIdx.x;
  unsigned mask = 0;
  for (unsigned i = lane % 3; i < 32; i += 3) mask |= 1u << i;
  if (lane % 3 == 0) {
    out[lane] = __reduce_add_sync(mask, in[lane]);
  } else if (lane % 3 == 1) {
    out[lane] = __reduce_max_sync(mask, in[lane]);
  } else {
    out[lane] = __reduce_min_sync(mask, in[lane]);
  }
}
