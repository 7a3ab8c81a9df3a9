// tests/corpus/cuda/printing.cu - printf, assert, strings, trap and breakpoints
// Exercises: vprintf with a packed argument buffer, __assertfail, .global .align 1 .b8 string
// constants with escapes, trap, brkpt, exit, pmevent, malloc/free, __unreachable.
#include <assert.h>
#include <stdio.h>

__device__ const char* const messages[] = {"zero", "one \"quoted\"", "tab\tnewline\n",
                                           "\x01\xff\x7f", ""};
__constant__ char banner[16] = "banner \\ 0";

extern "C" __global__ void talk(const float* in, int n) {
  const int i = threadIdx.x;
  printf("no arguments\n");
  printf("thread %d of %u: %f %s %c %lld %p\n", i, blockDim.x, in[i], messages[n % 5], 'x',
         static_cast<long long>(n) << 33, in);
  printf("%s\n", banner);
}

extern "C" __global__ void checks(int* out, int n) {
  assert(n > 0 && "n must be positive");
  assert(out != nullptr);
  out[threadIdx.x / n] = 1;
  if (out[0] == 99) __trap();
  if (out[0] == 98) __brkpt();
  if (out[0] == 97) asm volatile("exit;");
  __prof_trigger(3);
  if (n > 5) __builtin_unreachable();
}

extern "C" __global__ void heap(int** out, int n) {
  int* p = static_cast<int*>(malloc(n * sizeof(int)));
  if (p == nullptr) return;
  p[0] = n;
  out[threadIdx.x] = p;
  free(out[threadIdx.x + 32]);
}
