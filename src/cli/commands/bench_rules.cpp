// src/cli/commands/bench_rules.cpp - work models, validation and CSV rows of bench
#include "cli/commands/bench_rules.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "support/half.hpp"

namespace ptxgen::cli {

namespace {

struct OpRow {
  BenchOp op;
  std::string_view name;
  unsigned arrays;  // read or written
};
constexpr OpRow kOps[] = {
    {BenchOp::Vadd, "vadd", 3}, {BenchOp::Copy, "copy", 2}, {BenchOp::FmaRpt, "fma_rpt", 2}};

struct TypeRow {
  BenchType type;
  std::string_view name;
  unsigned bytes;
};
constexpr TypeRow kTypes[] = {
    {BenchType::F32, "fp32", 4}, {BenchType::F16, "fp16", 2}, {BenchType::Bf16, "bf16", 2}};

const OpRow& row(BenchOp op) { return kOps[static_cast<std::size_t>(op)]; }
const TypeRow& row(BenchType type) { return kTypes[static_cast<std::size_t>(type)]; }

bool same_number(float got, float expected) {
  return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected) ||
         (std::isnan(got) && std::isnan(expected));
}

void count(Validation& result, std::uint64_t index, bool right) {
  ++result.compared;
  if (right) return;
  if (result.wrong++ == 0) result.first_wrong = index;
}

void measure(Validation& result, float got, float expected) {
  double error = 0;
  if (!same_number(got, expected)) error = std::abs(double{got} - double{expected});
  if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
  result.max_error = std::max(result.max_error, error);
}

std::string number(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
std::string number(float value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string csv_quoted(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) result.append(c == '"' ? 2 : 1, c);
  return result + "\"";
}

}  // namespace

std::string_view to_string(BenchOp op) noexcept { return row(op).name; }
std::string_view to_string(BenchType type) noexcept { return row(type).name; }
unsigned element_bytes(BenchType type) noexcept { return row(type).bytes; }

std::optional<BenchOp> bench_op(std::string_view name) noexcept {
  for (const OpRow& op : kOps) {
    if (op.name == name) return op.op;
  }
  return {};
}
std::optional<BenchType> bench_type(std::string_view name) noexcept {
  for (const TypeRow& type : kTypes) {
    if (type.name == name) return type.type;
  }
  return {};
}

std::uint64_t bytes_model(const BenchWork& work) noexcept {
  return row(work.op).arrays * work.n * element_bytes(work.type);
}
std::uint64_t flops_model(const BenchWork& work) noexcept {
  switch (work.op) {
    case BenchOp::Vadd:
      return work.n;
    case BenchOp::Copy:
      return 0;
    case BenchOp::FmaRpt:
      return 2 * work.k * work.n;
  }
  return 0;
}

double achieved(std::uint64_t per_launch, std::uint64_t launches, double total_ms) noexcept {
  if (!(total_ms > 0)) return 0;
  const double total = static_cast<double>(per_launch) * static_cast<double>(launches);
  return total / (total_ms / 1e3) / 1e9;
}

std::vector<std::uint64_t> validation_indices(std::uint64_t n) {
  if (n == 0) return {};
  const std::uint64_t checks = std::min(n, kValidateSamples);
  std::vector<std::uint64_t> indices{0};
  if (checks > 2) {
    const std::uint64_t stride = std::max<std::uint64_t>(1, (n - 1) / (checks - 1));
    for (std::uint64_t j = 1; j < checks; ++j) indices.push_back(std::min(n - 1, j * stride));
  }
  // The stride is rounded down, so the last index may be below n - 1.
  if (indices.back() != n - 1) indices.push_back(n - 1);
  return indices;
}

std::vector<std::uint64_t> all_indices(std::uint64_t n) {
  std::vector<std::uint64_t> indices(n);
  std::iota(indices.begin(), indices.end(), std::uint64_t{0});
  return indices;
}

Validation validate_copy(std::span<const std::uint32_t> in, std::span<const std::uint32_t> out,
                         std::span<const std::uint64_t> indices) {
  Validation result;
  for (const std::uint64_t i : indices) {
    count(result, i, out[i] == in[i]);
    if (out[i] != in[i]) measure(result, std::bit_cast<float>(out[i]), std::bit_cast<float>(in[i]));
  }
  return result;
}

Validation validate_vadd(std::span<const float> a, std::span<const float> b,
                         std::span<const float> c, std::span<const std::uint64_t> indices) {
  Validation result;
  for (const std::uint64_t i : indices) {
    const float expected = a[i] + b[i];
    count(result, i, same_number(c[i], expected));
    measure(result, c[i], expected);
  }
  return result;
}

Validation validate_vadd(BenchType type, std::span<const std::uint16_t> a,
                         std::span<const std::uint16_t> b, std::span<const std::uint16_t> c,
                         std::span<const std::uint64_t> indices) {
  const auto value = type == BenchType::F16 ? f16_to_float : bf16_to_float;
  const auto rounded = type == BenchType::F16 ? float_to_f16 : float_to_bf16;
  Validation result;
  for (const std::uint64_t i : indices) {
    // Rounding to f32 in between does not change the result: f32 has more than twice the digits.
    const float expected = value(rounded(value(a[i]) + value(b[i])));
    const float got = value(c[i]);
    count(result, i, same_number(got, expected));
    measure(result, got, expected);
  }
  return result;
}

bool within_tolerance(float got, float expected) noexcept {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (std::isinf(got) || std::isinf(expected)) return got == expected;
  return std::abs(double{got} - double{expected}) <= kTolerance + kTolerance * std::abs(expected);
}

Validation validate_fma(std::span<const float> in, std::span<const float> out, std::int32_t k,
                        float a, float b, std::span<const std::uint64_t> indices) {
  Validation result;
  for (const std::uint64_t i : indices) {
    float expected = in[i];
    for (std::int32_t t = 0; t < k; ++t) expected = std::fmaf(expected, a, b);
    count(result, i, within_tolerance(out[i], expected) && same_number(out[i], expected));
    measure(result, out[i], expected);
  }
  return result;
}

std::string_view csv_header() noexcept {
  return "device,driver,ptx_hash,op,dtype,n,block,grid,iters,warmup,time_ms_total,bytes_model,"
         "flops_model,achieved_gbs,achieved_gflops,validated,max_error,timing_source,"
         "fma_k,fma_a,fma_b\n";
}

std::string csv_line(const BenchRow& row) {
  const std::uint64_t bytes = bytes_model(row.work);
  const std::uint64_t flops = flops_model(row.work);
  const bool fma = row.work.op == BenchOp::FmaRpt;
  const std::string fields[] = {csv_quoted(row.device),
                                csv_quoted(row.driver),
                                csv_quoted(row.ptx_hash),
                                std::string(to_string(row.work.op)),
                                std::string(to_string(row.work.type)),
                                std::to_string(row.work.n),
                                std::to_string(row.block),
                                std::to_string(row.grid),
                                std::to_string(row.iters),
                                std::to_string(row.warmup),
                                number(row.time_ms_total),
                                std::to_string(bytes),
                                std::to_string(flops),
                                number(achieved(bytes, row.iters, row.time_ms_total)),
                                number(achieved(flops, row.iters, row.time_ms_total)),
                                row.validation.ok() ? "true" : "false",
                                number(row.validation.max_error),
                                row.timing_source,
                                fma ? std::to_string(row.work.k) : "",
                                fma ? number(row.fma_a) : "",
                                fma ? number(row.fma_b) : ""};
  std::string line;
  for (const std::string& field : fields) {
    if (&field != std::begin(fields)) line += ',';
    line += field;
  }
  return line + "\n";
}

}  // namespace ptxgen::cli
