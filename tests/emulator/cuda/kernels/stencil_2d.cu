// tests/emulator/cuda/kernels/stencil_2d.cu - heat on a plate: Jacobi steps in shared tiles
extern "C" __global__ void stencil_2d(const float* now, const float* power, float* next, int width,
                                      int height, float k) {
  __shared__ float tile[18][18];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  const int cx = min(max(x, 0), width - 1), cy = min(max(y, 0), height - 1);
  const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  tile[ty][tx] = now[cy * width + cx];
  if (threadIdx.x == 0) tile[ty][0] = now[cy * width + max(cx - 1, 0)];
  if (threadIdx.x == 15) tile[ty][17] = now[cy * width + min(x + 1, width - 1)];
  if (threadIdx.y == 0) tile[0][tx] = now[max(cy - 1, 0) * width + cx];
  if (threadIdx.y == 15) tile[17][tx] = now[min(y + 1, height - 1) * width + cx];
  __syncthreads();
  if (x >= width || y >= height) return;
  const float right = x + 1 < width ? tile[ty][tx + 1] : tile[ty][tx];
  const float down = y + 1 < height ? tile[ty + 1][tx] : tile[ty][tx];
  const float around = tile[ty][tx - 1] + right + tile[ty - 1][tx] + down;
  next[y * width + x] = tile[ty][tx] + k * (around - 4.0f * tile[ty][tx]) + power[y * width + x];
}
