// tests/emulator/cuda/kernels/group_tiles.cu - cooperative groups: tiles, coalesced, labelled
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void group_tiles(const int* in, int* out) {
  __shared__ int line[128];
  const cg::thread_block block = cg::this_thread_block();
  const int rank = block.thread_rank();
  line[rank] = in[rank];
  block.sync();
  const auto tile = cg::tiled_partition<4>(block);
  const int reversed = line[tile.meta_group_rank() * 4 + 3 - tile.thread_rank()];
  const int next = tile.shfl(reversed, (tile.thread_rank() + 1) % tile.size());
  const int any = tile.any(reversed > 50), all = tile.all(reversed > 50);
  const unsigned votes = tile.ballot(reversed % 2);
  int* mine = out + rank * 6;
  mine[0] = reversed;
  mine[1] = next;
  mine[2] = any * 2 + all;
  mine[3] = static_cast<int>(votes);
  mine[4] = 0;
  if (in[rank] % 3 == 0) {
    const cg::coalesced_group active = cg::coalesced_threads();
    mine[4] = active.size() * 100 + active.thread_rank();
  }
  const auto warp = cg::tiled_partition<32>(block);
  const auto same = cg::labeled_partition(warp, in[rank] & 3);
  mine[5] = same.size() * 100 + same.thread_rank();
}

// Only a part of the block works with tiles of its own size; groups synchronise apart.
extern "C" __global__ void group_relay(int* out) {
  __shared__ int token[4];
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int which = tile.meta_group_rank();
  if (tile.thread_rank() == 0) token[which] = which + 1;
  tile.sync();
  for (int turn = 0; turn < 16; ++turn) {
    if (tile.thread_rank() == turn) token[which] = token[which] * 3 + turn;
    tile.sync();
  }
  if (tile.thread_rank() == 5) out[which] = token[which];
}
