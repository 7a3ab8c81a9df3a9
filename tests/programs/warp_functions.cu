// tests/programs/warp_functions.cu - votes, shuffles, matches and reductions of a warp
#include "check.cuh"

__global__ void functions(unsigned* out) {
  const unsigned lane = threadIdx.x, all = 0xffffffff;
  unsigned* mine = out + lane * 8;
  mine[0] = __ballot_sync(all, lane % 3 == 0);
  mine[1] = __any_sync(all, lane == 31) * 2 + __all_sync(all, lane < 31);
  mine[2] = __shfl_xor_sync(all, lane, 5);
  mine[3] = __shfl_up_sync(all, lane, 2, 16);
  mine[4] = __match_any_sync(all, lane / 4);
  mine[5] = __popc(__activemask());
  mine[6] = __reduce_add_sync(all, lane);
  mine[7] = __reduce_max_sync(all, lane ^ 7);
}

int main() {
  unsigned* out;
  CUDA(cudaMallocManaged(&out, 32 * 8 * sizeof(unsigned)));
  functions<<<1, 32>>>(out);
  CUDA(cudaDeviceSynchronize());
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned* mine = out + lane * 8;
    CHECK(mine[0] == 0x49249249);
    CHECK(mine[1] == 2);
    CHECK(mine[2] == (lane ^ 5));
    CHECK(mine[3] == (lane % 16 < 2 ? lane : lane - 2));
    CHECK(mine[4] == 0xfu << (lane / 4 * 4));
    CHECK(mine[5] == 32);
    CHECK(mine[6] == 496 && mine[7] == 31);
  }
  std::puts("ok");
}
