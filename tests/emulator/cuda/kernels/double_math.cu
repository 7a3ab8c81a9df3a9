// tests/emulator/cuda/kernels/double_math.cu - double functions of the device library
extern "C" __global__ void double_math(const double* in, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double x = in[i], p = fabs(x) + 0.25;
  double* r = out + i * 20;
  r[0] = sin(x);
  r[1] = cos(x);
  r[2] = tan(x);
  r[3] = exp(x);
  r[4] = log(p);
  r[5] = pow(p, x / 4);
  r[6] = erf(x);
  r[7] = sqrt(p);
  r[8] = rsqrt(p);
  r[9] = cbrt(x);
  r[10] = atan2(x, p);
  r[11] = sinh(x / 2);
  r[12] = tanh(x);
  r[13] = fma(x, p, -x);
  r[14] = x / p;
  r[15] = fmod(x * 100, p);
  r[16] = rint(x) + trunc(x) * 10 + floor(x) * 100 + ceil(x) * 1000;
  r[17] = asin(x / (p + fabs(x)));
  r[18] = log1p(p) + expm1(x / 8);
  r[19] = lgamma(p);
}

// Rounding modes by intrinsics: exact results.
extern "C" __global__ void rounded(const double* a, const double* b, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double* r = out + i * 8;
  r[0] = __dadd_ru(a[i], b[i]) - __dadd_rd(a[i], b[i]);
  r[1] = __dmul_rz(a[i], b[i]);
  r[2] = __ddiv_ru(a[i], b[i]);
  r[3] = __fma_rd(a[i], b[i], 1.0);
  r[4] = __dsqrt_ru(fabs(a[i]));
  r[5] = __double2int_ru(a[i]) + 0.5 * __double2ll_rd(b[i]);
  r[6] = __double2float_rz(a[i]);
  r[7] = __hiloint2double(__double2hiint(a[i]) ^ 0x80000000, __double2loint(a[i]));
}
