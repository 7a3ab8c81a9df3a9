// tests/programs/batch_copies.cu - several copies in one call, of bytes and of boxes
#include <vector>

#include "check.cuh"

int main() {
#if CUDART_VERSION >= 13000
  const int count = 4, length = 100;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  std::vector<std::vector<int>> host(count, std::vector<int>(length)), back = host;
  std::vector<void*> device(count), to_host(count);
  std::vector<const void*> from_host(count), from_device(count);
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < length; ++j) host[i][j] = i * length + j;
    CUDA(cudaMalloc(&device[i], length * sizeof(int)));
    from_device[i] = device[i];
    from_host[i] = host[i].data();
    to_host[i] = back[i].data();
  }
  const std::vector<std::size_t> bytes(count, length * sizeof(int));
  cudaMemcpyAttributes order{};
  order.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  CUDA(cudaMemcpyBatchAsync(device.data(), from_host.data(), bytes.data(), count, &order, &first, 1,
                            stream));
  CUDA(cudaMemcpyBatchAsync(to_host.data(), from_device.data(), bytes.data(), count, &order, &first,
                            1, stream));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(back == host);

  // The middle of a box of 10 x 5 x 2 bytes.
  unsigned char box[100], middle[12];
  for (int i = 0; i < 100; ++i) box[i] = i;
  cudaMemcpy3DBatchOp copy[2]{};
  copy[0].src.type = copy[0].dst.type = cudaMemcpyOperandTypePointer;
  copy[0].src.op.ptr.ptr = box + 10 + 3;
  copy[0].src.op.ptr.rowLength = 10;
  copy[0].src.op.ptr.layerHeight = 5;
  copy[0].dst.op.ptr.ptr = device[0];
  copy[0].extent = make_cudaExtent(3, 2, 2);
  copy[0].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
  CUDA(cudaMemcpy3DBatchAsync(1, copy, 0, stream));
  CUDA(cudaMemcpyAsync(middle, device[0], 12, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < 12; ++i) {
    CHECK(middle[i] == i / 6 * 50 + 10 + i % 6 / 3 * 10 + 3 + i % 3);
  }
  for (void* one : device) CUDA(cudaFree(one));
  CUDA(cudaStreamDestroy(stream));
#endif
  std::puts("ok");
}
