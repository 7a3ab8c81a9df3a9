// tests/emulator/defects/cuda/clean_tiles_of_groups.cu - tiles of 16 lanes meet and reduce
// run: grid=1 block=64 args="zero:4096"
// expect: clean sync-mask
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(unsigned* out) {
  __shared__ unsigned tile[64];
  const cg::thread_block_tile<16> group = cg::tiled_partition<16>(cg::this_thread_block());
  tile[threadIdx.x] = threadIdx.x;
  group.sync();
  unsigned value = tile[threadIdx.x ^ 15];
  for (int step = 8; step > 0; step /= 2) value += group.shfl_xor(value, step);
  out[threadIdx.x] = value + cg::reduce(group, threadIdx.x, cg::plus<unsigned>());
}
