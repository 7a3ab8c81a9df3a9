// tests/corpus/cuda/control_flow.cu - branches, loops, jump tables, early exits
// Exercises: brx.idx / .branchtargets, selp, setp with and/or, predicated bra, bra.uni, nested
// loops, do-while, goto, unroll pragmas (.pragma "nounroll"), return from loops, lambdas and
// templates.

template <int kStep, typename T>
__device__ T walk(const T* in, int n) {
  T sum = T(0);
#pragma unroll 4
  for (int i = 0; i < n; i += kStep) sum += in[i];
  return sum;
}

extern "C" __global__ void dense_switch(int* out, const int* ops, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = ops[2 * i + 1];
  switch (ops[2 * i]) {
    case 0:
      x = x * x + 3;
      break;
    case 1:
      x = __popc(x) - i;
      break;
    case 2:
      out[n + i] = x;
      [[fallthrough]];
    case 3:
      x ^= 0x55aa55aa;
      break;
    case 4:
      x = x / (i | 1);
      break;
    case 5:
      x = x % 17;
      break;
    case 6:
      atomicAdd(&out[2 * n], x);
      break;
    case 7:
      x = out[(x & 1023)];
      break;
    case 8:
      x = min(x, 100);
      break;
    case 9:
      x = __clz(x);
      __syncwarp();
      break;
    case 11:
      return;
    default:
      x = -x;
      break;
  }
  out[i] = x;
}

extern "C" __global__ void sparse_switch(long long* out, long long key) {
  long long r = 0;
  switch (key) {
    case 17:
      r = 1;
      break;
    case 100000:
      r = out[1];
      break;
    case -5:
      r = out[2] * 3;
      break;
    case 0x123456789abcLL:
      r = out[3] - 1;
      break;
    default:
      r = key >> 3;
  }
  out[threadIdx.x] = r;
}

extern "C" __global__ void loops(float* out, const float* in, int n, int m) {
  float acc = 0.0f;
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    for (int j = i; j < m; j += 3) {
      const float v = in[i * m + j];
      if (v < 0.0f) continue;
      if (v > 1e30f) goto done;
      acc = fmaf(v, v, acc);
      if (j == 77 || (i == 5 && acc > 4.0f)) break;
    }
  }
done:
  int k = n;
  do {
    acc *= 0.5f;
    k >>= 1;
  } while (k > 0 && acc > 1.0f);
  while (true) {
    acc += out[k];
    if (++k > m) break;
    if (isnan(acc)) return;
  }
  out[threadIdx.x] = acc;
}

extern "C" __global__ void lambdas_and_templates(float* out, const float* in, const double* din,
                                                 int n) {
  const auto scale = [n](float v) { return v * static_cast<float>(n); };
  const auto pick = [&](int i) { return i & 1 ? scale(in[i]) : in[i] - 1.0f; };
  float r = walk<1>(in, n) + walk<7>(in + 1, n) + static_cast<float>(walk<2>(din, n));
  for (int i = threadIdx.x; i < n; i += blockDim.x) r += pick(i);
  out[threadIdx.x] = r;
}

extern "C" __global__ void short_circuit(int* out, const int* a, const int* b, bool flag, char c,
                                         short s) {
  const int t = threadIdx.x;
  const bool p = a[t] < b[t] && (flag || a[t] == 3) && !(b[t] & 1);
  const bool q = (c == 'x') != (s > 9);
  out[t] = p ? (q ? 1 : 2) : (q ^ flag ? 3 : 4);
  out[t + 32] = p & q;
}
