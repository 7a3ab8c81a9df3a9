// tests/emulator/cuda/kernels/local_array.cu - arrays of a thread's own, indexed by data
extern "C" __global__ void local_array(const unsigned char* in, int n, int* out) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  int counts[16];
  for (int i = 0; i < 16; ++i) counts[i] = 0;
  for (int i = 0; i < n; ++i) ++counts[in[thread * n + i] & 15];
  int most = 0;
  for (int i = 1; i < 16; ++i)
    if (counts[i] > counts[most]) most = i;
  out[thread] = most * 1000 + counts[most];
}

struct Cell {
  double weight;
  short place;
  char mark;
};

__device__ __noinline__ void swap_cells(Cell* cells, int a, int b) {
  const Cell kept = cells[a];
  cells[a] = cells[b];
  cells[b] = kept;
}

// A heap of structures in local memory.
extern "C" __global__ void local_heap(const double* in, int n, short* order) {
  Cell heap[24];
  const int thread = threadIdx.x;
  int size = 0;
  for (int i = 0; i < n; ++i) {
    heap[size].weight = in[thread * n + i];
    heap[size].place = static_cast<short>(i);
    heap[size].mark = 1;
    for (int at = size++; at > 0 && heap[at].weight < heap[(at - 1) / 2].weight; at = (at - 1) / 2)
      swap_cells(heap, at, (at - 1) / 2);
  }
  for (int i = 0; i < n; ++i) {
    order[thread * n + i] = heap[0].mark == 1 ? heap[0].place : -1;
    heap[0] = heap[--size];
    for (int at = 0;;) {
      int least = at;
      for (int child = 2 * at + 1; child <= 2 * at + 2; ++child)
        if (child < size && heap[child].weight < heap[least].weight) least = child;
      if (least == at) break;
      swap_cells(heap, at, least);
      at = least;
    }
  }
}
