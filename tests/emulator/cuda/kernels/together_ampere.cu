// tests/emulator/cuda/kernels/together_ampere.cu - kernels from sm_80 on, compiled as one
#include "bfloat_math.cu"
#include "gemm_async.cu"
#include "gemm_mma.cu"
#include "reduce_redux.cu"
#include "wmma_types.cu"
