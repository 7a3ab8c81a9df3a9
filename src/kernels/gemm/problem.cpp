// src/kernels/gemm/problem.cpp - matrix products: validity, reference, bound
#include "ptxgen/kernels/gemm/problem.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "kernels/parts/activation.hpp"
#include "kernels/parts/refusal.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr double kRounding = 0x1p-24;
// The largest slope of silu (1.0998) and of both forms of gelu (1.1290).
constexpr double kMaxSlope = 1.13;

// "<member> is <value>; <rule>".
void demand(bool holds, std::string_view member, const std::string& value,
            const std::string& rule) {
  if (holds) return;
  Error error(Stage::Build, "bad-problem", format_text("{} is {}; {}", member, value, rule));
  error.kernel = "gemm";
  throw error.refresh();
}

void demand_range(std::string_view member, std::uint64_t value, std::uint64_t min,
                  std::uint64_t max) {
  demand(value >= min && value <= max, member, std::to_string(value),
         format_text("it may be {} to {}", min, max));
}

void demand_type(std::string_view member, ElementType type) {
  demand(type <= ElementType::bf16, member, std::string(to_string(type)),
         "it may be f32, f16 or bf16");
}

void demand_pitch(std::string_view member, std::uint64_t pitch, std::uint64_t row) {
  demand(
      pitch >= row && pitch <= detail::kMaxGemmPitch, member, std::to_string(pitch),
      format_text("it may be 0 or {}, the elements of a row, to {}", row, detail::kMaxGemmPitch));
}

void demand_alignment(std::string_view member, std::uint32_t alignment) {
  demand(std::has_single_bit(alignment), member, format_text("{} B", alignment),
         "it may be a power of two");
}

// B in a type of its own.
void demand_blocks(const GemmProblem& problem) {
  if (!problem.b) return;
  const ElementType type = problem.type_b();
  const std::string name(to_string(type));
  demand(std::ranges::any_of(kGemmTypesOfB, [&](const auto& word) { return word.value == type; }),
         "b", name, "it may be f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k or q6_k");
  const std::uint32_t values = info(type).block_values;
  if (values == 1) return;
  demand(problem.transpose_b, "transpose_b", "false",
         format_text("with a B of {} it can only be true: blocks are parts of rows along k", name));
  const auto of_blocks = [&](std::string_view member, std::uint64_t value) {
    demand(
        value % values == 0, member, std::to_string(value),
        format_text("with a B of {} it may be a multiple of {}, the values of a block: pad A and "
                    "B with zeros",
                    name, values));
  };
  of_blocks("k", problem.k);
  of_blocks("ldb", problem.ldb);
  of_blocks("stride_b", problem.stride_b);
}

double activated(double x, GemmActivation activation) {
  switch (activation) {
    case GemmActivation::None:
      return x;
    case GemmActivation::Silu:
      return x / (1 + std::exp(-x));
    case GemmActivation::Gelu:
      return x * exact_erf_gate(x);
    case GemmActivation::GeluByTanh:
      return x * exact_tanh_gate(x);
  }
  return x;
}

// One row of C in one matrix of the batch.
class ReferenceRow {
 public:
  ReferenceRow(const GemmProblem& problem, const HostOperands& host, std::uint64_t matrix,
               std::uint64_t row, double min_b)
      : p_(problem), sums_(problem.n), magnitudes_(problem.n) {
    const std::vector<double>& a = host.input("a");
    const std::vector<double>& b = host.input("b");
    const std::uint64_t a_first = matrix * p_.stride_a + row * (p_.transpose_a ? 1 : p_.pitch_a());
    const std::uint64_t a_step = p_.transpose_a ? p_.pitch_a() : 1;
    const std::uint64_t b_first = matrix * p_.stride_b;
    const std::uint64_t b_step = p_.transpose_b ? 1 : p_.pitch_b();
    const std::uint64_t b_column = p_.transpose_b ? p_.pitch_b() : 1;
    for (std::uint64_t i = 0; i < p_.k; ++i) {
      const double left = a[a_first + i * a_step];
      for (std::uint64_t j = 0; j < p_.n; ++j) {
        const double right = b[b_first + i * b_step + j * b_column];
        sums_[j] += left * right;
        magnitudes_[j] += std::abs(left) * std::max(std::abs(right), min_b);
      }
    }
  }
  /// The output at j, from what was there; with the magnitude of its terms.
  [[nodiscard]] std::pair<double, double> output(const HostOperands& host, double old,
                                                 std::uint64_t at, std::uint64_t j) const {
    double value = sums_[j];
    double magnitude = magnitudes_[j];
    const auto add = [&](double term) {
      value += term;
      magnitude += std::abs(term);
    };
    if (p_.scaled) {
      const double alpha = host.number("alpha");
      value *= alpha;
      magnitude *= std::abs(alpha);
      add(host.number("beta") * old);
    }
    if (p_.bias) add(host.input("bias")[j]);
    value = activated(value, p_.activation);
    if (p_.residual) add(host.input("residual")[at]);
    return {value, magnitude};
  }

 private:
  const GemmProblem& p_;
  std::vector<double> sums_, magnitudes_;
};

}  // namespace

void check(const GemmProblem& problem) {
  constexpr std::uint64_t kMaxSize = 0x7fffffff;
  demand_range("m", problem.m, 1, kMaxSize);
  demand_range("n", problem.n, 1, kMaxSize);
  demand_range("k", problem.k, 1, kMaxSize);
  demand_range("batch", problem.batch, 1, 65535);
  demand(
      std::ranges::any_of(kGemmTypes, [&](const auto& word) { return word.value == problem.type; }),
      "type", std::string(to_string(problem.type)), "it may be f32, f16, bf16 or e4m3");
  demand_type("c", problem.c);
  demand_blocks(problem);
  demand_pitch("lda", problem.pitch_a(), problem.row_a());
  demand_pitch("ldb", problem.pitch_b(), problem.row_b());
  demand_pitch("ldc", problem.pitch_c(), problem.n);
  const std::uint64_t matrix = (problem.m - 1) * problem.pitch_c() + problem.n;
  demand(problem.batch == 1 || problem.step_c() >= matrix, "stride_c",
         std::to_string(problem.stride_c),
         format_text("it may be 0 or at least {}, so that the matrices of the batch are disjoint",
                     matrix));
  demand_alignment("alignment", problem.alignment);
  demand_alignment("c_alignment", problem.c_alignment);
}

std::string to_text(const GemmProblem& p) {
  std::string text = format_text("{} {}x{}x{}", to_string(p.type), p.m, p.n, p.k);
  if (p.type_b() != p.type) {
    text = format_text("{} * {} {}x{}x{}", to_string(p.type), to_string(p.type_b()), p.m, p.n, p.k);
  }
  if (p.transpose_a || p.transpose_b) {
    text = format_text("{}{} {}", p.transpose_a ? 't' : 'n', p.transpose_b ? 't' : 'n', text);
  }
  const auto number = [&](std::string_view name, std::uint64_t value, std::uint64_t usual) {
    if (value != usual) text += format_text(" {} {}", name, value);
  };
  number("batch", p.batch, 1);
  number("lda", p.pitch_a(), p.row_a());
  number("ldb", p.pitch_b(), p.row_b());
  number("ldc", p.pitch_c(), p.n);
  number("stride_a", p.stride_a, 0);
  number("stride_b", p.stride_b, 0);
  number("stride_c", p.stride_c, 0);
  if (p.c != ElementType::f32) text += format_text(" c {}", to_string(p.c));
  if (p.scaled) text += " scaled";
  if (p.bias) text += " bias";
  if (p.activation != GemmActivation::None) {
    text += format_text(" {}", kGemmActivations[static_cast<std::size_t>(p.activation)].name);
  }
  if (p.residual) text += " residual";
  number("alignment", p.alignment, 16);
  number("c_alignment", p.c_alignment, 16);
  return text;
}

namespace detail {

void refuse_eight_bits(const GemmProblem& problem, std::string_view kernel) {
  if (problem.type != ElementType::e4m3) return;
  refuse_build(kernel, "bad-problem", nullptr,
               format_text("type is e4m3, which {} does not have; take gemm_mma (sm_89 and newer) "
                           "or gemm_wgmma (sm_90a)",
                           kernel));
}

void check_eight_bits(const GemmProblem& problem, std::string_view kernel) {
  if (problem.type != ElementType::e4m3) return;
  if (problem.type_b() != problem.type) {
    refuse_build(kernel, "bad-problem", nullptr,
                 format_text("type is e4m3 with a B of {}; tensor cores multiply it with a B of "
                             "e4m3: convert one of them",
                             to_string(problem.type_b())));
  }
  if (!problem.transpose_a && problem.transpose_b) return;
  refuse_build(kernel, "bad-problem", nullptr,
               format_text("type is e4m3 with A as {} and B as {}; tensor cores multiply 8-bit "
                           "elements that are adjacent along k: store A as [m x k] and B as "
                           "[n x k] (ta = 0, tb = 1)",
                           problem.transpose_a ? "[k x m]" : "[m x k]",
                           problem.transpose_b ? "[n x k]" : "[k x n]"));
}

void check_gemm_operands(const GemmProblem& problem, const GemmOperands& operands) {
  if (problem.scaled || (operands.alpha == 1 && operands.beta == 0)) return;
  Error error(Stage::Launch, "arguments",
              "alpha is not 1 or beta not 0, but the problem is not scaled; set "
              "GemmProblem::scaled");
  error.kernel = "gemm";
  throw error.refresh();
}

KernelKey gemm_key(const GemmProblem& p, std::uint64_t plan) noexcept {
  const auto at = [](auto value, unsigned bit) { return static_cast<std::uint64_t>(value) << bit; };
  const auto log2 = [](std::uint32_t alignment) {
    return static_cast<std::uint64_t>(std::countr_zero(alignment | 16u));
  };
  const std::uint32_t type =
      p.type == ElementType::e4m3 ? 3 : static_cast<std::uint32_t>(p.type);  // two bits
  const std::uint64_t options =
      at(type, 0) | at(p.c, 2) | at(p.transpose_a, 4) | at(p.transpose_b, 5) | at(p.scaled, 6) |
      at(p.bias, 7) | at(p.residual, 8) | at(p.activation, 9) | log2(p.alignment) << 11 |
      log2(p.c_alignment) << 14 | (p.type_b() == p.type ? 0 : at(p.type_b(), 17) + at(1, 17));
  KernelKey key;
  key.values = {at(p.n, 32) | p.k,
                p.pitch_a(),
                p.pitch_b(),
                p.pitch_c() | options << 32,
                p.stride_a | p.stride_b << 40,
                p.stride_c | p.stride_b >> 24 << 40};
  key.plan = plan;
  return key;
}

void gemm_reference(const GemmProblem& p, HostOperands& host, double min_b) {
  HostOperands::Operand& c = host["c"];
  c.magnitude.resize(c.values.size());
  for (std::size_t i = 0; i < c.values.size(); ++i) c.magnitude[i] = std::abs(c.values[i]);
  for (std::uint64_t matrix = 0; matrix < p.batch; ++matrix) {
    for (std::uint64_t row = 0; row < p.m; ++row) {
      const ReferenceRow sums(p, host, matrix, row, min_b);
      for (std::uint64_t j = 0; j < p.n; ++j) {
        const std::uint64_t at = matrix * p.step_c() + row * p.pitch_c() + j;
        std::tie(c.values[at], c.magnitude[at]) = sums.output(host, c.values[at], at, j);
      }
    }
  }
}

// The steps of the epilogue: a product, a fused one and three sums, then the activation.
ErrorBound gemm_bound(const GemmProblem& problem, double sum) {
  double relative = sum + 5 * kRounding;
  if (problem.activation != GemmActivation::None) {
    const std::string_view function = problem.activation == GemmActivation::Silu   ? "sigmoid"
                                      : problem.activation == GemmActivation::Gelu ? "erf"
                                                                                   : "tanh";
    relative =
        relative * kMaxSlope + (math_bound(function, Accuracy::Precise).ulp + 6) * 2 * kRounding;
  }
  return {.relative = relative, .absolute = 1e-36};
}

KernelCost gemm_cost(const GemmProblem& p) noexcept {
  const std::uint64_t outputs = std::uint64_t{p.m} * p.n * p.batch;
  const std::uint64_t a = std::uint64_t{p.m} * p.k * (p.stride_a == 0 ? 1 : p.batch);
  const std::uint64_t b = std::uint64_t{p.n} * p.k * (p.stride_b == 0 ? 1 : p.batch);
  const std::uint64_t more = (p.scaled ? 1u : 0u) + (p.residual ? 1u : 0u);
  return {.bytes_read = a * bytes(p.type) + bytes(p.type_b(), b) +
                        (outputs * more + (p.bias ? p.n : 0u)) * bytes(p.c),
          .bytes_written = outputs * bytes(p.c),
          .flops = 2 * outputs * p.k};
}

}  // namespace detail

}  // namespace ptxgen::inline v0
