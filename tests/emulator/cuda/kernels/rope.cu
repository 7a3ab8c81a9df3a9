// tests/emulator/cuda/kernels/rope.cu - rotary position embedding, both pairings
extern "C" __global__ void rope_adjacent(float* x, const int* positions, int heads, int width,
                                         float base) {
  const int token = blockIdx.x, head = blockIdx.y, pair = threadIdx.x;
  if (pair >= width / 2) return;
  const float angle = positions[token] * powf(base, -2.0f * pair / width);
  float2* p = reinterpret_cast<float2*>(x + (token * heads + head) * width) + pair;
  float s, c;
  sincosf(angle, &s, &c);
  const float2 v = *p;
  *p = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

extern "C" __global__ void rope_halves(float* x, const int* positions, int heads, int width,
                                       float log2_base) {
  const int token = blockIdx.x, head = blockIdx.y, half = width / 2;
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    const float angle = positions[token] * exp2f(-log2_base * (2 * i) / width);
    float* row = x + (token * heads + head) * width;
    const float a = row[i], b = row[i + half];
    row[i] = a * cosf(angle) - b * sinf(angle);
    row[i + half] = b * cosf(angle) + a * sinf(angle);
  }
}
