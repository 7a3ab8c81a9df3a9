// tests/programs/streams.cu - copies and kernels of several streams, ordered by events
#include "check.cuh"

__global__ void scale(float* data, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

int main() {
  const int parts = 4, each = 512;
  float *host, *device;
  CUDA(cudaMallocHost(&host, parts * each * sizeof(float)));
  CUDA(cudaMalloc(&device, parts * each * sizeof(float)));
  for (int i = 0; i < parts * each; ++i) host[i] = i;
  cudaStream_t streams[parts];
  cudaEvent_t done[parts];
  for (int s = 0; s < parts; ++s) {
    CUDA(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
    float* const d = device + s * each;
    float* const h = host + s * each;
    CUDA(cudaMemcpyAsync(d, h, each * sizeof(float), cudaMemcpyHostToDevice, streams[s]));
    scale<<<4, 128, 0, streams[s]>>>(d, each, 1.0f + s);
    CUDA(cudaEventRecord(done[s], streams[s]));
  }
  for (int s = 1; s < parts; ++s) CUDA(cudaStreamWaitEvent(streams[0], done[s], 0));
  scale<<<16, 128, 0, streams[0]>>>(device, parts * each, 2);
  CUDA(cudaMemcpyAsync(host, device, parts * each * sizeof(float), cudaMemcpyDeviceToHost,
                       streams[0]));
  CUDA(cudaStreamSynchronize(streams[0]));
  for (int i = 0; i < parts * each; ++i) CHECK(host[i] == i * (1.0f + i / each) * 2);
  int lowest, greatest, priority;
  CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &greatest));
  cudaStream_t urgent;
  CUDA(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest));
  CUDA(cudaStreamGetPriority(urgent, &priority));
  CHECK(priority == greatest);
  unsigned flags;
  CUDA(cudaStreamGetFlags(urgent, &flags));
  CHECK(flags == cudaStreamNonBlocking);
  CUDA(cudaStreamQuery(urgent));
  CUDA(cudaStreamDestroy(urgent));
  for (int s = 0; s < parts; ++s) {
    CUDA(cudaStreamDestroy(streams[s]));
    CUDA(cudaEventDestroy(done[s]));
  }
  std::puts("ok");
}
