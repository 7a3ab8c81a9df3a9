// tests/launcher/parity_mutants.cpp - batched kernels with one defect each
#include "parity_mutants.hpp"

#include <catch2/catch.hpp>
#include <regex>
#include <string>

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"

namespace ptxgen::test {

namespace {

/// Changes the text of a kernel. A pattern that does not occur fails the test.
class Text {
 public:
  explicit Text(std::string text) : text_(std::move(text)) {}

  Text& replace(const std::string& pattern, const std::string& with) {
    const std::regex expression(pattern);
    INFO("pattern " << pattern);
    REQUIRE(std::regex_search(text_, expression));
    text_ = std::regex_replace(text_, expression, with);
    return *this;
  }
  Text& replace_first(const std::string& pattern, const std::string& with) {
    const std::regex expression(pattern);
    INFO("pattern " << pattern);
    REQUIRE(std::regex_search(text_, expression));
    text_ = std::regex_replace(text_, expression, with, std::regex_constants::format_first_only);
    return *this;
  }
  /// The same, or nothing where it does not occur.
  Text& replace_if_any(const std::string& pattern, const std::string& with) {
    text_ = std::regex_replace(text_, std::regex(pattern), with);
    return *this;
  }
  Text& declare(const std::string& registers) {
    return replace_first(R"(\n\{\n)", "\n{\n" + registers + "\n");
  }
  /// What the first group of the pattern is.
  [[nodiscard]] std::string find(const std::string& pattern) const {
    std::smatch match;
    INFO("pattern " << pattern);
    REQUIRE(std::regex_search(text_, match, std::regex(pattern)));
    return match[1];
  }
  /// The register with the address of a parameter in global memory.
  [[nodiscard]] std::string pointer(const std::string& parameter) const {
    const std::string loaded = find(R"(ld\.param\.u64 (%rd\d+), \[)" + parameter + R"(\];)");
    return find(R"(cvta\.to\.global\.u64 (%rd\d+), )" + loaded + ";");
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Rows
// ---------------------------------------------------------------------------------------------

void without_ctaid_y(Text& text) { text.replace(R"(%ctaid\.y)", "0"); }

void one_pointer_without_row(Text& text) {
  const std::string b = text.pointer("b");
  text.replace(R"(add\.u64 (%rd\d+), )" + b + R"(, %rd\d+;)", "mov.u64 $1, " + b + ";");
}

void positions_without_row(Text& text) {
  const std::string positions = text.pointer("positions");
  text.replace(R"(mad\.wide\.u32 (%rd\d+), %r\d+, 4, )" + positions + ";",
               "mov.u64 $1, " + positions + ";");
}

void dead_m_dim(Text& text) {
  text.declare("    .reg .b32 %unused;");
  text.replace(R"(ld\.param\.u32 (%r\d+), \[m_dim\];)",
               "ld.param.u32 %unused, [m_dim];\n    mov.u32 $1, 8;");
}

void second_row_without_guard(Text& text) {
  // Code for one row has none.
  text.replace_if_any(R"(setp\.gt\.u32 (%p\d+), (%r\d+), 1;)", "setp.ge.u32 $1, $2, 0;");
}

// A warp has two outputs of each row: the third sum is the second row's first.
void rows_share_a_sum(Text& text) {
  const std::string zero = R"(mov\.f32 (?:%f\d+), 0f00000000;\n    )";
  const std::string first = text.find(R"(mov\.f32 (%f\d+), 0f00000000;)");
  const std::string third = text.find(zero + zero + R"(mov\.f32 (%f\d+), 0f00000000;)");
  text.replace(third + R"(\b)", first);
}

void results_added_to_memory(Text& text) {
  text.declare("    .reg .f32 %stale;");
  text.replace(R"(st\.global\.f32 (\[%rd\d+(?:\+\d+)?\]), (%f\d+);)",
               "ld.global.f32 %stale, $1;\n    add.rn.f32 %stale, %stale, $2;\n"
               "    st.global.f32 $1, %stale;");
}

// Structure
// ----------------------------------------------------------------------------------------

void more_parameters(Text& text) {
  text.replace_first(R"(\n\)\n)", ",\n    .param .u32 extra\n)\n");
}

void one_more_loop(Text& text) {
  text.declare("    .reg .b32 %turn;\n    .reg .pred %again;");
  text.replace_first(R"(\n    ret;)",
                     "\n    mov.u32 %turn, 0;\n$$TURN:\n    add.u32 %turn, %turn, 1;\n"
                     "    setp.lt.u32 %again, %turn, 3;\n    @%again bra $$TURN;\n    ret;");
}

void larger_array(Text& text) {
  text.replace_first(R"((\.shared \.align 16 \.f32 \w+)\[8\])", "$1[16]");
}

void wide_shared_address(Text& text) {
  text.declare("    .reg .b64 %window, %generic;");
  text.replace_first(R"(ld\.shared\.f32 (%f\d+), \[(%r\d+)\];)",
                     "cvt.u64.u32 %window, $2;\n    cvta.shared.u64 %generic, %window;\n"
                     "    ld.shared.f32 $1, [%generic];");
}

// Barriers
// -----------------------------------------------------------------------------------------

void early_exit(Text& text) {
  text.declare("    .reg .pred %early;");
  text.replace_first(R"(mov\.u32 (%r\d+), %tid\.x;)",
                     "mov.u32 $1, %tid.x;\n    setp.ge.u32 %early, $1, 200;\n    @%early exit;");
}
void without_first_barrier(Text& text) { text.replace_first(R"(    bar\.sync 0;\n)", ""); }
void without_second_barrier(Text& text) {
  text.replace_first(R"(bar\.sync 0;([^]*?)    bar\.sync 0;\n)", "bar.sync 0;$1");
}

// Decoding of q6_k
// ---------------------------------------------------------------------------------

// The factor of the sums so far becomes exp(0).
void peak_overwritten(Text& text) {
  text.replace_first(
      R"((selp\.f32 (%f\d+), 0f00000000, %f\d+, %p\d+;\n    sub\.rn\.f32 %f\d+, )%f\d+,)", "$1$2,");
}
void tail_without_guard(Text& text) { text.replace(R"(@%p\d+ ld\.global)", "ld.global"); }

void contiguous_weights(Text& text) {
  text.replace(R"(mad\.lo\.u32 (%r\d+), (%r\d+), 64, (%r\d+);)", "mad.lo.u32 $1, $2, 8, $3;");
}
void linear_low_bits(Text& text) {
  for (const char* const at : {"32:16", "36:20", "40:24", "44:28"}) {
    const std::string pair(at);
    text.replace(R"((ld\.shared\.u32 %r\d+, \[%r\d+\+))" + pair.substr(0, 2) + R"(\];)",
                 "$01" + pair.substr(3) + "];");
  }
}
// The high bits are 4 times as much as they are, not 16 times.
void high_bits_times_four(Text& text) {
  text.replace(R"(lop3\.b32 (%r\d+), (%r\d+), 808464432, (%r\d+), 234;)",
               "shr.u32 $1, $2, 2;\n    and.b32 $1, $1, 202116108;\n    add.u32 $1, $1, $3;");
}

using Change = void (*)(Text&);
template <Change kChange>
ptx::Module built(const KernelDescription& kernel, const void* spec, const ptx::Target& target) {
  Text text(ptx::print(kernel.build_of(spec, target)));
  kChange(text);
  return ptx::parse(text.text(), "mutant.ptx");
}

// Each kernel's own functions, as a description has them.
template <class K, Change kChange>
ptx::Module of(const void* spec, const ptx::Target& target) {
  return built<kChange>(kDescription<K>, spec, target);
}

constexpr ParityMutant kMutants[] = {
    {"CTAY: no row in any address", "rmsnorm", "rmsnorm", "strategy",
     "grid_y is declared, but the code shows no strategy", false, of<RmsNorm, without_ctaid_y>},
    {"CTAY: no row in any address, in y and out", "batched_swiglu", "batched_swiglu", "row offsets",
     "does not depend on %ctaid.y", false, of<BatchedSwiglu, without_ctaid_y>},
    {"CTAY: the row is missing in one address", "batched_residual_add", "batched_residual_add",
     "row offsets", "the access through b (line ", false,
     of<BatchedResidualAdd, one_pointer_without_row>},
    {"POS: all rows have the first position", "rope", "rope", "row offsets",
     "the access through positions (line ", false, of<RopeInterleaved, positions_without_row>},
    {"MDIM: m_dim is loaded, and not used", "batched_gemv", "batched_gemv q4_k", "strategy",
     "m_dim is never loaded; rows from m_dim on are neither read nor written", false,
     of<BatchedGemv, dead_m_dim>},
    {"MDIM: one row without its guard", "batched_gemv", "batched_gemv f32", "M = 2", "", true,
     of<BatchedGemv, second_row_without_guard>},
    {"two rows share a sum", "batched_gemv", "batched_gemv f32", "accumulators",
     "7 independent sums, the twin has 1; 8 rows of a pass of register_unroll have 1 each", false,
     of<BatchedGemv, rows_share_a_sum>},
    {"STATE: results are added to what the memory held", "batched_gemv", "batched_gemv f32",
     "M = 1", "", true, of<BatchedGemv, results_added_to_memory>},
    {"a parameter that the twin does not have", "rmsnorm", "rmsnorm", "parameters",
     "extra extra; extra has no counterpart in the twin", false, of<RmsNorm, more_parameters>},
    {"a loop that the twin does not have", "batched_residual_add", "batched_residual_add", "loops",
     "()()(), the twin has ()()", false, of<BatchedResidualAdd, one_more_loop>},
    {"twice the shared memory", "rmsnorm", "rmsnorm", "shared memory",
     "64 bytes, the twin has 32, 1 rows a pass", false, of<RmsNorm, larger_array>},
    {"U64SH: a generic address of shared memory", "rmsnorm", "rmsnorm", "shared addresses",
     "a generic address made by cvta", false, of<RmsNorm, wide_shared_address>},
    {"P114: threads leave before a barrier", "rmsnorm", "rmsnorm", "gates",
     "[exited-before-barrier]", false, of<RmsNorm, early_exit>},
    {"BAR1: no barrier before the sum of the warps", "rmsnorm", "rmsnorm", "gates", "[shared-race]",
     false, of<RmsNorm, without_first_barrier>},
    {"BAR2: no barrier before the next row", "rmsnorm", "rmsnorm", "gates", "[shared-race]", false,
     of<RmsNorm, without_second_barrier>},
    {"BAR1: no barrier before the next pass stages x", "batched_gemv", "batched_gemv q4_k", "gates",
     "[shared-race]", false, of<BatchedGemv, without_first_barrier>},
    {"BAR2: weights are multiplied before x is staged", "batched_gemv", "batched_gemv q4_k",
     "gates", "[shared-race]", false, of<BatchedGemv, without_second_barrier>},
    {"ALIAS: the running maximum is overwritten before it is used", "attention_decode",
     "attention_decode", "gates", "[self-subtract]", false, of<AttentionDecode, peak_overwritten>},
    {"KTAIL: the tail of a row is read without its guard", "batched_gemv", "batched_gemv f32",
     "M = 2", "differs from the twin on that row", true, of<BatchedGemv, tail_without_guard>},
    {"Q6-1: a lane has neighbours of eight", "batched_gemv", "batched_gemv q6_k", "M = 1",
     "differs from the twin on that row", true, of<BatchedGemv, contiguous_weights>},
    {"Q6-2: low bits are linear", "batched_gemv", "batched_gemv q6_k", "M = 1",
     "differs from the twin on that row", true, of<BatchedGemv, linear_low_bits>},
    {"Q6-3: ql + 4 qh", "batched_gemv", "batched_gemv q6_k", "M = 1",
     "differs from the twin on that row", true, of<BatchedGemv, high_bits_times_four>},
};

}  // namespace

std::span<const ParityMutant> parity_mutants() { return kMutants; }

ptx::Module rope_of_halves(const void* spec, const ptx::Target& target) {
  const auto& pairs = *static_cast<const RopeInterleaved*>(spec);
  const RopeNeox halves{pairs.rows,     pairs.heads,   pairs.head_size, pairs.type,
                        pairs.indirect, pairs.precise, pairs.inverse,   pairs.factors};
  Text text(halves.build(target).ptx());
  text.replace_first("rope_neox", "rope");
  return ptx::parse(text.text(), "mutant.ptx");
}

}  // namespace ptxgen::test
