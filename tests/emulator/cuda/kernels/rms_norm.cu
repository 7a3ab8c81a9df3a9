// tests/emulator/cuda/kernels/rms_norm.cu - RMS norm, with the residual added, in half2
#include <cuda_fp16.h>

extern "C" __global__ void rms_norm(const float4* in, const float4* gain, float4* out, int quads,
                                    float epsilon) {
  __shared__ float of_warp[8];
  const float4* x = in + blockIdx.x * quads;
  float sum = 0;
  for (int i = threadIdx.x; i < quads; i += blockDim.x) {
    const float4 v = x[i];
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) sum += of_warp[w];
  const float scale = rsqrtf(sum / (4 * quads) + epsilon);
  for (int i = threadIdx.x; i < quads; i += blockDim.x) {
    const float4 v = x[i], g = gain[i];
    out[blockIdx.x * quads + i] =
        make_float4(v.x * scale * g.x, v.y * scale * g.y, v.z * scale * g.z, v.w * scale * g.w);
  }
}

// One warp a row: residual += x; out = norm(residual) * gain.
extern "C" __global__ void rms_norm_residual(const __half2* x, __half2* residual,
                                             const __half2* gain, __half2* out, int pairs,
                                             float epsilon) {
  const int base = blockIdx.x * pairs;
  float sum = 0;
  for (int i = threadIdx.x; i < pairs; i += 32) {
    const __half2 both = __hadd2(x[base + i], residual[base + i]);
    residual[base + i] = both;
    const float2 f = __half22float2(both);
    sum += f.x * f.x + f.y * f.y;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  const float scale = rsqrtf(sum / (2 * pairs) + epsilon);
  for (int i = threadIdx.x; i < pairs; i += 32) {
    const float2 f = __half22float2(residual[base + i]), g = __half22float2(gain[i]);
    out[base + i] = __floats2half2_rn(f.x * scale * g.x, f.y * scale * g.y);
  }
}
