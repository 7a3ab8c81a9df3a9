// tests/programs/breadth_first.cu - levels of a graph, with a flag for the host
#include <queue>
#include <vector>

#include "check.cuh"

__device__ int changed;

__global__ void level_up(int vertices, const int* edges, int degree, int* levels, int level) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= vertices || levels[v] != level) return;
  for (int e = 0; e < degree; ++e) {
    const int to = edges[v * degree + e];
    if (atomicCAS(&levels[to], -1, level + 1) == -1) atomicExch(&changed, 1);
  }
}

int main() {
  const int vertices = 300, degree = 2;
  std::vector<int> edges(vertices * degree), expected(vertices, -1), levels(vertices, -1);
  for (int v = 0; v < vertices; ++v) edges[2 * v] = (v * 7 + 1) % vertices, edges[2 * v + 1] = v / 2;
  std::queue<int> waiting;
  waiting.push(0);
  expected[0] = levels[0] = 0;
  while (!waiting.empty()) {
    const int v = waiting.front();
    waiting.pop();
    for (int e = 0; e < degree; ++e) {
      int& level = expected[edges[v * degree + e]];
      if (level == -1) level = expected[v] + 1, waiting.push(edges[v * degree + e]);
    }
  }
  int *dedges, *dlevels, again = 1;
  CUDA(cudaMalloc(&dedges, edges.size() * sizeof(int)));
  CUDA(cudaMalloc(&dlevels, levels.size() * sizeof(int)));
  CUDA(cudaMemcpy(dedges, edges.data(), edges.size() * sizeof(int), cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(dlevels, levels.data(), levels.size() * sizeof(int), cudaMemcpyHostToDevice));
  for (int level = 0; again; ++level) {
    again = 0;
    CUDA(cudaMemcpyToSymbol(changed, &again, sizeof again));
    level_up<<<3, 128>>>(vertices, dedges, degree, dlevels, level);
    CUDA(cudaMemcpyFromSymbol(&again, changed, sizeof again));
  }
  CUDA(cudaMemcpy(levels.data(), dlevels, levels.size() * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(levels == expected);
  std::puts("ok");
}
