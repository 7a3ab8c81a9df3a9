// tests/emulator/cuda/kernels/reduce_groups.cu - sums and maxima by cooperative groups
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void reduce_groups(const int* in, int* sum, int* largest, int* of_tile) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  const int value = in[blockIdx.x * block.size() + block.thread_rank()];

  const int total = cg::reduce(warp, value, cg::plus<int>());
  if (warp.thread_rank() == 0) atomicAdd(sum, total);
  const int most = cg::reduce(warp, value, cg::greater<int>());
  if (warp.thread_rank() == 0) atomicMax(largest, most);
  const int both = cg::reduce(tile, value, cg::bit_xor<int>());
  if (tile.thread_rank() == 0)
    of_tile[blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()] = both;
}

// A type that no instruction reduces, and an operator of our own.
extern "C" __global__ void reduce_custom(const float2* in, float2* out) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const float2 value = in[threadIdx.x];
  const float2 total = cg::reduce(tile, value, [](float2 a, float2 b) {
    return make_float2(a.x + b.x, a.y > b.y ? a.y : b.y);
  });
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = total;
}
