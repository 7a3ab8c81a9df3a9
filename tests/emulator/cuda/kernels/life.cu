// tests/emulator/cuda/kernels/life.cu - game of life in bytes and in bits
extern "C" __global__ void life_bytes(const unsigned char* now, unsigned char* next, int width,
                                      int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int around = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) {
      if (dx == 0 && dy == 0) continue;
      around += now[(y + dy + height) % height * width + (x + dx + width) % width];
    }
  const unsigned char alive = now[y * width + x];
  next[y * width + x] = around == 3 || (alive && around == 2);
}

__device__ void count(unsigned cells, unsigned& ones, unsigned& twos, unsigned& fours) {
  const unsigned carry = ones & cells;
  ones ^= cells;
  fours |= twos & carry;
  twos ^= carry;
}

extern "C" __global__ void life_bits(const unsigned* now, unsigned* next, int words, int height) {
  const int w = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (w >= words || y >= height) return;
  unsigned ones = 0, twos = 0, fours = 0, here = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    const unsigned* row = now + (y + dy + height) % height * words;
    const unsigned left = row[(w + words - 1) % words], mid = row[w], right = row[(w + 1) % words];
    count(__funnelshift_l(left, mid, 1), ones, twos, fours);
    count(__funnelshift_r(mid, right, 1), ones, twos, fours);
    if (dy == 0)
      here = mid;
    else
      count(mid, ones, twos, fours);
  }
  next[y * words + w] = twos & ~fours & (ones | here);
}
