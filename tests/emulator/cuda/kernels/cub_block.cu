// tests/emulator/cuda/kernels/cub_block.cu - blocks and warps that work together through CUB
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

template <cub::BlockReduceAlgorithm A>
__device__ void reduce(const int* in, int n, int* out) {
  using Reduce = cub::BlockReduce<int, 128, A>;
  __shared__ typename Reduce::TempStorage storage;
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += in[i];
  const int total = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) atomicAdd(out, total);
}
extern "C" __global__ void cub_reduce(const int* in, int n, int* out) {
  reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(in, n, out);
  reduce<cub::BLOCK_REDUCE_RAKING>(in, n, out + 1);
  reduce<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(in, n, out + 2);
}
template <cub::BlockScanAlgorithm A>
__device__ void scan(const int* in, int* out) {
  using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
  using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using Scan = cub::BlockScan<int, 128, A>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } s;
  int items[4];
  Load(s.load).Load(in + blockIdx.x * 512, items);
  __syncthreads();
  int total;
  Scan(s.scan).ExclusiveSum(items, items, total);
  __syncthreads();
  Store(s.store).Store(out + blockIdx.x * 512, items);
  __syncthreads();
}
extern "C" __global__ void cub_scan(const int* in, int* a, int* b, int* c) {
  scan<cub::BLOCK_SCAN_RAKING>(in, a);
  scan<cub::BLOCK_SCAN_RAKING_MEMOIZE>(in, b);
  scan<cub::BLOCK_SCAN_WARP_SCANS>(in, c);
}
extern "C" __global__ void cub_sort(const unsigned* keys, const int* values, unsigned* keys_out,
                                    int* values_out) {
  using Sort = cub::BlockRadixSort<unsigned, 128, 4, int>;
  __shared__ typename Sort::TempStorage s;
  unsigned k[4];
  int v[4];
  const int first = blockIdx.x * 512;
  cub::LoadDirectBlocked(threadIdx.x, keys + first, k);
  cub::LoadDirectBlocked(threadIdx.x, values + first, v);
  Sort(s).SortBlockedToStriped(k, v);
  cub::StoreDirectStriped<128>(threadIdx.x, keys_out + first, k);
  cub::StoreDirectStriped<128>(threadIdx.x, values_out + first, v);
}
extern "C" __global__ void cub_histogram(const unsigned char* in, unsigned* out) {
  using H = cub::BlockHistogram<unsigned char, 128, 4, 256, cub::BLOCK_HISTO_SORT>;
  __shared__ typename H::TempStorage s;
  __shared__ unsigned h[256];
  unsigned char k[4];
  cub::LoadDirectStriped<128>(threadIdx.x, in + blockIdx.x * 512, k);
  H(s).Histogram(k, h);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 128) atomicAdd(&out[i], h[i]);
}
struct Different {
  __device__ bool operator()(float a, float b) const { return a != b; }
};
extern "C" __global__ void cub_warp(const float* in, float* sums, float* scans, int* heads) {
  using R = cub::WarpReduce<float, 16>;
  using S = cub::WarpScan<float>;
  __shared__ typename R::TempStorage r[8];
  __shared__ typename S::TempStorage s[4];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float sum = R(r[threadIdx.x / 16]).Sum(in[i]);
  if (threadIdx.x % 16 == 0) sums[i / 16] = sum;
  float scan;
  S(s[threadIdx.x / 32]).InclusiveSum(in[i], scan);
  scans[i] = scan;
  using D = cub::BlockDiscontinuity<float, 128>;
  __shared__ typename D::TempStorage d;
  int flag[1];
  float x[1] = {in[i]};
  D(d).FlagHeads(flag, x, Different());
  heads[i] = flag[0];
}
