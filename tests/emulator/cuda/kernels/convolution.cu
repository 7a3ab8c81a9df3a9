// tests/emulator/cuda/kernels/convolution.cu - convolution and pooling of a network
struct Layer {
  int channels, height, width, filters, size, stride, padding;
};

extern "C" __global__ void convolution(const float* in, const float* weights, const float* bias,
                                       float* out, Layer l) {
  const int oh = (l.height + 2 * l.padding - l.size) / l.stride + 1;
  const int ow = (l.width + 2 * l.padding - l.size) / l.stride + 1;
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int f = blockIdx.z;
  if (x >= ow || y >= oh) return;
  float sum = bias[f];
  for (int c = 0; c < l.channels; ++c)
    for (int j = 0; j < l.size; ++j)
      for (int i = 0; i < l.size; ++i) {
        const int sx = x * l.stride + i - l.padding, sy = y * l.stride + j - l.padding;
        if (sx < 0 || sy < 0 || sx >= l.width || sy >= l.height) continue;
        sum += in[(c * l.height + sy) * l.width + sx] *
               weights[((f * l.channels + c) * l.size + j) * l.size + i];
      }
  out[(f * oh + y) * ow + x] = sum > 0 ? sum : 0;
}

extern "C" __global__ void max_pool(const float* in, float* out, unsigned char* which, int height,
                                    int width) {
  const int x = threadIdx.x, y = blockIdx.x, c = blockIdx.y;
  const float* p = in + (c * height + 2 * y) * width + 2 * x;
  const float v[4] = {p[0], p[1], p[width], p[width + 1]};
  int best = 0;
  for (int i = 1; i < 4; ++i)
    if (v[i] > v[best]) best = i;
  const int at = (c * (height / 2) + y) * (width / 2) + x;
  out[at] = v[best];
  which[at] = static_cast<unsigned char>(best);
}
