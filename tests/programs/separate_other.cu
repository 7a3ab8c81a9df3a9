// tests/programs/separate_other.cu - the other file of separate_main.cu
#include "check.cuh"

__device__ int shared_counter = 100;
__device__ int weigh(int x) { return 3 * x + 1; }

int counter_of_other_file() {
  int value = 0;
  CUDA(cudaMemcpyFromSymbol(&value, shared_counter, sizeof value));
  return value;
}
