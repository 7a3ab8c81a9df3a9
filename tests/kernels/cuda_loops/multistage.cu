// tests/kernels/cuda_loops/multistage.cu - mma.sync fed by a ring of cp.async copies
// C[m x n] = A[m x k] B[n x k]^T, f16 with sums in f32. A block of four warps computes 64 x 64
// outputs in steps of 32 terms; k is a multiple of 32. Rows outside the matrices are copied as
// zeros. The 16-byte pieces of a row are permuted by the row, so that ldmatrix has no conflicts.

constexpr int kTile = 64, kTerms = 32, kStages = 3;

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Piece `piece` (of four) of row `row`, in bytes.
__device__ unsigned place(unsigned row, unsigned piece) {
  return row * kTerms * 2 + (piece ^ (row >> 1 & 3)) * 16;
}

__device__ void copy(unsigned to, const void* from, bool inside) {
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}

__device__ void load_matrices(unsigned (&r)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

__device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128)
    multistage(float* c, const unsigned short* a, const unsigned short* b, int m, int n, int k) {
  __shared__ __align__(128) unsigned char tiles[kStages][2][kTile * kTerms * 2];
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const unsigned warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  const int steps = k / kTerms;

  const auto request = [&](int step) {
    if (step < steps) {
      for (int i = 0; i < 2; ++i) {
        const unsigned row = thread / 4 + 32 * i, piece = thread % 4;
        const long term = step * kTerms + piece * 8;
        const long of_a = row0 + row < m ? row0 + row : 0;
        const long of_b = column0 + row < n ? column0 + row : 0;
        copy(shared_address(tiles[step % kStages][0]) + place(row, piece), a + of_a * k + term,
             row0 + row < m);
        copy(shared_address(tiles[step % kStages][1]) + place(row, piece), b + of_b * k + term,
             column0 + row < n);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  float sums[2][4][4] = {};
  for (int i = 0; i < kStages - 1; ++i) request(i);
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    request(step + kStages - 1);
    const unsigned at_a = shared_address(tiles[step % kStages][0]);
    const unsigned at_b = shared_address(tiles[step % kStages][1]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned left[2][4], right[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        load_matrices(left[i], at_a + place(warp_row + 16 * i + lane % 16, 2 * half + lane / 16));
        const unsigned row = warp_column + 16 * i + lane % 8 + lane / 16 * 8;
        load_matrices(right[i], at_b + place(row, 2 * half + lane / 8 % 2));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          multiply(sums[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int e = 0; e < 4; ++e) {
        const int row = row0 + warp_row + 16 * i + lane / 4 + e / 2 * 8;
        const int column = column0 + warp_column + 8 * j + lane % 4 * 2 + e % 2;
        if (row < m && column < n) c[static_cast<long>(row) * n + column] = sums[i][j][e];
      }
    }
  }
}
