// tests/optimize/fusion_cases.hpp - a few statements, and what a fusion makes of them
#pragma once

#include <catch2/catch.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx.hpp"

namespace ptxgen::test {

/// A kernel `k` for sm_100 with that body and registers %p (predicates), %h (16 bits), %r, %rd, %f,
/// %fd and %q (f32x2). The first line of the body is line 2 of the text.
[[nodiscard]] std::string fusion_kernel(std::string_view body);

struct Fused {
  ptx::Module module;
  optimize::PassReport report;
  /// The statements of the first function, one a line, without declarations and `ret`.
  [[nodiscard]] std::string body() const;
  /// `reason` of every decision, separated by spaces; those that fired with a `+`.
  [[nodiscard]] std::string reasons() const;
  /// The message of the only decision.
  [[nodiscard]] std::string message() const;
};

/// The body, of which one candidate is fused and no other is there.
[[nodiscard]] std::string fused_body(const Fused& result);
/// The message of the only candidate, which is refused for that reason: nothing is changed.
std::string refusal_of(const Fused& result, std::string_view body, std::string_view reason);

/// Runs one pass on a module and checks what holds for every case: the verifier accepts what comes
/// out, the decisions agree with the counts and with `changed`, and a second run changes nothing.
[[nodiscard]] Fused run_pass(ptx::Module module, std::string_view pass,
                             optimize::PassOptions options = {});
[[nodiscard]] Fused run_pass(std::string_view body, std::string_view pass,
                             optimize::PassOptions options = {});

[[nodiscard]] inline Fused fma_fusion(std::string_view body, optimize::PassOptions options = {}) {
  return run_pass(body, "fma_fusion", std::move(options));
}
[[nodiscard]] inline Fused mad_fusion(std::string_view body, optimize::PassOptions options = {}) {
  return run_pass(body, "mad_fusion", std::move(options));
}

}  // namespace ptxgen::test
