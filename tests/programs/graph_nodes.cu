// tests/programs/graph_nodes.cu - a graph of explicit copy, fill, kernel and host nodes
#include "check.cuh"

__constant__ int factor;

__global__ void multiply(int* data, int offset) {
  data[threadIdx.x] = data[threadIdx.x] * factor + offset;
}

int main() {
  int *data, host[64], result[64], five = 5, calls = 0;
  for (int i = 0; i < 64; ++i) host[i] = i;
  CUDA(cudaMalloc(&data, sizeof host));
  cudaGraph_t graph;
  CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t fill, symbol, in, kernel, out, note;
  cudaMemsetParams memset{};
  memset.dst = data;
  memset.elementSize = 4;
  memset.width = 64;
  memset.height = 1;
  memset.value = 0x01010101;
  CUDA(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &memset));
  CUDA(cudaGraphAddMemcpyNodeToSymbol(&symbol, graph, nullptr, 0, factor, &five, sizeof five, 0,
                                      cudaMemcpyHostToDevice));
  CUDA(cudaGraphAddMemcpyNode1D(&in, graph, &fill, 1, data, host, sizeof host / 2,
                                cudaMemcpyHostToDevice));
  int offset = 7;
  void* arguments[] = {&data, &offset};
  cudaKernelNodeParams launch{};
  launch.func = reinterpret_cast<void*>(multiply);
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(64);
  launch.kernelParams = arguments;
  const cudaGraphNode_t before[] = {symbol, in};
  CUDA(cudaGraphAddKernelNode(&kernel, graph, before, 2, &launch));
  cudaMemcpy3DParms back{};
  back.srcPtr = make_cudaPitchedPtr(data, sizeof host, 64, 1);
  back.dstPtr = make_cudaPitchedPtr(result, sizeof host, 64, 1);
  back.extent = make_cudaExtent(sizeof host, 1, 1);
  back.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaGraphAddMemcpyNode(&out, graph, &kernel, 1, &back));
  cudaHostNodeParams call{};
  call.fn = [](void* user) { ++*static_cast<int*>(user); };
  call.userData = &calls;
  CUDA(cudaGraphAddHostNode(&note, graph, &out, 1, &call));
  cudaGraphNodeType type;
  CUDA(cudaGraphNodeGetType(kernel, &type));
  CHECK(type == cudaGraphNodeTypeKernel);
  cudaKernelNodeParams read{};
  CUDA(cudaGraphKernelNodeGetParams(kernel, &read));
  CHECK(read.func == launch.func && read.blockDim.x == 64);
  cudaGraph_t clone;
  CUDA(cudaGraphClone(&clone, graph));
  cudaGraphExec_t executable;
  CUDA(cudaGraphInstantiate(&executable, clone, 0));
  CUDA(cudaGraphLaunch(executable, nullptr));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i) CHECK(result[i] == (i < 32 ? i * 5 + 7 : 0x01010101 * 5 + 7));
  CHECK(calls == 1);
  offset = 8;
  CUDA(cudaGraphNodeFindInClone(&kernel, kernel, clone));
  CUDA(cudaGraphExecKernelNodeSetParams(executable, kernel, &launch));
  CUDA(cudaGraphLaunch(executable, nullptr));
  CUDA(cudaDeviceSynchronize());
  CHECK(result[3] == 23 && calls == 2);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(clone));
  CUDA(cudaGraphDestroy(graph));
  std::puts("ok");
}
