// tests/programs/host_threads.cu - several host threads, each with its stream
#include <thread>
#include <vector>

#include "check.cuh"

__global__ void add(int* data, int amount) { atomicAdd(data, amount); }

int main() {
  int* data;
  CUDA(cudaMalloc(&data, sizeof(int)));
  CUDA(cudaMemset(data, 0, sizeof(int)));
  CUDA(cudaDeviceSynchronize());
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([=] {
      cudaStream_t stream;
      CUDA(cudaStreamCreate(&stream));
      for (int i = 0; i < 10; ++i) add<<<1, 32, 0, stream>>>(data, t);
      CUDA(cudaStreamSynchronize(stream));
      add<<<1, 1, 0, cudaStreamPerThread>>>(data, 1000);
      CUDA(cudaStreamSynchronize(cudaStreamPerThread));
      CUDA(cudaGetLastError());
      CUDA(cudaStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  int total = 0;
  CUDA(cudaMemcpy(&total, data, sizeof total, cudaMemcpyDeviceToHost));
  CHECK(total == 15 * 320 + 6000);
  std::puts("ok");
}
