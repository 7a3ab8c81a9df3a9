// tests/runtime/samples.hpp - PTX texts for the runtime's tests
#pragma once

#include <string>

#include "ptxgen/runtime/assemble/assembler.hpp"

namespace ptxgen::test {

/// Two kernels: `stage` with 512 bytes of shared memory, one barrier and 64 bytes of `.const`
/// beside it, and `plain`, which stores `constant`.
inline std::string two_kernels(const std::string& target, const std::string& version,
                               const std::string& constant = "7") {
  return ".version " + version + "\n.target " + target +
         "\n.address_size 64\n"
         ".const .align 4 .f32 table[16];\n"
         ".visible .entry stage(.param .u64 p, .param .u32 n)\n"
         "{\n"
         "  .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
         "  .shared .align 4 .b8 tile[512];\n"
         "  ld.param.u64 %rd0, [p];\n"
         "  ld.param.u32 %r0, [n];\n"
         "  st.shared.u32 [tile], %r0;\n"
         "  bar.sync 0;\n"
         "  ld.shared.u32 %r1, [tile+4];\n"
         "  st.global.u32 [%rd0], %r1;\n"
         "  ret;\n"
         "}\n"
         ".visible .entry plain(.param .u64 p)\n"
         "{\n"
         "  .reg .b64 %rd<4>;\n"
         "  .reg .b32 %r<4>;\n"
         "  ld.param.u64 %rd0, [p];\n"
         "  mov.u32 %r0, " +
         constant +
         ";\n"
         "  st.global.u32 [%rd0], %r0;\n"
         "  ret;\n"
         "}\n";
}

inline std::string two_kernels() { return two_kernels("sm_75", "7.0"); }

/// The same with an instruction type that does not exist, on line 10.
inline std::string bad_kernel() {
  std::string text = two_kernels();
  const std::string good = "ld.param.u32 %r0, [n]";
  return text.replace(text.find(good), good.size(), "add.rn.f33 %r0, %r9, 1");
}

inline AssembleOptions for_target(const std::string& target,
                                  AssemblerTool tool = AssemblerTool::Automatic) {
  AssembleOptions options;
  options.target = target;
  options.tool = tool;
  return options;
}

/// Settings of a machine that has nothing.
inline Settings bare_machine() {
  Settings settings;
  settings.search_usual_places = false;
  return settings;
}

}  // namespace ptxgen::test
