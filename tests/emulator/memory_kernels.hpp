// tests/emulator/memory_kernels.hpp - little kernels around one memory instruction
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::test {

/// A device with one input and one output buffer, and a kernel `k(out, in)` made of `body`. Before
/// the body are registers: %out and %in (the buffers), %t (tid.x), %t4, %t8, %t16 (%t times 4, 8,
/// 16, 64 bits wide), %p<4>, %rs<8>, %r<32>, %rd<32>, %f<16>, %d<16>, %q<4> (128 bits).
class MemoryKernel {
 public:
  explicit MemoryKernel(std::string_view body, std::string_view variables = {})
      : device_(emulator::default_gpu("sm_90")),
        program_(emulator::Program::load(device_, text_of(body, variables))) {}

  static std::string text_of(std::string_view body, std::string_view variables) {
    std::string text = ".version 8.6\n.target sm_90\n.address_size 64\n";
    text += variables;
    text +=
        "\n.visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
        ".reg .pred %p<4>;\n.reg .b16 %rs<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<32>;\n"
        ".reg .f32 %f<16>;\n.reg .f64 %d<16>;\n.reg .b128 %q<4>;\n"
        ".reg .b64 %out, %in, %t4, %t8, %t16;\n.reg .b32 %t;\n"
        "ld.param.u64 %out, [out];\nld.param.u64 %in, [in];\n"
        "mov.u32 %t, %tid.x;\nmul.wide.u32 %t4, %t, 4;\nmul.wide.u32 %t8, %t, 8;\n"
        "mul.wide.u32 %t16, %t, 16;\n";
    text += body;
    text += "\nret;\n}\n";
    return text;
  }

  template <class T>
  void input(const std::vector<T>& values, std::string_view name = "argument 1 'in'") {
    in_ = device_.allocate(values.size() * sizeof(T), name);
    device_.write(in_, std::as_bytes(std::span(values)));
  }
  /// Not initialised.
  void output(std::uint64_t bytes, std::string_view name = "argument 0 'out'") {
    out_ = device_.allocate(bytes, name);
    out_bytes_ = bytes;
  }

  emulator::Result run(std::uint32_t threads = 32, std::uint32_t blocks = 1,
                       const emulator::Options& options = {}) {
    std::byte parameters[16];
    std::memcpy(parameters, &out_, 8);
    std::memcpy(parameters + 8, &in_, 8);
    emulator::Launch launch;
    launch.kernel = "k";
    launch.grid = {blocks, 1, 1};
    launch.block = {threads, 1, 1};
    launch.cluster = cluster_;
    launch.parameters = parameters;
    return emulator::run(program_, launch, options);
  }

  template <class T>
  [[nodiscard]] std::vector<T> result() const {
    std::vector<T> values(out_bytes_ / sizeof(T));
    device_.read(out_, std::as_writable_bytes(std::span(values)));
    return values;
  }

  emulator::Device& device() { return device_; }
  emulator::Program& program() { return program_; }
  [[nodiscard]] std::uint64_t in() const { return in_; }
  [[nodiscard]] std::uint64_t out() const { return out_; }
  void set_in(std::uint64_t address) { in_ = address; }
  void set_out(std::uint64_t address) { out_ = address; }
  void set_cluster(const emulator::Dim3& blocks) { cluster_ = blocks; }

 private:
  emulator::Device device_;
  emulator::Program program_;
  emulator::Dim3 cluster_;
  std::uint64_t in_ = 0;
  std::uint64_t out_ = 0;
  std::uint64_t out_bytes_ = 0;
};

/// All findings of a run, one a line.
inline std::string findings_of(const emulator::Result& result) {
  std::string text;
  for (const auto& finding : result.findings) text += emulator::to_text(finding) + "\n";
  return text;
}

/// Options of a run with that order of the warps.
[[nodiscard]] inline emulator::Options of_seed(std::uint64_t seed) {
  emulator::Options options;
  options.seed = seed;
  return options;
}

/// All threads of a cluster wait for each other.
inline constexpr const char* kClusterSync =
    "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

}  // namespace ptxgen::test
