// tests/emulator/cuda/kernels/vote_match.cu - votes, matches and shuffles of parts of a warp
extern "C" __global__ void vote_match(const int* in, unsigned* out) {
  const int lane = threadIdx.x;
  const int value = in[lane];
  unsigned* mine = out + lane * 10;
  mine[0] = __ballot_sync(0xffffffffu, value > 3);
  mine[1] = __all_sync(0xffffffffu, value >= 0) * 2 + __any_sync(0xffffffffu, value == 7);
  mine[2] = __match_any_sync(0xffffffffu, value);
  int same = 0;
  mine[3] = __match_all_sync(0xffffffffu, value, &same);
  mine[4] = static_cast<unsigned>(same);
  mine[5] = __match_any_sync(0xffffffffu, static_cast<unsigned long long>(value & 1) << 40);
  mine[6] = static_cast<unsigned>(__shfl_sync(0xffffffffu, value, lane + 3, 8));
  mine[7] = static_cast<unsigned>(__shfl_up_sync(0xffffffffu, value, 2, 16));
  if (lane % 2 != 0) {
    mine[8] = __ballot_sync(0xaaaaaaaau, value > 3);
    mine[9] = static_cast<unsigned>(__shfl_sync(0xaaaaaaaau, value, (lane * 3) | 1));
  } else {
    mine[8] = __popc(__ballot_sync(0x55555555u, value % 2));
    mine[9] = static_cast<unsigned>(__shfl_xor_sync(0x55555555u, value, 6));
  }
}
