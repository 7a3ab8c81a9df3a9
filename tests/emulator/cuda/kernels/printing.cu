// tests/emulator/cuda/kernels/printing.cu - device printf: formats, widths, strings, order of lanes
#include <cstdio>

extern "C" __global__ void printing(const float* values) {
  if (threadIdx.x == 0) {
    printf("block %d of %u\n", blockIdx.x, gridDim.x);
    printf("%5d|%-5d|%05d|%+d\n", 42, 42, 42, 42);
    printf("%x %X %#x %o %c %%\n", 255u, 255u, 255u, 8u, 'z');
    printf("%lld %llu %llx\n", -1234567890123ll, 18446744073709551615ull, 0x123456789abcdefull);
    printf("%.3f %8.2f %e %g\n", 3.14159, -2.5, 12345.678, 0.0001);
    printf("[%s] [%8s] [%-8s]\n", "text", "right", "left");
    printf("%hd %i %ld\n", static_cast<short>(-300), -7, 1L << 40);
    printf("%*d|% d|%.3s|%10.4e\n", 6, 7, 8, "abcdef", -0.00123456);
    printf("no arguments\n");
  }
  __syncwarp();
  if (threadIdx.x % 8 == 3) printf("lane %d has %.1f\n", threadIdx.x, values[threadIdx.x]);
}
