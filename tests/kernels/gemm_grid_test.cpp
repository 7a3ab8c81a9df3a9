// tests/kernels/gemm_grid_test.cpp - the GEMM kernels on a grid of shapes
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>

#include "kernels/gemm_sizes.hpp"
#include "launcher/rig.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr int kEveryDay = 8;
constexpr int kFull = 2400;
// Multiply-adds of a point: two sizes of 1000 only in a full run, all three never.
constexpr std::uint64_t kEveryDayWork = 600'000;
constexpr std::uint64_t kFullWork = 17'000'000;

using Values = std::map<std::string, std::uint64_t>;

struct Point {
  const KernelDescription* kernel = nullptr;
  Values values;
  std::uint32_t offset = 0;
  bool in_place = false;
};

template <class List>
auto one_of(Dice& dice, const List& list) {
  return list[dice.bits() % std::size(list)];
}

std::uint64_t max_of(const KernelDescription& kernel, std::string_view name) {
  return kernel.parameters[parameter_index(kernel, name)].max;
}

void draw_sizes(Dice& dice, Values& v) {
  do {
    for (const char* name : {"m", "n", "k"}) v[name] = one_of(dice, kGemmSizes);
  } while (v["m"] * v["n"] * v["k"] > (full() ? kFullWork : kEveryDayWork));
  v["ta"] = dice.bits() % 2;
  v["tb"] = dice.bits() % 2;
  const auto pitch = [&](const char* name, std::uint64_t row, bool always) {
    if (always || one_in(dice, 4)) v[name] = row + dice.bits() % 17;
  };
  pitch("lda", v["ta"] != 0 ? v["m"] : v["k"], false);
  pitch("ldb", v["tb"] != 0 ? v["k"] : v["n"], false);
  pitch("ldc", v["n"], false);
  if (!one_in(dice, 6)) return;
  v["batch"] = 2 + dice.bits() % 2;
  const auto matrix = [&](const char* ld, std::uint64_t row, std::uint64_t rows) {
    return (v.count(ld) != 0 ? v[ld] : row) * rows + dice.bits() % 9;
  };
  const bool ta = v["ta"] != 0;
  const bool tb = v["tb"] != 0;
  if (one_in(dice, 2)) {
    v["stride_a"] = ta ? matrix("lda", v["m"], v["k"]) : matrix("lda", v["k"], v["m"]);
  }
  if (one_in(dice, 2)) {
    v["stride_b"] = tb ? matrix("ldb", v["k"], v["n"]) : matrix("ldb", v["n"], v["k"]);
  }
  if (one_in(dice, 2)) v["stride_c"] = matrix("ldc", v["n"], v["m"]);
}

// B in a type of its own: the words of `b` from 1 on are f32, f16, bf16, then block formats, the
// last three with blocks of 256.
void draw_type_of_b(Dice& dice, Values& v, bool tensor_cores) {
  constexpr std::uint64_t kFirstBlocks = 4, kFirstLarge = 9, kEnd = 12;
  v["b"] = 1 + dice.bits() % (kEnd - 1);
  if (v["b"] < kFirstBlocks && !tensor_cores) return;
  for (const char* name : {"lda", "ldb", "stride_a", "stride_b"}) v.erase(name);
  const std::uint64_t step = v["b"] < kFirstLarge ? 32 : 256;
  v["k"] = step * (1 + dice.bits() % (step == 32 ? 8 : 2));
  v["m"] = std::min<std::uint64_t>(v["m"], 130);
  v["n"] = std::min<std::uint64_t>(v["n"], 130);
  v["tb"] = 1;
  if (one_in(dice, 3)) v["ldb"] = v["k"] + step * (1 + dice.bits() % 2);
  if (tensor_cores) v["type"] = 1 + dice.bits() % 2;
}

Point draw(Dice& dice) {
  Point point;
  const bool tensor_cores = !one_in(dice, 5);
  const char* plain = one_in(dice, 2) ? "gemm_naive" : "gemm_tiled";
  point.kernel = &kernel_named(tensor_cores ? "gemm_mma" : plain);
  Values& v = point.values;
  draw_sizes(dice, v);
  const bool any_type = !tensor_cores || one_in(dice, 4);
  v["type"] = any_type ? dice.bits() % 3 : 1 + dice.bits() % 2;
  if (one_in(dice, 3)) draw_type_of_b(dice, v, tensor_cores);
  v["c"] = dice.bits() % 3;
  for (const char* name : {"scaled", "bias", "residual"}) v[name] = one_in(dice, 3) ? 1 : 0;
  v["activation"] = one_in(dice, 3) ? dice.bits() % 4 : 0;
  if (point.kernel->name == "gemm_mma") {
    v["tile"] = dice.bits() % (max_of(*point.kernel, "tile") + 1);
    v["stages"] = 2 + dice.bits() % 4;
    // Five stages of the largest tile of f32 do not fit a block.
    if (v["type"] == 0 && v["stages"] == 5) v["stages"] = 4;
    // Splits divide the steps, which are complete.
    if (one_in(dice, 6) && v["b"] == 0) {
      v["splits"] = 2 + dice.bits() % 3;
      v["k"] = 32 * v["splits"] * (1 + dice.bits() % 3);
      for (const char* name : {"lda", "ldb", "stride_a", "stride_b"}) v.erase(name);
    }
    // Rounds of all stages, of e4m3 twice as long.
    if (one_in(dice, 4) && v["b"] == 0 && v.count("splits") == 0) {
      v["blocks"] = 1 + dice.bits() % 9;
      v["k"] = 32 * v["stages"] * (1 + dice.bits() % 3);
      for (const char* name : {"lda", "ldb", "stride_a", "stride_b"}) v.erase(name);
    }
    v["align"] = one_in(dice, 2) ? 0 : dice.bits() % 4;
    v["c_align"] = one_in(dice, 2) ? 0 : dice.bits() % 4;
  } else if (point.kernel->name != "gemm_naive") {
    v["tile"] = dice.bits() % (max_of(*point.kernel, "tile") + 1);
  }
  point.offset = dice.bits() % 2;
  point.in_place = one_in(dice, 3);
  return point;
}

std::vector<std::uint64_t> values_of(const Point& point) {
  std::vector<std::uint64_t> values = point.kernel->default_values();
  for (const auto& [name, value] : point.values) {
    values[parameter_index(*point.kernel, name)] = value;
  }
  return values;
}

std::string text_of(const Point& point) {
  std::string text(point.kernel->name);
  for (const auto& [name, value] : point.values) {
    text += " " + name + "=" + std::to_string(value);
  }
  return text + " offset " + std::to_string(point.offset) + (point.in_place ? " in place" : "");
}

}  // namespace

namespace {

// A quarter of the grid.
void check_grid(std::uint32_t quarter) {
  const Rig rig;
  Dice dice(seed() + quarter);
  const int points = kSanitized ? 1 : count(kEveryDay, kFull) / 4;
  std::map<std::string, std::pair<int, double>> worst;  // launches, largest error / bound
  for (int i = 0; i < points; ++i) {
    const Point point = draw(dice);
    const std::vector<std::uint64_t> values = values_of(point);
    const Verification result = verify(rig.launcher, rig.context, *point.kernel, values,
                                       {.seed = static_cast<std::uint64_t>(i),
                                        .offset = point.offset,
                                        .in_place = point.in_place});
    INFO(text_of(point) << ", seed " << seed() << ": " << result.error_text() << result.first_wrong
                        << (result.findings.empty() ? "" : result.findings[0]));
    CHECK(result.ok());
    auto& [launches, share] = worst[std::string(point.kernel->name)];
    ++launches;
    share = std::max(share, result.worst_share);
  }
  for (const auto& [name, of_kernel] : worst) {
    WARN(name << ": " << of_kernel.first << " points, largest error / bound " << of_kernel.second);
    if (of_kernel.first > 5) CHECK(of_kernel.second > 0);
  }
}

}  // namespace

// In parts of less than ten minutes each in a full run.
TEST_CASE("GEMM kernels are within their bounds on the grid, without a finding, 1 of 4") {
  check_grid(0);
}
TEST_CASE("GEMM kernels are within their bounds on the grid, without a finding, 2 of 4") {
  check_grid(1);
}
TEST_CASE("GEMM kernels are within their bounds on the grid, without a finding, 3 of 4") {
  check_grid(2);
}
TEST_CASE("GEMM kernels are within their bounds on the grid, without a finding, 4 of 4") {
  check_grid(3);
}
