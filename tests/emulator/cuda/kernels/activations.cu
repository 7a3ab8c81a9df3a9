// tests/emulator/cuda/kernels/activations.cu - GELU both ways, SiLU, gated SiLU, ReLU, softplus
extern "C" __global__ void activations(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  out[i] = 0.5f * x * (1.0f + erff(x * 0.70710678f));
  out[n + i] = 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
  out[2 * n + i] = x / (1.0f + __expf(-x));
  out[3 * n + i] = fmaxf(x, 0.0f);
  out[4 * n + i] = log1pf(expf(-fabsf(x))) + fmaxf(x, 0.0f);
}

extern "C" __global__ void gated_silu(const float4* gate, const float4* up, float4* out,
                                      int quads) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  const float4 g = __ldg(gate + i), u = __ldg(up + i);
  auto silu = [](float x) { return __fdividef(x, 1.0f + __expf(-x)); };
  out[i] = make_float4(silu(g.x) * u.x, silu(g.y) * u.y, silu(g.z) * u.z, silu(g.w) * u.w);
}
