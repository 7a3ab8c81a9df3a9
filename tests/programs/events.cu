// tests/programs/events.cu - times between events
#include <atomic>

#include "check.cuh"

__global__ void spin(int* out, int turns) {
  int x = 1;
  for (int i = 0; i < turns; ++i) x = x * 5 + 1;
  *out = x;
}

void wait_for(void* flag) {
  while (!static_cast<std::atomic<bool>*>(flag)->load()) {
  }
}

int main() {
  cudaEvent_t begin, end, silent;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  CUDA(cudaEventCreateWithFlags(&silent, cudaEventDisableTiming));
  int* out;
  CUDA(cudaMalloc(&out, sizeof(int)));
  CUDA(cudaEventRecord(begin));
  spin<<<1, 1>>>(out, 1000);
  CUDA(cudaEventRecord(end));
  CUDA(cudaEventSynchronize(end));
  CUDA(cudaEventQuery(end));
  float milliseconds = -1;
  CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
  CHECK(milliseconds >= 0);
  CUDA(cudaEventRecord(silent));
  CUDA(cudaEventSynchronize(silent));
  FAILS(cudaEventElapsedTime(&milliseconds, begin, silent), cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  // Work that is not done is no error that stays.
  std::atomic<bool> go{false};
  CUDA(cudaLaunchHostFunc(nullptr, wait_for, &go));
  CUDA(cudaEventRecord(silent));
  const cudaError_t of_event = cudaEventQuery(silent);
  const cudaError_t of_stream = cudaStreamQuery(nullptr);
  const cudaError_t last = cudaPeekAtLastError();
  go = true;
  CHECK(of_event == cudaErrorNotReady && of_stream == cudaErrorNotReady && last == cudaSuccess);
  CUDA(cudaEventSynchronize(silent));
  CUDA(cudaEventDestroy(begin));
  CUDA(cudaEventDestroy(end));
  CUDA(cudaEventDestroy(silent));
  std::puts("ok");
}
