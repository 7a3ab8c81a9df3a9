// src/model/model_state.hpp - what a model holds
#pragma once

#include "model/emulator_plans.hpp"
#include "model/weights.hpp"
#include "ptxgen/model/model.hpp"

namespace ptxgen::inline v0::model {

struct Model::State {
  State(const Context& context, gguf::File file, ModelOptions options);

  const Context* context;
  gguf::File file;
  ModelConfig config;
  ptx::Gpu gpu;         // the device
  bool emulated_plans;  // for the emulator instead of a GPU
  EmulatorPlans plan_source;
  Launcher launcher;
  Weights weights;
  std::uint64_t fingerprint = 0;
};

}  // namespace ptxgen::inline v0::model
