// tests/emulator/cuda/kernels/switch_table.cu - a small machine whose instructions are a switch
extern "C" __global__ void switch_table(const unsigned char* code, int length, const int* in,
                                        int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a = static_cast<unsigned>(in[i]), b = 1;
  for (int pc = 0, steps = 0; pc < length && steps < 400; ++steps) {
    switch (code[pc++]) {
      case 0:
        a += b;
        break;
      case 1:
        a -= 3;
        break;
      case 2:
        a *= 5;
        break;
      case 3:
        b ^= a;
        break;
      case 4:
        a = a << 7 | a >> 25;
        break;
      case 5: {
        const unsigned kept = a;
        a = b;
        b = kept;
        break;
      }
      case 6:
        if (a & 1) ++pc;
        break;
      case 7:
        b += static_cast<unsigned>(pc);
        break;
      case 8:
        a = ~a;
        break;
      case 9:
        b >>= 1;
        [[fallthrough]];
      case 10:
        a ^= 0x5bd1e995u;
        break;
      case 11:
        if ((a & 15) == 3) pc = length;
        break;
      case 200:
        a += 200;
        break;
      default:
        a += 17;
        break;
    }
  }
  out[i] = static_cast<int>(a ^ b);
}
