// tests/emulator/cuda/kernels/stencil_3d.cu - seven points in space, marching along z
extern "C" __global__ void stencil_3d(const double* in, double* out, int nx, int ny, int nz,
                                      double c0, double c1) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
  const int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (x >= nx - 1 || y >= ny - 1) return;
  const int plane = nx * ny, at = y * nx + x;
  double below = in[at], here = in[at + plane], above;
  for (int z = 1; z < nz - 1; ++z) {
    const int p = z * plane + at;
    above = in[p + plane];
    out[p] = c0 * here + c1 * (below + above + in[p - 1] + in[p + 1] + in[p - nx] + in[p + nx]);
    below = here;
    here = above;
  }
}

// 27 points with a 3D block.
extern "C" __global__ void stencil_box(const int* in, int* out, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= n || y >= n || z >= n) return;
  int sum = 0;
  for (int dz = -1; dz <= 1; ++dz)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const int sx = (x + dx + n) % n, sy = (y + dy + n) % n, sz = (z + dz + n) % n;
        sum += in[(sz * n + sy) * n + sx];
      }
  out[(z * n + y) * n + x] = sum;
}
