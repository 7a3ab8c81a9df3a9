// tests/programs/graph_conditions.cu - conditional nodes: IF, WHILE, SWITCH; nodes by one call
#include "check.cuh"

__global__ void add(int* sum, int amount) { *sum += amount; }

__global__ void choose(cudaGraphConditionalHandle handle, unsigned value) {
  cudaGraphSetConditional(handle, value);
}

// The loop ends when nothing is left.
__global__ void count(cudaGraphConditionalHandle handle, unsigned* left) {
  cudaGraphSetConditional(handle, --*left);
}

static int* sum = nullptr;

static cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNode_t* after,
                                cudaGraphNodeParams& params) {
  cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
  CUDA(cudaGraphAddNode(&node, graph, after, nullptr, after != nullptr ? 1 : 0, &params));
#else
  CUDA(cudaGraphAddNode(&node, graph, after, after != nullptr ? 1 : 0, &params));
#endif
  return node;
}

template <class First, class Second>
static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t* after, const void* kernel,
                                  First first, Second second) {
  void* arguments[] = {&first, &second};
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeKernel;
  params.kernel.func = const_cast<void*>(kernel);
  params.kernel.gridDim = params.kernel.blockDim = dim3(1, 1, 1);
  params.kernel.kernelParams = arguments;
  return add_node(graph, after, params);
}

static cudaGraph_t* add_condition(cudaGraph_t graph, cudaGraphNode_t* after,
                                  cudaGraphConditionalHandle handle,
                                  cudaGraphConditionalNodeType type, unsigned size) {
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  add_node(graph, after, params);
  return params.conditional.phGraph_out;
}

static int launched(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  int host = 0;
  CUDA(cudaMemset(sum, 0, sizeof(int)));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphLaunch(executable, nullptr));
  CUDA(cudaMemcpy(&host, sum, sizeof(int), cudaMemcpyDeviceToHost));
  CUDA(cudaGraphExecDestroy(executable));
  return host;
}

static int chosen(cudaGraphConditionalNodeType type, unsigned size, unsigned value) {
  cudaGraph_t graph = nullptr;
  cudaGraphConditionalHandle handle = 0;
  CUDA(cudaGraphCreate(&graph, 0));
  CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  cudaGraphNode_t first = add_kernel(graph, nullptr, (const void*)choose, handle, value);
  cudaGraph_t* bodies = add_condition(graph, &first, handle, type, size);
  for (unsigned i = 0; i < size; ++i) {
    add_kernel(bodies[i], nullptr, (const void*)add, sum, int(i + 1));
  }
  const int result = launched(graph);
  CUDA(cudaGraphDestroy(graph));
  return result;
}

int main() {
  CUDA(cudaMalloc(&sum, sizeof(int)));
  CHECK(chosen(cudaGraphCondTypeIf, 2, 7) == 1);
  CHECK(chosen(cudaGraphCondTypeIf, 2, 0) == 2);
  CHECK(chosen(cudaGraphCondTypeIf, 1, 0) == 0);
  CHECK(chosen(cudaGraphCondTypeSwitch, 3, 2) == 3);
  CHECK(chosen(cudaGraphCondTypeSwitch, 3, 3) == 0);

  cudaGraph_t graph = nullptr;
  cudaGraphConditionalHandle handle = 0;
  CUDA(cudaGraphCreate(&graph, 0));
  CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraph_t body = add_condition(graph, nullptr, handle, cudaGraphCondTypeWhile, 1)[0];
  // The body is captured.
  unsigned* left = nullptr;
  const unsigned five = 5;
  CUDA(cudaMalloc(&left, sizeof(unsigned)));
  CUDA(cudaMemcpy(left, &five, sizeof five, cudaMemcpyHostToDevice));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                     cudaStreamCaptureModeGlobal));
  add<<<1, 1, 0, stream>>>(sum, 10);
  count<<<1, 1, 0, stream>>>(handle, left);
  CUDA(cudaStreamEndCapture(stream, &body));
  CHECK(launched(graph) == 50);
  cudaGraph_t clone = nullptr;
  FAILS(cudaGraphClone(&clone, graph), cudaErrorNotSupported);
  static_cast<void>(cudaGetLastError());
  CUDA(cudaGraphDestroy(graph));
  std::puts("ok");
}
