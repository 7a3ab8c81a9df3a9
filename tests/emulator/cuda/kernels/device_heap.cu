// tests/emulator/cuda/kernels/device_heap.cu - malloc, free, new, memcpy and memset in kernels
struct Node {
  int value;
  Node* next;
};

extern "C" __global__ void linked_lists(const int* in, int n, int* out) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  Node* list = nullptr;
  for (int i = 0; i < n; ++i) {
    Node* node = static_cast<Node*>(malloc(sizeof(Node)));
    node->value = in[thread * n + i];
    node->next = list;
    list = node;
  }
  int sum = 0;
  for (int place = 1; list != nullptr; ++place) {
    sum += place * list->value;
    Node* next = list->next;
    free(list);
    list = next;
  }
  out[thread] = sum;
}

// Memory that one thread allocates for the whole block.
extern "C" __global__ void block_scratch(const int* in, int* out) {
  __shared__ int* scratch;
  if (threadIdx.x == 0) {
    scratch = new int[blockDim.x];
    memset(scratch, 0x11, blockDim.x * sizeof(int));
  }
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  scratch[blockDim.x - 1 - threadIdx.x] += in[i];
  __syncthreads();
  out[i] = scratch[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) delete[] scratch;
}
