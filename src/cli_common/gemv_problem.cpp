// src/cli_common/gemv_problem.cpp - a GEMV as `-p` describes it
#include "cli_common/gemv_problem.hpp"

#include <cstdint>

#include "cli_common/numbers.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

constexpr std::uint64_t kMax32 = 0xffffffff;
// A matrix of 2^32 rows then still has a size in 64 bits.
constexpr std::uint64_t kMaxLda = std::uint64_t{1} << 31;

constexpr std::string_view kParameters =
    "k (1..4294967295), n (1..4294967295), layout (T or R), dtype (f32, f16 or bf16), lda "
    "(1..2147483648)";

constexpr std::string_view kAnyParameters =
    "k (1..4294967295), n (1..4294967295), layout (T or R), dtype (f32, f16, bf16, or with layout "
    "R "
    "q4_0 to q6_k), repacked (0 or 1), lda (1..2147483648)";

struct Setting {
  std::string name;
  std::string value;
};

Setting parts(const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError(format_text("-p expects NAME=VALUE, not '{}'", setting));
  }
  return {setting.substr(0, equals), setting.substr(equals + 1)};
}

std::uint64_t number_of(const Setting& setting, std::uint64_t max) {
  return whole_number("-p " + setting.name + "=", setting.value, 1, max);
}

GemvLayout layout_of(const Setting& setting) {
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    if (setting.value == (layout == GemvLayout::T ? "T" : "R")) return layout;
  }
  throw UsageError(format_text("-p layout={}: expects T or R", setting.value));
}

void check_lda(const GemvProblem& problem) {
  const bool by_column = problem.layout == GemvLayout::T;
  const std::uint64_t row = by_column ? problem.n : problem.k;
  if (problem.lda == 0 || problem.lda >= row) return;
  throw UsageError(format_text("-p lda={}: a row has {} ({}); expects at least that", problem.lda,
                               count_text(row, "element"),
                               by_column ? "n, layout T" : "k, layout R"));
}

void check_blocks(const GemvProblem& problem) {
  if (!is_block_format(problem.weights) && !problem.repacked) return;
  const std::string_view type = to_string(problem.weights);
  if (problem.repacked && (repacked_fields(problem.weights).empty() || problem.lda != 0)) {
    throw UsageError(
        format_text("-p repacked=1: rows of q4_0, q4_1, q5_0, q5_1, q8_0 or q6_k, without lda, not "
                    "of {}",
                    type));
  }
  if (problem.layout != GemvLayout::R)
    throw UsageError(
        format_text("-p dtype={}: only with -p layout=R: blocks are parts of rows", type));
  const std::uint32_t values = info(problem.weights).block_values;
  if (problem.k % values == 0 && problem.lda % values == 0) return;
  throw UsageError(format_text("-p dtype={}: k and lda are multiples of {}, the values of a block",
                               type, values));
}

}  // namespace

ElementType gemv_type(std::string_view option, std::string_view name) {
  if (name == "f32") return ElementType::f32;
  if (name == "f16") return ElementType::f16;
  if (name == "bf16") return ElementType::bf16;
  throw UsageError(format_text("{}: expects f32, f16 or bf16", option));
}

ElementType gemv_weights(std::string_view option, std::string_view name) {
  std::string names;
  for (const Word<ElementType>& word : kGemvWeights) {
    if (word.name == name) return word.value;
    names += (names.empty() ? "" : ", ") + std::string(word.name);
  }
  throw UsageError(format_text("{}: expects one of {}", option, names));
}

GemvProblem gemv_problem(const std::vector<std::string>& settings, GemvWeights weights) {
  GemvProblem problem;
  for (const std::string& text : settings) {
    const Setting setting = parts(text);
    if (setting.name == "k") {
      problem.k = static_cast<std::uint32_t>(number_of(setting, kMax32));
    } else if (setting.name == "n") {
      problem.n = static_cast<std::uint32_t>(number_of(setting, kMax32));
    } else if (setting.name == "lda") {
      problem.lda = number_of(setting, kMaxLda);
    } else if (setting.name == "repacked" && weights == GemvWeights::All) {
      problem.repacked = whole_number("-p repacked=", setting.value, 0, 1) == 1;
    } else if (setting.name == "layout") {
      problem.layout = layout_of(setting);
    } else if (setting.name == "dtype") {
      problem.weights = weights == GemvWeights::All ? gemv_weights("-p " + text, setting.value)
                                                    : gemv_type("-p " + text, setting.value);
    } else {
      throw UsageError(format_text("gemv has no parameter '{}'; it has: {}", setting.name,
                                   weights == GemvWeights::All ? kAnyParameters : kParameters));
    }
  }
  check_lda(problem);
  check_blocks(problem);
  return problem;
}

}  // namespace ptxgen::cli
