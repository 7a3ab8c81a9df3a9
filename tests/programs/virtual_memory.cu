// tests/programs/virtual_memory.cu - an array that grows in place (cuMemMap)
#include <cuda.h>

#include <vector>

#include "check.cuh"

#define DRIVER(call) CHECK((call) == CUDA_SUCCESS)

__global__ void count_up(int* data, int first, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[first + i] = first + i;
}

__global__ void sum(const int* data, int count, unsigned long long* result) {
  unsigned long long own = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) own += data[i];
  atomicAdd(result, own);
}

/// Elements whose address stays when more are added.
class Growing {
 public:
  explicit Growing(std::size_t max_bytes) {
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties_.location.id = 0;
    DRIVER(cuMemGetAllocationGranularity(&step_, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    reserved_ = (max_bytes + step_ - 1) / step_ * step_;
    DRIVER(cuMemAddressReserve(&start_, reserved_, 0, 0, 0));
  }
  ~Growing() {
    DRIVER(cuMemUnmap(start_, mapped_));
    DRIVER(cuMemAddressFree(start_, reserved_));
  }
  void grow(std::size_t bytes) {
    while (mapped_ < bytes) {
      CUmemGenericAllocationHandle memory;
      DRIVER(cuMemCreate(&memory, step_, &properties_, 0));
      DRIVER(cuMemMap(start_ + mapped_, step_, 0, memory, 0));
      DRIVER(cuMemRelease(memory));
      mapped_ += step_;
    }
    CUmemAccessDesc access{};
    access.location = properties_.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER(cuMemSetAccess(start_, mapped_, &access, 1));
  }
  int* data() const { return reinterpret_cast<int*>(start_); }
  std::size_t step() const { return step_; }

 private:
  CUmemAllocationProp properties_{};
  CUdeviceptr start_ = 0;
  std::size_t step_ = 0, reserved_ = 0, mapped_ = 0;
};

int main() {
  CUDA(cudaFree(nullptr));  // the primary context
  Growing array(std::size_t{64} << 20);
  const int part = static_cast<int>(array.step() / sizeof(int));
  for (int i = 0; i < 3; ++i) {
    array.grow((i + 1) * array.step());
    count_up<<<(part + 255) / 256, 256>>>(array.data(), i * part, part);
    CUDA(cudaGetLastError());
  }
  const int count = 3 * part;
  unsigned long long* result;
  CUDA(cudaMalloc(&result, sizeof *result));
  CUDA(cudaMemset(result, 0, sizeof *result));
  sum<<<1, 256>>>(array.data(), count, result);
  unsigned long long total = 0;
  CUDA(cudaMemcpy(&total, result, sizeof total, cudaMemcpyDeviceToHost));
  CHECK(total == static_cast<unsigned long long>(count) * (count - 1) / 2);
  // One copy over all mappings.
  std::vector<int> host(count);
  CUDA(cudaMemcpy(host.data(), array.data(), count * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i) CHECK(host[i] == i);
  CUDA(cudaFree(result));
  std::puts("ok");
}
