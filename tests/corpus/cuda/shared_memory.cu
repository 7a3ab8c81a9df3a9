// tests/corpus/cuda/shared_memory.cu - static, dynamic and aligned shared memory with barriers
// Exercises: .shared arrays with .align, extern .shared, bar.sync with id and count, bar.red,
// st/ld.shared.v2/.v4, cvta.shared, cvta.to.shared, address arithmetic, ld.volatile.shared,
// volatile.

struct __align__(16) Tile {
  float values[16][17];
  unsigned char tags[3];
  double corner;
};

extern __shared__ float4 dynamic_tile[];

extern "C" __global__ void transpose(float* out, const float* in, int width, int height) {
  __shared__ float tile[32][33];
  const int x = blockIdx.x * 32 + threadIdx.x;
  const int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  __syncthreads();
  const int tx = blockIdx.y * 32 + threadIdx.x;
  const int ty = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (tx < height && ty + j < width)
      out[(ty + j) * height + tx] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void dynamic_vectors(float4* out, const float4* in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) dynamic_tile[i] = in[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float4 v = dynamic_tile[n - 1 - i];
    v.w += v.x;
    out[i] = v;
  }
  float2* halves = reinterpret_cast<float2*>(dynamic_tile);
  halves[threadIdx.x ^ 1].y = 0.0f;
}

extern "C" __global__ void struct_tile(double* out, const float* in) {
  __shared__ Tile tile;
  __shared__ int count;
  __shared__ volatile int flag;
  if (threadIdx.x == 0) {
    count = 0;
    flag = 1;
    tile.corner = 2.5;
    tile.tags[1] = 'q';
  }
  __syncthreads();
  tile.values[threadIdx.x & 15][threadIdx.x >> 4] = in[threadIdx.x];
  atomicAdd(&count, tile.tags[1] == 'q' ? 2 : 1);
  const int votes = __syncthreads_count(in[threadIdx.x] > 0.0f);
  const int all = __syncthreads_and(in[threadIdx.x] < 8.0f);
  const int any = __syncthreads_or(in[threadIdx.x] < -8.0f);
  while (flag == 0) {
  }
  out[threadIdx.x] = tile.corner * count + votes + all - any + tile.values[3][threadIdx.x & 15];
}

__device__ __noinline__ float generic_read(const float* p, int i) { return p[i] + p[i + 1]; }

extern "C" __global__ void generic_into_shared(float* out, int n) {
  __shared__ float buffer[256];
  buffer[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  const float* p = n > 4 ? buffer : out;
  out[threadIdx.x] =
      generic_read(p, n) + __isShared(p) + __isGlobal(p) + __isLocal(p) + __isConstant(p);
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(buffer));
  float direct;
  asm volatile("ld.shared.f32 %0, [%1 + 16];" : "=f"(direct) : "r"(address));
  out[threadIdx.x + n] = direct;
}

extern "C" __global__ void named_barriers(float* data) {
  __shared__ float box[64];
  if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    box[threadIdx.x] = data[threadIdx.x];
    asm volatile("bar.arrive 2, 128;" ::: "memory");
  } else {
    asm volatile("barrier.sync 2, 128;" ::: "memory");
    data[threadIdx.x] = box[threadIdx.x - 64];
  }
  asm volatile("barrier.cta.sync.aligned 3;" ::: "memory");
}
