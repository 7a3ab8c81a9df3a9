// tests/programs/symbols.cu - constant and device variables by their symbols
#include "check.cuh"

__constant__ float coefficients[8] = {1, 2, 3};
__device__ int counter = 40;
static __device__ double table[16];

__global__ void evaluate(float x, float* y) {
  float sum = 0;
  for (int i = 7; i >= 0; --i) sum = sum * x + coefficients[i];
  *y = sum;
  atomicAdd(&counter, 2);
  table[threadIdx.x] = sum + threadIdx.x;
}

int main() {
  float* y;
  float value = 0;
  CUDA(cudaMalloc(&y, sizeof(float)));
  evaluate<<<1, 1>>>(2, y);
  CUDA(cudaMemcpy(&value, y, sizeof value, cudaMemcpyDeviceToHost));
  CHECK(value == 17);
  const float more[] = {5, 6};
  CUDA(cudaMemcpyToSymbol(coefficients, more, sizeof more, 3 * sizeof(float)));
  evaluate<<<1, 1>>>(1, y);
  CUDA(cudaMemcpy(&value, y, sizeof value, cudaMemcpyDeviceToHost));
  CHECK(value == 17);
  int count = 0;
  CUDA(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  CHECK(count == 44);
  void* address = nullptr;
  std::size_t bytes = 0;
  CUDA(cudaGetSymbolAddress(&address, table));
  CUDA(cudaGetSymbolSize(&bytes, table));
  CHECK(bytes == 16 * sizeof(double));
  double first = 0;
  CUDA(cudaMemcpy(&first, address, sizeof first, cudaMemcpyDeviceToHost));
  CHECK(first == 17);
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  count = 100;
  CUDA(cudaMemcpyToSymbolAsync(counter, &count, sizeof count, 0, cudaMemcpyHostToDevice, stream));
  CUDA(cudaStreamSynchronize(stream));
  count = 0;
  CUDA(cudaMemcpyFromSymbolAsync(&count, counter, sizeof count, 0, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(count == 100);
  FAILS(cudaMemcpyToSymbol(coefficients, more, sizeof more, 31), cudaErrorInvalidValue);
  FAILS(cudaGetSymbolAddress(&address, &count), cudaErrorInvalidSymbol);
  CHECK(cudaGetLastError() == cudaErrorInvalidSymbol);
  std::puts("ok");
}
