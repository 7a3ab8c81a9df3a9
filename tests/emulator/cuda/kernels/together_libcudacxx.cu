// tests/emulator/cuda/kernels/together_libcudacxx.cu - kernels of libcu++ from sm_80 on, compiled as one
#include "copy_pipeline.cu"
#include "cuda_std.cu"
#include "group_grid.cu"
#include "mbarrier.cu"
