// tests/emulator/cuda/kernels/integer64.cu - wide multiplication, division, bit counting, carries
extern "C" __global__ void integer64(const unsigned long long* a, const unsigned long long* b,
                                     unsigned long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long x = a[i], y = b[i] == 0 ? 1 : b[i];
  const long long sx = static_cast<long long>(x), sy = static_cast<long long>(y);
  unsigned long long* r = out + i * 16;
  r[0] = x / y;
  r[1] = x % y;
  r[2] = static_cast<unsigned long long>(sy == -1 ? 0 : sx / sy);
  r[3] = static_cast<unsigned long long>(sy == -1 ? 0 : sx % sy);
  r[4] = __umul64hi(x, y);
  r[5] = static_cast<unsigned long long>(__mul64hi(sx, sy));
  r[6] = static_cast<unsigned long long>(__clzll(sx));
  r[7] = static_cast<unsigned long long>(__popcll(x));
  r[8] = __brevll(x);
  r[9] = static_cast<unsigned long long>(__ffsll(sx));
  r[10] = x << (y & 63) | x >> (63 - (y & 63));
  r[11] = static_cast<unsigned long long>(sx >> (y & 63));
  const unsigned __int128 wide = static_cast<unsigned __int128>(x) * y + b[i];
  r[12] = static_cast<unsigned long long>(wide >> 64);
  r[13] = static_cast<unsigned long long>(wide);
  const unsigned __int128 less = wide - x;
  r[14] = static_cast<unsigned long long>(less >> 64) + (x < y);
  r[15] = x % 1000000007ull;
}

extern "C" __global__ void integer32(const unsigned* a, const unsigned* b, unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned x = a[i], y = b[i] == 0 ? 1 : b[i];
  const int sx = static_cast<int>(x), sy = static_cast<int>(y);
  unsigned* r = out + i * 16;
  r[0] = x / y + x % y * 3;
  r[1] = sy == -1 ? 0 : static_cast<unsigned>(sx / sy) + static_cast<unsigned>(sx % sy) * 3;
  r[2] = __umulhi(x, y);
  r[3] = static_cast<unsigned>(__mulhi(sx, sy));
  r[4] = __byte_perm(x, y, 0x2745);
  r[5] = __funnelshift_l(x, y, y & 63);
  r[6] = __funnelshift_rc(x, y, y & 63);
  r[7] = __sad(sx, sy, 5u);
  r[8] = __usad(x, y, 9u);
  r[9] = static_cast<unsigned>(__hadd(sx, sy));
  r[10] = __urhadd(x, y);
  r[11] = static_cast<unsigned>(__mul24(sx, sy));
  r[12] = __brev(x) ^ __clz(sx);
  r[13] = static_cast<unsigned>(__dp4a(sx, sy, 11));
  r[14] = __dp2a_lo(x, y, 13u);
  r[15] = x / 7u + x % 10u + static_cast<unsigned>(sx / 13 + sx % 9);
}
