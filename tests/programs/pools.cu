// tests/programs/pools.cu - stream-ordered allocation and memory pools
#include "check.cuh"

__global__ void fill(int* data, int value) { data[threadIdx.x] = value; }

int main() {
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  int *data, host[64];
  CUDA(cudaMallocAsync(&data, sizeof host, stream));
  fill<<<1, 64, 0, stream>>>(data, 9);
  CUDA(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaFreeAsync(data, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int value : host) CHECK(value == 9);
  cudaMemPool_t pool, own;
  CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long threshold = ~0ull, used = 1;
  CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(used == 0);
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  CUDA(cudaMemPoolCreate(&own, &properties));
  CUDA(cudaMallocFromPoolAsync(&data, 1 << 16, own, stream));
  fill<<<1, 64, 0, stream>>>(data, 1);
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(used >= 1 << 16);
  CUDA(cudaFreeAsync(data, stream));
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemPoolTrimTo(own, 0));
  CUDA(cudaMemPoolDestroy(own));
#if CUDART_VERSION >= 13000
  // Of the host, for both sides.
  properties.location.type = cudaMemLocationTypeHost;
  CUDA(cudaMemPoolCreate(&own, &properties));
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  CUDA(cudaMemPoolSetAccess(own, &access, 1));
  CUDA(cudaMallocFromPoolAsync(&data, 128 * sizeof(int), own, stream));
  CUDA(cudaStreamSynchronize(stream));
  data[100] = 3;
  fill<<<1, 64, 0, stream>>>(data, 5);
  fill<<<1, 1, 0, stream>>>(data + 100, data[100] + 1);
  CUDA(cudaStreamSynchronize(stream));
  CHECK(data[63] == 5 && data[100] == 4);
  CUDA(cudaFreeAsync(data, stream));
  CUDA(cudaMemPoolDestroy(own));
#endif
  std::puts("ok");
}
