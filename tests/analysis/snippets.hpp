// tests/analysis/snippets.hpp - modules around a few lines of PTX
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/ptx.hpp"

namespace ptxgen::test {

/// A kernel `k` with that body and registers %p %h %r %rd %f %fd, parameters n (u32) and
/// a (u64), shared memory `tile`; `head` is between the parameters and the body.
[[nodiscard]] inline ptx::Module kernel(std::string_view body, std::string_view head = {}) {
  std::string text = R"(.version 8.7
.target sm_90
.address_size 64
.global .u32 counter;
.const .u32 table[4] = {1, 2, 3, 4};
.visible .entry k(.param .u32 n, .param .u64 a) )";
  text += head;
  text += R"(
{
  .reg .pred %p<20>;
  .reg .b16 %h<20>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<20>;
  .reg .f32 %f<20>;
  .shared .b32 tile[64];
)";
  text += body;
  text += "}\n";
  ptx::Module module = ptx::parse(text);
  // The declarations are statements as well; tests count from the first one of the body.
  auto& statements = module.functions[0].body;
  std::erase_if(statements, [](const ptx::Instruction& s) {
    return s.kind == ptx::StatementKind::Variable && s.line <= 14;
  });
  return module;
}

}  // namespace ptxgen::test
