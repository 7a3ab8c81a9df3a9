// tests/emulator/cuda/kernels/queue.cu - lock-free bounded queue: slots with turn numbers
struct Slot {
  unsigned turn;
  int value;
};

__device__ bool push(Slot* slots, unsigned mask, unsigned* tail, int value) {
  unsigned at = *static_cast<volatile unsigned*>(tail);
  while (true) {
    Slot* slot = &slots[at & mask];
    const int ahead = static_cast<int>(*static_cast<volatile unsigned*>(&slot->turn) - at);
    if (ahead == 0) {
      const unsigned before = atomicCAS(tail, at, at + 1);
      if (before == at) {
        *static_cast<volatile int*>(&slot->value) = value;
        __threadfence();
        *static_cast<volatile unsigned*>(&slot->turn) = at + 1;
        return true;
      }
      at = before;
    } else if (ahead < 0) {
      return false;
    } else {
      at = *static_cast<volatile unsigned*>(tail);
    }
  }
}

__device__ bool pop(Slot* slots, unsigned mask, unsigned* head, int* value) {
  unsigned at = *static_cast<volatile unsigned*>(head);
  while (true) {
    Slot* slot = &slots[at & mask];
    const int ahead = static_cast<int>(*static_cast<volatile unsigned*>(&slot->turn) - (at + 1));
    if (ahead == 0) {
      const unsigned before = atomicCAS(head, at, at + 1);
      if (before == at) {
        __threadfence();
        *value = *static_cast<volatile int*>(&slot->value);
        __threadfence();
        *static_cast<volatile unsigned*>(&slot->turn) = at + mask + 1;
        return true;
      }
      at = before;
    } else if (ahead < 0) {
      return false;
    } else {
      at = *static_cast<volatile unsigned*>(head);
    }
  }
}

// Even threads push their item, odd threads pop one: whoever finds the queue full or empty counts.
extern "C" __global__ void queue(Slot* slots, unsigned mask, unsigned* head_tail, int items,
                                 int* taken, unsigned* sums) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < items; ++i) {
    if (thread % 2 == 0) {
      const int value = thread / 2 * items + i;
      if (push(slots, mask, head_tail + 1, value)) {
        atomicAdd(&sums[0], 1u);
      } else {
        atomicAdd(&taken[value], 1);
      }
    } else {
      int value;
      if (pop(slots, mask, head_tail, &value)) {
        atomicAdd(&taken[value], 1);
        atomicAdd(&sums[1], 1u);
      }
    }
  }
}

// What is left over.
extern "C" __global__ void drain(Slot* slots, unsigned mask, unsigned* head_tail, int* taken,
                                 unsigned* sums) {
  int value;
  while (pop(slots, mask, head_tail, &value)) {
    atomicAdd(&taken[value], 1);
    atomicAdd(&sums[1], 1u);
  }
}
