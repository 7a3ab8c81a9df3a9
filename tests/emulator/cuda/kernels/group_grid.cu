// tests/emulator/cuda/kernels/group_grid.cu - a grid that meets, groups of every kind
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void grid_sync(unsigned* a, unsigned* b, int rounds) {
  auto grid = cg::this_grid();
  const unsigned n = grid.size(), i = grid.thread_rank();
  for (int r = 0; r < rounds; ++r) {
    b[i] = a[(i + n - 1) % n] + a[i] + a[(i + 1) % n];
    grid.sync();
    unsigned* t = a;
    a = b;
    b = t;
  }
}
extern "C" __global__ void groups(const int* in, int* sums, int* scans, int* labels) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(warp);
  const int i = blockIdx.x * blockDim.x + block.thread_rank();
  sums[i] = cg::reduce(tile, in[i], cg::plus<int>());
  scans[i] = cg::inclusive_scan(warp, in[i]) + cg::exclusive_scan(tile, in[i], cg::bit_xor<int>());
  auto part = cg::labeled_partition(warp, in[i] & 3);
  labels[i] = part.size() * 100 + part.thread_rank();
  auto bin = cg::binary_partition(warp, (in[i] & 4) != 0);
  labels[i] += 10000 * cg::reduce(bin, 1, cg::plus<int>());
  if (in[i] & 8) {
    auto c = cg::coalesced_threads();
    labels[i] += 1000000 * cg::reduce(c, 1, cg::plus<int>());
  }
  __shared__ cg::block_tile_memory<128> mem;
  auto b2 = cg::this_thread_block(mem);
  auto big = cg::tiled_partition<64>(b2);
  __shared__ int kept[128];
  kept[block.thread_rank()] = in[i];
  big.sync();
  sums[i] += 1000 * kept[block.thread_rank() ^ 63] + big.size();
}
