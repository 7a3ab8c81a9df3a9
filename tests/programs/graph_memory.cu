// tests/programs/graph_memory.cu - memory of graphs: nodes, captured allocations, footprint
#include "check.cuh"

__global__ void square(const int* in, int* scratch) {
  const int i = threadIdx.x;
  scratch[i] = in[i] * in[i];
}

__global__ void reverse(const int* scratch, int* out) {
  const int i = threadIdx.x;
  out[i] = scratch[blockDim.x - 1 - i];
}

constexpr int kCount = 128;
constexpr std::size_t kBytes = kCount * sizeof(int);

// Without what is kept for later launches.
static unsigned long long used_by_graphs() {
  CUDA(cudaDeviceGraphMemTrim(0));
  unsigned long long bytes = 0;
  CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
  return bytes;
}

static void check(const int* out, int factor) {
  int host[kCount];
  CUDA(cudaMemcpy(host, out, kBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    const int value = factor * (kCount - 1 - i);
    CHECK(host[i] == value * value);
  }
}

/// Scratch memory that the graph allocates and frees.
static void with_nodes(int* in, int* out) {
  cudaGraph_t graph;
  CUDA(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams memory{};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.poolProps.location.id = 0;
  memory.bytesize = kBytes;
  cudaGraphNode_t allocation, first, second, free;
  CUDA(cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &memory));
  CHECK(memory.dptr != nullptr);
  void* square_arguments[] = {&in, &memory.dptr};
  cudaKernelNodeParams launch{};
  launch.func = reinterpret_cast<void*>(square);
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(kCount);
  launch.kernelParams = square_arguments;
  CUDA(cudaGraphAddKernelNode(&first, graph, &allocation, 1, &launch));
  void* reverse_arguments[] = {&memory.dptr, &out};
  launch.func = reinterpret_cast<void*>(reverse);
  launch.kernelParams = reverse_arguments;
  CUDA(cudaGraphAddKernelNode(&second, graph, &first, 1, &launch));
  CUDA(cudaGraphAddMemFreeNode(&free, graph, &second, 1, memory.dptr));
  void* freed = nullptr;
  CUDA(cudaGraphMemFreeNodeGetParams(free, &freed));
  CHECK(freed == memory.dptr);
  cudaGraph_t clone;
  FAILS(cudaGraphClone(&clone, graph), cudaErrorNotSupported);
  cudaGetLastError();
  cudaGraphExec_t executable;
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(executable, nullptr));
  CUDA(cudaDeviceSynchronize());
  check(out, 1);
  CHECK(used_by_graphs() == 0);
  unsigned long long high = 0;
  CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &high));
  CHECK(high >= kBytes);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
}

/// cudaMallocAsync in a capture; the result stays until the program frees it.
static void captured(int* in) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  int *scratch, *out;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CUDA(cudaMallocAsync(&scratch, kBytes, stream));
  CUDA(cudaMallocAsync(&out, kBytes, stream));
  square<<<1, kCount, 0, stream>>>(in, scratch);
  reverse<<<1, kCount, 0, stream>>>(scratch, out);
  CUDA(cudaFreeAsync(scratch, stream));
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphLaunch(executable, stream));
  CUDA(cudaStreamSynchronize(stream));
  check(out, 1);
  CHECK(used_by_graphs() >= kBytes);
  FAILS(cudaGraphLaunch(executable, stream), cudaErrorInvalidValue);
  cudaGetLastError();
  CUDA(cudaFreeAsync(out, stream));
  CUDA(cudaGraphLaunch(executable, stream));
  CUDA(cudaFree(out));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(used_by_graphs() == 0);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(executable, stream));
  CUDA(cudaStreamSynchronize(stream));
  check(out, 1);
  CUDA(cudaFree(out));
  CUDA(cudaDeviceGraphMemTrim(0));
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(stream));
}

/// Copies and fills that change after they were added.
static void changed(int* in, int* out) {
  int back[kCount];
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaGraphNode_t fill, copy, result;
  CUDA(cudaGraphCreate(&graph, 0));
  cudaMemsetParams zeros{};
  zeros.dst = out;
  zeros.elementSize = 4;
  zeros.width = kCount / 2;
  zeros.height = 1;
  CUDA(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &zeros));
  CUDA(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, out, in, kBytes / 4,
                                cudaMemcpyDeviceToDevice));
  CUDA(cudaGraphAddMemcpyNode1D(&result, graph, &copy, 1, back, out, kBytes,
                                cudaMemcpyDeviceToHost));
  CUDA(cudaGraphMemsetNodeGetParams(fill, &zeros));
  zeros.value = 5;
  zeros.width = kCount;
  CUDA(cudaGraphMemsetNodeSetParams(fill, &zeros));
  cudaMemcpy3DParms found{};
  CUDA(cudaGraphMemcpyNodeGetParams(copy, &found));
  CHECK(found.dstPtr.ptr == out && found.kind == cudaMemcpyDeviceToDevice);
  CUDA(cudaGraphMemcpyNodeSetParams1D(copy, out, in, kBytes / 2, cudaMemcpyDeviceToDevice));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphLaunch(executable, nullptr));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) CHECK(back[i] == (i < kCount / 2 ? i : 5));
  zeros.value = 6;
  CUDA(cudaGraphExecMemsetNodeSetParams(executable, fill, &zeros));
  CUDA(cudaGraphExecMemcpyNodeSetParams1D(executable, copy, out + 1, in + 2, 4,
                                          cudaMemcpyDeviceToDevice));
  CUDA(cudaGraphLaunch(executable, nullptr));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) CHECK(back[i] == (i == 1 ? 2 : 6));
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
}

int main() {
  int *in, *out, host[kCount];
  for (int i = 0; i < kCount; ++i) host[i] = i;
  CUDA(cudaMalloc(&in, kBytes));
  CUDA(cudaMalloc(&out, kBytes));
  CUDA(cudaMemcpy(in, host, kBytes, cudaMemcpyHostToDevice));
  with_nodes(in, out);
  captured(in);
  changed(in, out);
  CUDA(cudaFree(in));
  CUDA(cudaFree(out));
  std::puts("ok");
}
