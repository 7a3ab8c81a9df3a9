// tests/emulator/cuda/kernels/nbody.cu - gravity, all pairs, bodies through shared tiles
extern "C" __global__ void nbody(const float4* bodies, float4* velocities, float4* moved, int n,
                                 float dt, float softening) {
  extern __shared__ float4 tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 mine = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
  float3 pull = make_float3(0, 0, 0);
  for (int start = 0; start < n; start += blockDim.x) {
    const int j = start + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < blockDim.x; ++k) {
      const float4 other = tile[k];
      const float dx = other.x - mine.x, dy = other.y - mine.y, dz = other.z - mine.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      const float force = other.w * inverse * inverse * inverse;
      pull.x += dx * force;
      pull.y += dy * force;
      pull.z += dz * force;
    }
    __syncthreads();
  }
  if (i >= n) return;
  float4 v = velocities[i];
  v.x += pull.x * dt;
  v.y += pull.y * dt;
  v.z += pull.z * dt;
  velocities[i] = v;
  moved[i] = make_float4(mine.x + v.x * dt, mine.y + v.y * dt, mine.z + v.z * dt, mine.w);
}
