// tests/corpus/cuda/math.cu - float and double math with slow paths, rounding modes and
// approximations Exercises: div.rn/.approx/.full, sqrt.rn/.rz, rcp, rsqrt, sin/cos/ex2/lg2.approx,
// fma with all roundings, cvt of every pair and rounding, testp-free classification, copysign,
// double slow paths with local tables.

extern "C" __global__ void float_math(float* out, const float* in) {
  const float x = in[0], y = in[1], z = in[2];
  out[0] = sinf(x) + cosf(y);
  out[1] = expf(x) * logf(y) - powf(x, z);
  out[2] = x / y + sqrtf(z) + rsqrtf(x) + cbrtf(y);
  out[3] = __sinf(x) + __expf(y) + __logf(z) + __powf(x, y) + __fdividef(x, z) + __tanf(z);
  out[4] = __fadd_rd(x, y) + __fmul_ru(y, z) + __fmaf_rz(x, y, z) + __fdiv_rd(x, y) + __fsqrt_ru(z);
  out[5] = floorf(x) + ceilf(y) + truncf(z) + rintf(x) + roundf(y) + nearbyintf(z);
  out[6] = fminf(x, y) + fmaxf(y, z) + fabsf(z) + copysignf(x, y) + fdimf(x, z) + hypotf(x, y);
  out[7] = __saturatef(x) + tanhf(y) + erff(z) + __frcp_rn(x) + __frsqrt_rn(y) + tgammaf(z);
  int e;
  out[8] = frexpf(x, &e) + ldexpf(y, e) + fmodf(x, y) + remainderf(y, z) + scalbnf(x, 3);
  out[9] = static_cast<float>(isinf(x) + isnan(y) + signbit(z) + isfinite(x));
  float s, c;
  sincosf(x, &s, &c);
  out[10] = s * c + __int_as_float(__float_as_int(x) ^ 1);
  float t;
  asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x));
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(s) : "f"(y));
  asm("{ .reg .pred q; testp.subnormal.f32 q, %1; selp.f32 %0, 1.0, -2.5e-3, q; }"
      : "=f"(c)
      : "f"(z));
  asm("add.ftz.sat.f32 %0, %0, 0f3F800000;" : "+f"(t));
  out[11] = s + c + t;
}

extern "C" __global__ void double_math(double* out, const double* in) {
  const double x = in[0], y = in[1], z = in[2];
  out[0] = x / y + sqrt(z) + rsqrt(x);
  out[1] = sin(x) + exp(z);
  out[2] = log(x) + pow(y, z);
  out[3] = floor(x) + ceil(y) + trunc(z) + rint(x) + round(y);
  out[4] = fma(x, y, z) + __dadd_rz(x, y) + __dmul_rd(y, z) + __ddiv_ru(x, z) + __dsqrt_rz(x);
  out[5] = fmin(x, y) + fmax(y, z) + fabs(z) + __drcp_rn(y);
  out[6] = __hiloint2double(__double2hiint(x), __double2loint(y));
  out[7] = 1.0 / 3.0 + 1e300 * x - 2.2250738585072014e-308;
}

extern "C" __global__ void conversions(void* out, float f, double d, int i, unsigned u, long long l,
                                       unsigned long long ul) {
  float* fo = static_cast<float*>(out);
  double* dd = static_cast<double*>(out) + 64;
  int* io = static_cast<int*>(out) + 256;
  long long* lo = static_cast<long long*>(out) + 256;
  fo[0] = static_cast<float>(i);
  fo[1] = static_cast<float>(u) + __int2float_rz(i) + __uint2float_ru(u) + __ll2float_rd(l);
  fo[2] = static_cast<float>(d) + __double2float_rd(d) + static_cast<float>(ul);
  dd[0] = f;
  dd[1] =
      static_cast<double>(l) + static_cast<double>(ul) + static_cast<double>(u) + __ll2double_ru(l);
  io[0] = static_cast<int>(f) + __float2int_rn(f) + __float2int_rd(f) + __float2int_ru(f);
  io[1] = static_cast<int>(d) + __double2int_rn(d);
  io[2] = static_cast<int>(__float2uint_rz(f) + __double2uint_rd(d));
  lo[3] = static_cast<long long>(f) + static_cast<long long>(d) + __float2ll_rn(f);
  lo[4] = static_cast<long long>(static_cast<unsigned long long>(d) + __float2ull_ru(f));
  static_cast<short*>(out)[1] = static_cast<short>(f);
  static_cast<unsigned char*>(out)[9] = static_cast<unsigned char>(i);
  static_cast<signed char*>(out)[11] = static_cast<signed char>(l);
  io[5] = static_cast<signed char>(i) + static_cast<unsigned short>(u) + static_cast<short>(l);
  lo[6] = static_cast<long long>(i) * u + static_cast<unsigned>(l);
}
