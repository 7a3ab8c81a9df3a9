// tests/programs/graph_capture.cu - two streams captured into one graph
#include "check.cuh"

__global__ void add(int* data, int amount) { data[threadIdx.x] += amount; }

int main() {
  int *a, *b, host[32];
  CUDA(cudaMalloc(&a, 32 * sizeof(int)));
  CUDA(cudaMalloc(&b, 32 * sizeof(int)));
  cudaStream_t main_stream, side;
  CUDA(cudaStreamCreate(&main_stream));
  CUDA(cudaStreamCreate(&side));
  cudaEvent_t fork, join;
  CUDA(cudaEventCreate(&fork));
  CUDA(cudaEventCreate(&join));
  CUDA(cudaMemset(a, 0, 32 * sizeof(int)));
  CUDA(cudaMemset(b, 0, 32 * sizeof(int)));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeGlobal));
  CUDA(cudaEventRecord(fork, main_stream));
  CUDA(cudaStreamWaitEvent(side, fork, 0));
  add<<<1, 32, 0, main_stream>>>(a, 1);
  add<<<1, 32, 0, side>>>(b, 10);
  CUDA(cudaEventRecord(join, side));
  CUDA(cudaStreamWaitEvent(main_stream, join, 0));
  add<<<1, 32, 0, main_stream>>>(b, 100);
  cudaStreamCaptureStatus status;
  CUDA(cudaStreamIsCapturing(main_stream, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  cudaGraph_t graph;
  CUDA(cudaStreamEndCapture(main_stream, &graph));
  std::size_t nodes = 0;
  CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 3);
  cudaGraphExec_t executable;
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 5; ++i) CUDA(cudaGraphLaunch(executable, main_stream));
  CUDA(cudaStreamSynchronize(main_stream));
  CUDA(cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost));
  for (int value : host) CHECK(value == 5);
  CUDA(cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost));
  for (int value : host) CHECK(value == 550);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  std::puts("ok");
}
