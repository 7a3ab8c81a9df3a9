// tests/optimize/fusion_cases.cpp - a few statements, and what a fusion makes of them
#include "fusion_cases.hpp"

namespace ptxgen::test {

std::string fusion_kernel(std::string_view body) {
  std::string text =
      ".version 8.7 .target sm_100 .address_size 64 .visible .entry k(.param .u64 out) { "
      ".reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<16>; .reg .b64 %rd<16>; "
      ".reg .f32 %f<16>; .reg .f64 %fd<16>; .reg .b64 %q<8>;\n";
  text += body;
  text += "ret; }\n";
  return text;
}

std::string Fused::body() const {
  std::string text;
  const ptx::Function& function = module.functions.back();
  for (const ptx::Instruction& s : function.body) {
    if (s.kind == ptx::StatementKind::Variable || s.is(ptx::Op::ret)) continue;
    text += (text.empty() ? "" : "\n") + ptx::print(module, function, s);
  }
  return text;
}

std::string Fused::reasons() const {
  std::string text;
  for (const optimize::Decision& d : report.decisions) {
    text += text.empty() ? "" : " ";
    text += d.fired ? "+" : "";
    text += d.reason;
  }
  return text;
}

std::string Fused::message() const {
  REQUIRE(report.decisions.size() == 1);
  return report.decisions[0].message;
}

std::string fused_body(const Fused& result) {
  CHECK(result.reasons() == "+fused");
  return result.body();
}

std::string refusal_of(const Fused& result, std::string_view body, std::string_view reason) {
  INFO(body);
  CHECK(result.reasons() == reason);
  CHECK_FALSE(result.report.changed);
  return result.message();
}

Fused run_pass(ptx::Module module, std::string_view pass, optimize::PassOptions options) {
  options.passes = {std::string(pass)};
  options.explain = true;
  const std::string before = ptx::print(module);
  INFO(before);
  for (const Finding& finding : ptx::verify(module)) {
    INFO(to_text(finding));
    REQUIRE(finding.severity != Severity::Error);
  }
  Fused result;
  result.report = optimize::run_passes(module, options).passes.at(0);
  result.module = std::move(module);
  const std::string after = ptx::print(result.module);
  INFO(after);
  CHECK(result.report.changed == (result.report.fired() != 0));
  CHECK(result.report.changed == (before != after));
  CHECK(result.report.fired() + result.report.refused() == result.report.decisions.size());

  ptx::Module again = result.module;
  const optimize::PassReport second = optimize::run_passes(again, options).passes.at(0);
  CHECK_FALSE(second.changed);
  CHECK(ptx::print(again) == after);
  return result;
}

Fused run_pass(std::string_view body, std::string_view pass, optimize::PassOptions options) {
  return run_pass(ptx::parse(fusion_kernel(body)), pass, std::move(options));
}

}  // namespace ptxgen::test
