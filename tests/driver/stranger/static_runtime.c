/* tests/driver/stranger/static_runtime.c - what a program with a static CUDA runtime looks like

   Functions under the runtime's names that no other file can see. They are told apart from those of
   ptxgen's runtime by what they answer. CUDA 11, 12 and 13 (-DMAJOR) differ by their functions. */
#include <stdio.h>

#define STATIC_RUNTIME __attribute__((visibility("hidden"), noinline))

STATIC_RUNTIME int cudaRuntimeGetVersion(int *version) {
  *version = -1;
  return -1;
}
STATIC_RUNTIME int cudaIpcCloseMemHandle(void *memory) { return memory == NULL ? -1 : -2; }
STATIC_RUNTIME const char *cudaGetErrorName(int error) { return error == 0 ? "none" : "own"; }
STATIC_RUNTIME void **__cudaRegisterFatBinary(void *wrapper) {
  puts("registered with the program's own runtime");
  return wrapper;
}
#if MAJOR < 13
STATIC_RUNTIME int cudaThreadExit(void) { return -1; }
#endif
#if MAJOR == 12
STATIC_RUNTIME int cudaGetDeviceProperties_v2(void *properties) {
  return properties != NULL ? -1 : -2;
}
#endif
#ifdef SHORT
/* Followed by another function at once. */
int cudaDeviceReset(void);
__asm__(".text\n.hidden cudaDeviceReset\n.globl cudaDeviceReset\n.type cudaDeviceReset, %function\n"
        "cudaDeviceReset: ret\n.type next, %function\nnext: ret\n");
#endif
/* A name like the runtime's, which it does not have. */
STATIC_RUNTIME int cudaCheckOfTheProgram(void) { return 7; }

__attribute__((constructor)) static void register_kernels(void) {
  static int wrapper[8];
  if (__cudaRegisterFatBinary(wrapper) == NULL) puts("not registered");
}

int main(void) {
  int version = 0;
  int error = cudaRuntimeGetVersion(&version);
  printf("%d %d %d %s\n", error, version, cudaCheckOfTheProgram(),
         cudaGetErrorName(cudaIpcCloseMemHandle(NULL)));
#if MAJOR < 13
  printf("%s\n", cudaThreadExit() == -1 ? "own" : "not own");
#endif
#if MAJOR == 12
  printf("%s\n", cudaGetDeviceProperties_v2(NULL) == -2 ? "own" : "not own");
#endif
#ifdef SHORT
  cudaDeviceReset();
#endif
  return 0;
}
