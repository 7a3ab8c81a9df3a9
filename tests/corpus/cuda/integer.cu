// tests/corpus/cuda/integer.cu - integer intrinsics, carries, bit fields and video instructions
// Exercises: brev, clz, popc, bfind, bfe/bfi, prmt, dp4a/dp2a, mul.hi/wide/24, mad, sad, shf,
// add.cc/addc, lop3, 64-bit division, 128-bit arithmetic, vadd4-style SIMD, szext/bmsk, shl/shr on
// every width.

extern "C" __global__ void bits(unsigned* out, unsigned a, unsigned b, unsigned c,
                                unsigned long long l) {
  out[0] = __brev(a) + __clz(b) + __popc(c) + __ffs(a) + __popcll(l) + __clzll(l) + __ffsll(l);
  out[1] = __byte_perm(a, b, 0x3715) ^ __byte_perm(a, b, c);
  out[2] = __funnelshift_l(a, b, c) + __funnelshift_r(a, b, 7) + __funnelshift_lc(a, b, c);
  out[3] = __umulhi(a, b) + __umul24(a, b) + __mulhi(int(a), int(b)) + __mul24(int(b), 77);
  out[4] =
      __sad(int(a), int(b), c) + __usad(a, b, c) + __uhadd(a, b) + __urhadd(a, b) + __hadd(1, b);
  out[5] = (a >> 5 & 0xff) | (b << 7 & 0x7f80) | ((c >> 9) & 1);
  out[6] = a / b + a % c + a / 10 + b % 1000;
  out[7] = static_cast<unsigned>(int(a) / int(b) + int(a) % 7 + (int(c) >> 3));
  out[8] = __dp4a(int(a), int(b), int(c)) + __dp4a(a, b, c) + __dp2a_lo(int(a), int(b), int(c)) +
           __dp2a_hi(a, b, c);
  out[9] = __vadd4(a, b) + __vabsdiffu4(b, c) + __vcmpgtu4(a, c) + __vsubss2(a, b) + __vmaxs2(a, b);
  out[10] = static_cast<unsigned>(__brevll(l) >> 32) + static_cast<unsigned>(__umul64hi(l, a));
  out[11] = (a & b) | (~a & c) | (a ^ b ^ c);
  out[12] = min(a, b) + max(int(b), int(c)) + abs(int(a)) + (a == 0 ? 1 : ~b);
  unsigned r;
  asm("bfe.u32 %0, %1, 3, 9;" : "=r"(r) : "r"(a));
  asm("bfi.b32 %0, %1, %2, 8, 0x10;" : "+r"(r) : "r"(a), "r"(b));
  asm("bfind.shiftamt.u32 %0, %0;" : "+r"(r));
  asm("fns.b32 %0, %1, 0, 3;" : "=r"(out[13]) : "r"(r));
  asm("szext.wrap.u32 %0, %1, 5;" : "=r"(out[14]) : "r"(b));
  asm("bmsk.clamp.b32 %0, %1, 4U;" : "=r"(out[15]) : "r"(b));
  asm("vadd.s32.u32.s32.sat %0, %1.b0, %2.h1;" : "=r"(out[16]) : "r"(a), "r"(b));
  asm("mad.hi.u32 %0, %1, %2, %3;" : "=r"(out[17]) : "r"(a), "r"(b), "r"(c));
  asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(out[18]) : "r"(a), "r"(b), "r"(c));
  asm("set.eq.u32.u32 %0, %1, %2;" : "=r"(out[19]) : "r"(a), "r"(b));
  asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(out[20]) : "r"(a), "r"(b), "r"(c));
  asm("cnot.b32 %0, %1;" : "=r"(out[21]) : "r"(a));
}

extern "C" __global__ void wide_math(unsigned __int128* out, unsigned long long* q, long long s) {
  const unsigned __int128 a = out[0], b = out[1];
  out[2] = a + b;
  out[3] = a - b;
  out[4] = a * b;
  out[5] = (a << 77) ^ (b >> 3);
  q[0] = q[1] / q[2] + q[1] % q[3];
  q[4] = static_cast<unsigned long long>(s / static_cast<long long>(q[2]) + s % 13);
  q[5] = q[6] >> 9 | q[7] << 55;
  unsigned lo, hi;
  asm("{\n\t"
      "add.cc.u32 %0, %2, %3;\n\t"
      "addc.cc.u32 %1, %4, 0;\n\t"
      "sub.cc.u32 %0, %0, 5;\n\t"
      "subc.u32 %1, %1, 0x0;\n\t"
      "mad.lo.cc.u32 %0, %2, %3, %0;\n\t"
      "madc.hi.u32 %1, %2, %3, %1;\n\t"
      "}"
      : "=&r"(lo), "=&r"(hi)
      : "r"(unsigned(q[0])), "r"(unsigned(q[1])), "r"(unsigned(s)));
  q[8] = (static_cast<unsigned long long>(hi) << 32) | lo;
  asm("{ .reg .u64 t<3>; .reg .b32 lo, hi; mul.wide.u32 t0, %1, %2; mov.b64 {lo, hi}, t0; "
      "cvt.u64.u32 t1, hi;"
      " add.u64 t2, t1, t0; mov.b64 %0, {hi, lo}; }"
      : "=l"(q[9])
      : "r"(lo), "r"(hi));
}

extern "C" __global__ void narrow(signed char* c, unsigned short* s, bool* b) {
  const int i = threadIdx.x;
  c[i] = static_cast<signed char>(c[i] * c[i + 1] >> 3);
  s[i] = static_cast<unsigned short>(s[i] / 3u + (s[i + 1] << c[i]));
  s[i + 2] = static_cast<unsigned short>(min(s[i], s[i + 1]));
  b[i] = b[i + 1] != (c[i] > 0 && s[i] < 9);
}
