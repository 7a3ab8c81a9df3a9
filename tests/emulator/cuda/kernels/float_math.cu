// tests/emulator/cuda/kernels/float_math.cu - float functions, option prices
extern "C" __global__ void float_math(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i], p = fabsf(x) + 0.25f;
  float* r = out + i * 14;
  r[0] = sinf(x);
  r[1] = cosf(x);
  r[2] = expf(x);
  r[3] = logf(p);
  r[4] = powf(p, x / 4);
  r[5] = erff(x);
  r[6] = sqrtf(p);
  r[7] = x / p;
  r[8] = atanf(x);
  r[9] = tanhf(x);
  r[10] = cbrtf(x);
  r[11] = exp2f(x) + log2f(p);
  r[12] = sinf(x * 100000.0f);
  r[13] = fmodf(x * 10, p);
}

__device__ float normal(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  const float tail =
      0.39894228f * __expf(-0.5f * d * d) * k *
      (0.31938153f +
       k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  return d > 0 ? 1.0f - tail : tail;
}

// Black and Scholes' call and put.
extern "C" __global__ void options(const float* price, const float* strike, const float* years,
                                   float* call, float* put, float rate, float volatility, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float root = sqrtf(years[i]);
    const float d1 =
        (__logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) /
        (volatility * root);
    const float d2 = d1 - volatility * root;
    const float discount = __expf(-rate * years[i]);
    call[i] = price[i] * normal(d1) - strike[i] * discount * normal(d2);
    put[i] = strike[i] * discount * (1.0f - normal(d2)) - price[i] * (1.0f - normal(d1));
  }
}
