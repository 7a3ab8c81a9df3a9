// tests/emulator/cuda/kernels/mandelbrot.cu - escape times in fixed point: exact, and divergent
extern "C" __global__ void mandelbrot(unsigned char* out, int width, int height, int most) {
  const int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height) return;
  // 8.24 numbers
  const int cx = static_cast<int>((static_cast<long long>(px) * 3 << 24) / width) - (2 << 24);
  const int cy = static_cast<int>((static_cast<long long>(py) * 2 << 24) / height) - (1 << 24);
  int x = 0, y = 0, i = 0;
  for (; i < most; ++i) {
    const long long xx = static_cast<long long>(x) * x >> 24,
                    yy = static_cast<long long>(y) * y >> 24;
    if (xx + yy > 4ll << 24) break;
    y = static_cast<int>(static_cast<long long>(x) * y >> 23) + cy;
    x = static_cast<int>(xx - yy) + cx;
  }
  out[py * width + px] = static_cast<unsigned char>(i);
}
