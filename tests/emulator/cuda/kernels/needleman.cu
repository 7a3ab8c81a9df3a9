// tests/emulator/cuda/kernels/needleman.cu - Needleman-Wunsch alignment along anti-diagonals
#define N 32

// One tile of N x N scores; tiles of one anti-diagonal at a time.
extern "C" __global__ void needleman(const char* a, const char* b, int* score, int length,
                                     int diagonal, int gap) {
  __shared__ int tile[N + 1][N + 1];
  const int tiles = length / N, t = threadIdx.x;
  const int ty = max(0, diagonal - tiles + 1) + blockIdx.x, tx = diagonal - ty;
  const int row0 = ty * N, column0 = tx * N, stride = length + 1;
  tile[0][t + 1] = score[row0 * stride + column0 + t + 1];
  tile[t + 1][0] = score[(row0 + t + 1) * stride + column0];
  if (t == 0) tile[0][0] = score[row0 * stride + column0];
  const char mine = a[row0 + t];
  __syncthreads();
  for (int wave = 0; wave < 2 * N - 1; ++wave) {
    const int c = wave - t;
    if (c >= 0 && c < N) {
      const int match = tile[t][c] + (mine == b[column0 + c] ? 3 : -2);
      tile[t + 1][c + 1] = max(match, max(tile[t][c + 1], tile[t + 1][c]) - gap);
    }
    __syncthreads();
  }
  for (int r = 1; r <= N; ++r) score[(row0 + r) * stride + column0 + t + 1] = tile[r][t + 1];
}
