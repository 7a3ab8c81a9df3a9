// tests/model/model_bench.hpp - a toy decoder on the emulated device
#pragma once

#include "ptxgen/model.hpp"
#include "ptxgen/runtime.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "toy_decoder.hpp"

namespace ptxgen::test {

/// Settings of a test: nothing of the environment, no disk cache.
[[nodiscard]] inline Settings model_settings() {
  Settings settings;
  settings.cache = "memory";
  return settings;
}

[[nodiscard]] inline model::ModelOptions model_options() {
  model::ModelOptions options;
  options.launcher.settings = model_settings();
  options.launcher.cache.mode = CacheMode::MemoryOnly;
  return options;
}

struct ModelBench {
  Toy toy;
  Device device;
  Context context;
  model::Model model;

  explicit ModelBench(const ToyShape& shape, const model::ModelOptions& options = model_options())
      : toy(make_toy(shape)),
        device(Device::open("emulator", model_settings())),
        context(device),
        model(context, gguf::File::view(as_bytes(toy.bytes), "toy.gguf"), options) {
    device.clear_findings();
  }
};

}  // namespace ptxgen::test
