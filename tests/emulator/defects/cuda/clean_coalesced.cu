// tests/emulator/defects/cuda/clean_coalesced.cu - the lanes that are there elect one to count
// run: grid=4 block=64 args="zero:4096"
// expect: clean sync-mask
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(unsigned* out) {
  if (threadIdx.x % 3 == 0) {
    const cg::coalesced_group group = cg::coalesced_threads();
    if (group.thread_rank() == 0) atomicAdd(out, group.size());
  }
}
