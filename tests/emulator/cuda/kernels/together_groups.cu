// tests/emulator/cuda/kernels/together_groups.cu - kernels of cooperative groups, compiled as one
#include "group_tiles.cu"
#include "reduce_groups.cu"
#include "warp_aggregated.cu"
