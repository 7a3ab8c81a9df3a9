// tests/programs/callbacks.cu - host functions between kernels
#include "check.cuh"

__global__ void add_one(int* value) { ++*value; }

struct Seen {
  const int* value;
  int first = 0, second = 0;
  cudaError_t status = cudaErrorUnknown;
};

int main() {
  int* value;
  CUDA(cudaMallocHost(&value, sizeof(int)));
  *value = 10;
  Seen seen{value};
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  add_one<<<1, 1, 0, stream>>>(value);
  CUDA(cudaStreamAddCallback(
      stream,
      [](cudaStream_t, cudaError_t status, void* user) {
        auto* s = static_cast<Seen*>(user);
        s->status = status;
        s->first = *s->value;
      },
      &seen, 0));
  add_one<<<1, 1, 0, stream>>>(value);
  CUDA(cudaLaunchHostFunc(
      stream, [](void* user) { static_cast<Seen*>(user)->second = *static_cast<Seen*>(user)->value; },
      &seen));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(seen.first == 11 && seen.second == 12 && seen.status == cudaSuccess);
  std::puts("ok");
}
