// tests/emulator/cuda/kernels/spin_lock.cu - locks between threads of one warp
__device__ void lock(int* mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {
  }
  __threadfence();
}

__device__ void unlock(int* mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

// The holder and the waiters are lanes of one warp: needs independent thread scheduling.
extern "C" __global__ void spin_lock(int* mutex, volatile int* counter, volatile long long* sum) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  lock(mutex);
  *counter = *counter + 1;
  *sum = *sum + thread;
  unlock(mutex);
}

// Many locks, two at a time in a fixed order: transfers between accounts.
extern "C" __global__ void transfers(int* mutexes, volatile int* accounts, const int2* moves,
                                     int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int2 move = moves[i];
  if (move.x == move.y) return;
  const int low = min(move.x, move.y), high = max(move.x, move.y);
  lock(&mutexes[low]);
  lock(&mutexes[high]);
  accounts[move.x] = accounts[move.x] - 1;
  accounts[move.y] = accounts[move.y] + 1;
  unlock(&mutexes[high]);
  unlock(&mutexes[low]);
}

// Try, work, release inside one loop; a ticket lock beside it.
extern "C" __global__ void try_lock(int* mutex, volatile int* value, unsigned* tickets,
                                    volatile unsigned* serving, volatile int* other) {
  bool done = false;
  while (!done) {
    if (atomicExch(mutex, 1) == 0) {
      __threadfence();
      *value = *value + 2;
      __threadfence();
      atomicExch(mutex, 0);
      done = true;
    }
  }
  const unsigned mine = atomicAdd(tickets, 1u);
  while (*serving != mine) {
  }
  __threadfence();
  *other = *other * 3 + 1;
  __threadfence();
  *serving = mine + 1;
}
