// examples/first_kernel.cpp - a kernel of your own, with both API levels
//
// Row-wise softmax: out[r][i] = exp(x[r][i] - max(x[r])) / sum(exp(x[r] - max)), one warp per row.
// Uses the high-level API (operators, if_, for_, warp_reduce) and the instruction-level API (k.ex2,
// k.ld with a cache operator). Prints the PTX.
#include <cstdio>
#include <limits>

#include "ptxgen/builder.hpp"

namespace {

using namespace ptxgen;

constexpr unsigned kWarp = 32;
constexpr float kLog2E = 1.44269504f;

// x and out: rows x columns f32, row-major. One block of 32 threads per row.
void softmax(KernelBuilder& k, Ptr<f32> out, Ptr<f32> x, Value<u32> columns) {
  k.required_threads(kWarp);
  const Value<u32> lane = k.tid_x();
  const Value<u32> row = k.ctaid_x();
  const Value<u64> start = k.mul_wide(row, columns);  // 64 bits: rows * columns may pass 2^32
  const Ptr<f32> input = x + start;
  const Ptr<f32> output = out + start;

  // A Var changes; what is read from it into a Value is a copy.
  auto max = k.var<f32>(-std::numeric_limits<float>::infinity());
  k.for_(lane, columns, kWarp, [&](Value<u32> i) { k.max_inplace(max, input[i]); });
  const Value<f32> row_max = k.warp_reduce(max, Reduce::Max);

  auto sum = k.var<f32>(0.0f);
  const auto power = [&](Value<u32> i) {
    const Value<f32> distance = k.ld(input + i, {.cache = Cache::ca}) - row_max;
    return k.ex2(distance * kLog2E);
  };
  k.for_(lane, columns, kWarp, [&](Value<u32> i) { sum += power(i); });
  const Value<f32> scale = rcp(k.warp_reduce(sum));

  k.for_(lane, columns, kWarp, [&](Value<u32> i) { output[i] = power(i) * scale; });
}

}  // namespace

int main() {
  try {
    const auto kernel = build_kernel(
        "softmax", "sm_89",
        params(param<Ptr<f32>>("out"), param<Ptr<f32>>("x"), param<u32>("columns")), softmax);
    std::fputs(kernel.ptx().c_str(), stdout);

    // The kernel's type is its signature: another argument, or another order, does not compile.
    const auto arguments =
        kernel.pack(DeviceAddress<f32>{0x7f0000000000}, DeviceAddress<f32>{0}, std::uint32_t{1000});
    std::printf("// %s takes %zu arguments in %zu bytes\n", std::string(kernel.name()).c_str(),
                arguments.count(), arguments.size());
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
