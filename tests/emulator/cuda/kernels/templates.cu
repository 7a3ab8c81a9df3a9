// tests/emulator/cuda/kernels/templates.cu - templates, structures by value, lambdas, static loops
struct Small {
  char tag;
  short step;
};
struct Config {
  Small small[3];
  double scale;
  float offset[5];
  int* out;
  unsigned char last;
};

template <int N, class T>
struct Polynomial {
  T c[N];
  __device__ T operator()(T x) const {
    T sum = c[N - 1];
#pragma unroll
    for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
    return sum;
  }
};

template <class F>
__device__ int twice(F f, int x) {
  return f(f(x));
}

extern "C" __global__ void templates(Config config, Polynomial<4, int> p, const int* in,
                                     char2 shift) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const Small& s = config.small[i % 3];
  const int k = static_cast<int>(config.offset[i % 5]) + s.step * s.tag;
  const int y = twice([=](int x) { return p(x % 8) + k; }, in[i]);
  config.out[i] = y + static_cast<int>(config.scale * 4) + config.last + shift.x * shift.y;
}

template <class T, int kCount>
__device__ void rotate(T (&values)[kCount]) {
  const T first = values[0];
#pragma unroll
  for (int i = 0; i + 1 < kCount; ++i) values[i] = values[i + 1];
  values[kCount - 1] = first;
}

extern "C" __global__ void rotations(const short4* in, short4* out, long2 add) {
  short4 v = in[threadIdx.x];
  short values[4] = {v.x, v.y, v.z, v.w};
  for (int i = 0; i < 3; ++i) rotate(values);
  out[threadIdx.x] = make_short4(values[0] + add.x, values[1] - add.y, values[2],
                                 static_cast<short>(values[3] * 2));
}
