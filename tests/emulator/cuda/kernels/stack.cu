// tests/emulator/cuda/kernels/stack.cu - Treiber's stack: index and tag in one 64-bit word
__device__ unsigned long long now(const unsigned long long* word) {
  return *static_cast<const volatile unsigned long long*>(word);
}

// Low half: index + 1 of the top node, 0 for none; high half: a tag against ABA.
__device__ void push(unsigned long long* top, unsigned* next, unsigned node) {
  unsigned long long seen = now(top);
  while (true) {
    static_cast<volatile unsigned*>(next)[node] = static_cast<unsigned>(seen);
    __threadfence();
    const unsigned long long mine = ((seen >> 32) + 1) << 32 | (node + 1);
    const unsigned long long before = atomicCAS(top, seen, mine);
    if (before == seen) return;
    seen = before;
  }
}

__device__ int pop(unsigned long long* top, unsigned* next) {
  unsigned long long seen = now(top);
  while (true) {
    const unsigned node = static_cast<unsigned>(seen);
    if (node == 0) return -1;
    __threadfence();
    const unsigned below = static_cast<volatile unsigned*>(next)[node - 1];
    const unsigned long long before = atomicCAS(top, seen, ((seen >> 32) + 1) << 32 | below);
    if (before == seen) return static_cast<int>(node) - 1;
    seen = before;
  }
}

extern "C" __global__ void stack_push(unsigned long long* top, unsigned* next) {
  push(top, next, blockIdx.x * blockDim.x + threadIdx.x);
}

// Each thread takes two nodes and puts one back, so that half of them stay.
extern "C" __global__ void stack_churn(unsigned long long* top, unsigned* next, int* owned) {
  const int first = pop(top, next), second = pop(top, next);
  if (first >= 0 && second >= 0) {
    atomicAdd(&owned[first], 1);
    push(top, next, second);
  } else if (first >= 0) {
    push(top, next, first);
  }
}
