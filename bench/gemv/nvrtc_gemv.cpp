// bench/gemv/nvrtc_gemv.cpp - a plan as CUDA C++, for comparison
#include "bench/gemv/nvrtc_gemv.hpp"

namespace ptxgen::gemv_bench {

namespace {

// No headers: NVRTC needs none for this, and a machine without the toolkit's has none.
constexpr std::string_view kSource = R"cuda(
typedef unsigned int u32;
typedef unsigned long long u64;

// Weights in memory order, V of them in one load.
#if TYPE == 0
typedef float Element;
__device__ __forceinline__ float number(Element e) { return e; }
__device__ __forceinline__ Element narrow(float v) { return v; }
#elif TYPE == 1
typedef unsigned short Element;
__device__ __forceinline__ float number(Element e) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(e));
  return v;
}
__device__ __forceinline__ Element narrow(float v) {
  Element e;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(e) : "f"(v));
  return e;
}
#else
typedef unsigned short Element;
__device__ __forceinline__ float number(Element e) { return __uint_as_float((u32)e << 16); }
__device__ __forceinline__ Element narrow(float v) {
  const u32 bits = __float_as_uint(v);
  return (Element)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
#endif
#if LOAD_BYTES == 16
typedef uint4 Word;
#elif LOAD_BYTES == 8
typedef uint2 Word;
#elif LOAD_BYTES == 4
typedef u32 Word;
#else
typedef unsigned short Word;
#endif
constexpr u32 V = LOAD_BYTES / sizeof(Element);
union Load {
  Word word;
  Element e[V];
  __device__ Load() {}
};
__device__ __forceinline__ Load load(const Element* p) {
  Load made;
  made.word = __ldg(reinterpret_cast<const Word*>(p));
  return made;
}

constexpr u32 kThreads = 32 * WARPS_OUT * WARPS_K;
constexpr u32 kWarpOutputs = LAYOUT_R ? ROWS : 32 * V;
constexpr u32 kStrip = WARPS_OUT * kWarpOutputs;
constexpr u32 kWarpStep = LAYOUT_R ? 32 * V * UNROLL : UNROLL;
constexpr u32 kStep = WARPS_K * kWarpStep;
constexpr u32 kSums = LAYOUT_R ? ROWS : V;
constexpr u64 kUnits = (u64)STRIPS * STEPS;

__device__ u64 first_unit(u64 block) { return block * kUnits / BLOCKS; }
__device__ u32 block_of(u64 unit) { return (u32)(((unit + 1) * BLOCKS - 1) / kUnits); }

// One step of a warp: all its loads before the first use.
__device__ __forceinline__ void add_columns(float (&sum)[kSums], const Element* a,
                                            const Element* x, u64 row, u64 column) {
  if (row + UNROLL <= K && column + V <= N) {
    Load w[UNROLL];
    float factor[UNROLL];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) w[u] = load(a + (row + u) * LDA + column);
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) factor[u] = number(__ldg(x + row + u));
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
      for (u32 v = 0; v < V; ++v) sum[v] = fmaf(number(w[u].e[v]), factor[u], sum[v]);
    }
    return;
  }
  for (u32 u = 0; u < UNROLL && row + u < K; ++u) {
#pragma unroll
    for (u32 v = 0; v < V; ++v) {
      if (column + v < N) {
        sum[v] = fmaf(number(a[(row + u) * LDA + column + v]), number(x[row + u]), sum[v]);
      }
    }
  }
}

__device__ __forceinline__ void add_rows(float (&sum)[kSums], const Element* a, const Element* x,
                                         u64 row, u64 k0, u32 lane) {
  const u64 at = k0 + lane * V;
  if (k0 + kWarpStep <= K && row + kSums <= N) {
    Load w[kSums][UNROLL];
    Load factor[UNROLL];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
      for (u32 r = 0; r < kSums; ++r) w[r][u] = load(a + (row + r) * LDA + at + u * 32 * V);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) factor[u] = load(x + at + u * 32 * V);
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
      for (u32 r = 0; r < kSums; ++r) {
#pragma unroll
        for (u32 v = 0; v < V; ++v) {
          sum[r] = fmaf(number(w[r][u].e[v]), number(factor[u].e[v]), sum[r]);
        }
      }
    }
    return;
  }
  for (u32 u = 0; u < UNROLL; ++u) {
    for (u32 v = 0; v < V; ++v) {
      const u64 i = at + u * 32 * V + v;
      if (i >= K) continue;
#pragma unroll
      for (u32 r = 0; r < kSums; ++r) {
        if (row + r < N) sum[r] = fmaf(number(a[(row + r) * LDA + i]), number(x[i]), sum[r]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gemv_nvrtc(Element* __restrict__ y, const Element* __restrict__ a,
               const Element* __restrict__ x, float* parts, u32* tickets) {
  __shared__ float stacked[WARPS_K][kStrip];
  __shared__ u32 is_last;
  const u32 lane = threadIdx.x % 32;
  const u32 warp = threadIdx.x / 32;
  const u32 warp_out = warp % WARPS_OUT;
  const u32 warp_k = warp / WARPS_OUT;
  const u64 end = first_unit(blockIdx.x + 1);
  for (u64 unit = first_unit(blockIdx.x); unit < end;) {
    const u64 strip = unit / STEPS;
    const u64 from = unit - strip * STEPS;
    const u64 to = from + (end - unit) < STEPS ? from + (end - unit) : STEPS;
    unit += to - from;
    const u64 output = strip * kStrip + warp_out * kWarpOutputs;

    float sum[kSums];
#pragma unroll
    for (u32 i = 0; i < kSums; ++i) sum[i] = 0;
    for (u64 step = from; step < to; ++step) {
      const u64 k0 = step * kStep + warp_k * kWarpStep;
#if LAYOUT_R
      add_rows(sum, a, x, output, k0, lane);
#else
      add_columns(sum, a, x, k0, output + lane * V);
#endif
    }
#if LAYOUT_R
#pragma unroll
    for (u32 i = 0; i < kSums; ++i) {
#pragma unroll
      for (u32 apart = 16; apart != 0; apart /= 2) {
        sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], apart);
      }
      if (lane == 0) stacked[warp_k][warp_out * kWarpOutputs + i] = sum[i];
    }
#else
#pragma unroll
    for (u32 i = 0; i < kSums; ++i) {
      stacked[warp_k][warp_out * kWarpOutputs + lane * V + i] = sum[i];
    }
#endif
    __syncthreads();
    const bool whole = from == 0 && to == STEPS;
    const u32 first_block = block_of(strip * STEPS);
    const u32 contributors = block_of(strip * STEPS + STEPS - 1) - first_block + 1;
    float* const own = parts + (strip * MAX_PARTS + (blockIdx.x - first_block)) * kStrip;
    for (u32 i = threadIdx.x; i < kStrip; i += kThreads) {
      float total = stacked[0][i];
#pragma unroll
      for (u32 w = 1; w < WARPS_K; ++w) total += stacked[w][i];
      const u64 j = strip * kStrip + i;
      if (j >= N) continue;
#if ATOMIC
      if (!whole) {
        atomicAdd(&y[j], total);
        continue;
      }
#endif
      if (whole) {
        y[j] = narrow(total);
      } else {
        own[i] = total;
      }
    }
#if !ATOMIC
    if (!whole) {
      __threadfence();
      __syncthreads();
      if (threadIdx.x == 0) is_last = atomicAdd(&tickets[strip], 1u) == contributors - 1;
      __syncthreads();
      if (is_last) {
        __threadfence();
        const float* const all = parts + strip * MAX_PARTS * kStrip;
        for (u32 i = threadIdx.x; i < kStrip; i += kThreads) {
          const u64 j = strip * kStrip + i;
          if (j >= N) continue;
          float total = 0;
          for (u32 c = 0; c < contributors; ++c) total += __ldcg(all + c * kStrip + i);
          y[j] = narrow(total);
        }
        if (threadIdx.x == 0) tickets[strip] = 0;
      }
    }
#endif
    __syncthreads();
  }
}
)cuda";

std::string define(std::string_view name, std::uint64_t value) {
  return "-D" + std::string(name) + "=" + std::to_string(value);
}

}  // namespace

std::string_view nvrtc_gemv_source() noexcept { return kSource; }

GemvPlan nvrtc_plan(const GemvPlan& plan) {
  GemvPlan result = plan;
  result.path = GemvPath::Direct;
  result.chunk_steps = 0;
  result.cluster = 1;
  result.stages = 0;
  result.programmatic = false;
  return result;
}

std::vector<std::string> nvrtc_options(const GemvPlan& plan, bool atomic) {
  const GemvProblem& problem = plan.problem;
  return {define("LAYOUT_R", problem.layout == GemvLayout::R ? 1 : 0),
          define("TYPE", static_cast<std::uint64_t>(problem.weights)),
          define("LOAD_BYTES", plan.load_bytes),
          define("K", problem.k) + "ull",
          define("N", problem.n) + "ull",
          define("LDA", problem.leading_dimension()) + "ull",
          define("WARPS_OUT", plan.warps_out),
          define("WARPS_K", plan.warps_k),
          define("ROWS", plan.rows),
          define("UNROLL", plan.unroll),
          define("BLOCKS", plan.blocks) + "ull",
          define("STRIPS", plan.strips()),
          define("STEPS", plan.steps()) + "ull",
          define("MAX_PARTS", plan.max_parts()) + "ull",
          define("ATOMIC", atomic ? 1 : 0)};
}

std::uint64_t nvrtc_parts_bytes(const GemvPlan& plan) {
  if (!plan.is_split()) return 16;
  return plan.strips() * plan.max_parts() * plan.strip_outputs() * 4;
}

}  // namespace ptxgen::gemv_bench
