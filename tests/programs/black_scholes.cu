// tests/programs/black_scholes.cu - option prices with expf, logf and sqrtf
#include <cmath>

#include "check.cuh"

__host__ __device__ float cumulative(float d) {
  const float k = 1 / (1 + 0.2316419f * fabsf(d));
  const float tail = 0.39894228f * expf(-0.5f * d * d) * k *
                     (0.31938153f + k * (-0.356563782f + k * (1.781477937f +
                      k * (-1.821255978f + k * 1.330274429f))));
  return d > 0 ? 1 - tail : tail;
}

__host__ __device__ float call_price(float price, float strike, float years) {
  const float rate = 0.02f, volatility = 0.3f, root = sqrtf(years);
  const float d1 = (logf(price / strike) + (rate + 0.5f * volatility * volatility) * years) /
                   (volatility * root);
  return price * cumulative(d1) - strike * expf(-rate * years) * cumulative(d1 - volatility * root);
}

__global__ void prices(float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = call_price(5 + i * 0.1f, 10 + i % 7, 0.25f + i % 10);
}

int main() {
  const int count = 500;
  float* out;
  CUDA(cudaMallocManaged(&out, count * sizeof(float)));
  prices<<<4, 128>>>(out, count);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < count; ++i) {
    CHECK(std::fabs(out[i] - call_price(5 + i * 0.1f, 10 + i % 7, 0.25f + i % 10)) < 1e-3f);
  }
  std::puts("ok");
}
