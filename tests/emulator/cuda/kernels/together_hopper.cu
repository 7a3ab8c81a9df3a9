// tests/emulator/cuda/kernels/together_hopper.cu - kernels from sm_90 on, compiled as one
#include "bulk_copies.cu"
#include "cluster_groups.cu"
