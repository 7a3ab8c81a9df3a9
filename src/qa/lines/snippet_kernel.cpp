// src/qa/lines/snippet_kernel.cpp - a few statements of PTX as a kernel
#include "qa/lines/snippet_kernel.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace ptxgen::qa {

std::string snippet_kernel(std::string_view statements) {
  return format_text(
      ".version 7.8\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 y, .param .u64 a, .param .u64 b, .param .u64 c)\n{{\n"
      ".reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<12>;\n.reg .f32 %f<16>;\n"
      "ld.param.u64 %rd1, [y];\nld.param.u64 %rd2, [a];\nld.param.u64 %rd3, [b];\n"
      "ld.param.u64 %rd4, [c];\nmov.u32 %r1, %tid.x;\n"
      "mad.wide.u32 %rd5, %r1, 4, %rd1;\nmad.wide.u32 %rd6, %r1, 4, %rd2;\n"
      "mad.wide.u32 %rd7, %r1, 4, %rd3;\nmad.wide.u32 %rd8, %r1, 4, %rd4;\n"
      "ld.global.f32 %f1, [%rd6];\nld.global.f32 %f2, [%rd7];\nld.global.f32 %f3, [%rd8];\n"
      "{}st.global.f32 [%rd5], %f9;\nret;\n}}\n",
      statements);
}

std::vector<float> run_snippet(Tally& tally, Fixture& fixture, const ptx::Module& module,
                               const std::array<std::vector<float>, 3>& inputs) {
  Emulation emulation(gpu_of(fixture.device().info()));
  const std::size_t count = inputs[0].size();
  const std::uint64_t y = emulation.allocate(sizeof(float) * count);
  LaunchGeometry geometry;
  geometry.block = {static_cast<std::uint32_t>(count), 1, 1};
  const emulator::Result result = emulation.launch(
      module, geometry,
      {y, emulation.upload(inputs[0]), emulation.upload(inputs[1]), emulation.upload(inputs[2])});
  tally.check(result.status == emulator::Status::Ok, "{}", first_error(result));
  return emulation.download<float>(y, count);
}

std::array<std::vector<float>, 3> triples(std::span<const float> values) {
  std::array<std::vector<float>, 3> inputs;
  for (const float a : values) {
    for (const float b : values) {
      for (const float c : values) {
        inputs[0].push_back(a);
        inputs[1].push_back(b);
        inputs[2].push_back(c);
      }
    }
  }
  return inputs;
}

bool same_float(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace ptxgen::qa
