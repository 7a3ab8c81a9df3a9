// tests/programs/functors.cu - templates, functors, function pointers and structures as arguments
#include "check.cuh"

struct Scale {
  float factor;
  __host__ __device__ float operator()(float x) const { return x * factor; }
};
struct Shift {
  double amount;
  char padding[3];
  float scale;
  __host__ __device__ float operator()(float x) const { return (x + amount) * scale; }
};

template <class Function>
__global__ void map(float* data, int count, Function function) {
  const int i = threadIdx.x;
  if (i < count) data[i] = function(data[i]);
}

using Operation = int (*)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__device__ Operation operations[] = {twice, square};

__global__ void call(int* out, int which) { out[threadIdx.x] = operations[which](threadIdx.x); }

int main() {
  float* data;
  CUDA(cudaMallocManaged(&data, 32 * sizeof(float)));
  for (int i = 0; i < 32; ++i) data[i] = i;
  map<<<1, 32>>>(data, 30, Scale{3});
  map<<<1, 32>>>(data, 32, Shift{1.0, {}, 0.5f});
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) CHECK(data[i] == ((i < 30 ? 3.0f * i : i) + 1) * 0.5f);
  int* out;
  CUDA(cudaMallocManaged(&out, 32 * sizeof(int)));
  for (int which : {0, 1}) {
    call<<<1, 32>>>(out, which);
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 32; ++i) CHECK(out[i] == (which == 0 ? 2 * i : i * i));
  }
  std::puts("ok");
}
