// tests/emulator/cuda/kernels/clocks.cu - clocks that do not go back, sleeping while waiting
extern "C" __global__ void clocks(volatile int* flag, int* ordered, long long* spans) {
  const long long start = clock64();
  unsigned long long timer;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) __nanosleep(20);
    *flag = 1;
  } else if (threadIdx.x == 32) {
    unsigned pause = 8;
    while (*flag == 0) {
      __nanosleep(pause);
      if (pause < 256) pause *= 2;
    }
  }
  unsigned long long later;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later));
  const long long end = clock64();
  ordered[threadIdx.x] = (end >= start) + 2 * (later >= timer);
  spans[threadIdx.x] = end - start;
}
