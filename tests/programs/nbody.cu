// tests/programs/nbody.cu - forces between bodies, with tiles in shared memory and rsqrtf
#include <cmath>
#include <vector>

#include "check.cuh"

constexpr int kBlock = 64;

__global__ void forces(const float4* bodies, float4* out, int count) {
  __shared__ float4 tile[kBlock];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const float4 me = bodies[i];
  float3 sum = make_float3(0, 0, 0);
  for (int start = 0; start < count; start += kBlock) {
    tile[threadIdx.x] = bodies[start + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < kBlock; ++j) {
      const float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      const float weight = tile[j].w * inverse * inverse * inverse;
      sum.x += dx * weight, sum.y += dy * weight, sum.z += dz * weight;
    }
    __syncthreads();
  }
  out[i] = make_float4(sum.x, sum.y, sum.z, 0);
}

int main() {
  const int count = 128;
  float4 *bodies, *out;
  CUDA(cudaMallocManaged(&bodies, count * sizeof(float4)));
  CUDA(cudaMallocManaged(&out, count * sizeof(float4)));
  for (int i = 0; i < count; ++i) {
    bodies[i] = make_float4(std::sin(i * 1.0f), std::cos(i * 2.0f), i * 0.01f, 1 + i % 3);
  }
  forces<<<count / kBlock, kBlock>>>(bodies, out, count);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < count; ++i) {
    double x = 0, scale = 0;
    for (int j = 0; j < count; ++j) {
      const double dx = bodies[j].x - bodies[i].x, dy = bodies[j].y - bodies[i].y,
                   dz = bodies[j].z - bodies[i].z;
      const double weight = bodies[j].w / std::pow(dx * dx + dy * dy + dz * dz + 0.01, 1.5);
      x += dx * weight;
      scale += std::abs(dx * weight);
    }
    CHECK(std::abs(out[i].x - x) <= 1e-4 * scale);
  }
  std::puts("ok");
}
