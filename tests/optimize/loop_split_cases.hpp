// tests/optimize/loop_split_cases.hpp - small kernels with loops, and what splitting says
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx.hpp"

namespace ptxgen::inline v0::loop_split_cases {

struct SplitResult {
  std::string reasons;   // of all decisions, in order
  std::string messages;  // a line each
  std::string text;      // PTX
};

inline optimize::PassOptions plain() {
  optimize::PassOptions options;
  options.passes = {"loop_split"};
  options.explain = true;
  return options;
}

inline SplitResult split(ptx::Module module, const optimize::PassOptions& options = plain()) {
  const optimize::PipelineReport report = optimize::run_passes(module, options);
  SplitResult result;
  for (const optimize::Decision& decision : report.passes[0].decisions) {
    if (!result.reasons.empty()) result.reasons += " ";
    result.reasons += decision.reason;
    result.messages += decision.message + "\n";
  }
  result.text = ptx::print(module);
  // Whatever was done, a second run finds nothing left, in the text too.
  ptx::Module again = ptx::parse(result.text);
  CHECK_FALSE(optimize::run_passes(again, options).changed());
  return result;
}

inline ptx::Module kernel(std::string_view body) {
  std::string text = R"(.version 8.4
.target sm_90
.address_size 64
.extern .func (.param .b32 result) helper(.param .b32 x);
.visible .entry k(.param .u64 out, .param .u32 n, .param .u32 m)
{
  .reg .pred %p<10>;
  .reg .b16 %h<4>;
  .reg .b32 %r<30>;
  .reg .b64 %rd<10>;
  .shared .b32 tile[64];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  ld.param.u32 %r2, [m];
  mov.u32 %r3, 0;
)";
  text += body;
  text += "}\n";
  return ptx::parse(text);
}

inline SplitResult split(std::string_view body, const optimize::PassOptions& options = plain()) {
  return split(kernel(body), options);
}

// A loop over 0 .. n-1 of %r3 around a body.
inline std::string over_n(std::string_view body, std::string_view type = "u32") {
  std::string t(type);
  return "setp.le." + t + " %p1, %r1, %r3;\n@%p1 bra END;\nTOP:\n" + std::string(body) +
         "add.s32 %r3, %r3, 1;\nsetp.lt." + t + " %p2, %r3, %r1;\n@%p2 bra TOP;\nEND:\nret;\n";
}

inline constexpr std::string_view kGuarded =
    "setp.lt.u32 %p5, %r3, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n";

inline std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace ptxgen::inline v0::loop_split_cases
