// src/model/model.cpp - the weights of a decoder on a device
#include "ptxgen/model/model.hpp"

#include "model/format.hpp"
#include "model/model_state.hpp"
#include "ptxgen/runtime/device/specific_target.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0::model {

namespace {

std::uint64_t fingerprint_of(const gguf::File& file, const ModelConfig& config) {
  std::string text =
      format_text("{} {} {} {} {} {} {}", to_string(config.architecture), config.layers,
                  config.width, config.heads, config.kv_heads, config.head_size, config.vocabulary);
  for (const gguf::Tensor& tensor : file.tensors()) {
    text += format_text("\n{} {} {}", tensor.name, tensor.type->name, tensor.bytes);
  }
  return hash128(text).low;
}

bool uses_emulator_plans(const Context& context, const ModelOptions& options) {
  return context.device().info().kind == DeviceKind::Emulator && !options.gpu_plans &&
         options.launcher.gemv_plans == nullptr && options.launcher.settings.tuned.empty();
}

// With the target of the kernels that it alone runs.
ptx::Gpu gpu_for(const Context& context, const ModelOptions& options) {
  const DeviceInfo& info = context.device().info();
  ptx::Gpu gpu = gpu_of(info);
  const ptx::Target* const chosen = options.launcher.target;
  const ptx::Target* const target = chosen != nullptr ? chosen : specific_target(info);
  if (target != nullptr) gpu.target = target->name;
  return gpu;
}

LauncherOptions with_plans(LauncherOptions options, const GemvPlanSource* plans) {
  if (plans != nullptr) options.gemv_plans = plans;
  return options;
}

}  // namespace

Model::State::State(const Context& of, gguf::File opened, ModelOptions options)
    : context(&of),
      file(std::move(opened)),
      config(ModelConfig::read(file)),
      gpu(gpu_for(of, options)),
      emulated_plans(uses_emulator_plans(of, options)),
      launcher(of, with_plans(options.launcher, emulated_plans ? &plan_source : nullptr)),
      weights(of, file, config, options),
      fingerprint(fingerprint_of(file, config)) {}

Model::Model(const Context& context, const std::string& path, ModelOptions options)
    : Model(context, gguf::File(path), std::move(options)) {}
Model::Model(const Context& context, gguf::File file, ModelOptions options)
    : state_(Hidden<State>::make(context, std::move(file), std::move(options))) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelConfig& Model::config() const noexcept { return state_->config; }
const gguf::File& Model::file() const noexcept { return state_->file; }
const Context& Model::context() const noexcept { return *state_->context; }
const Launcher& Model::launcher() const noexcept { return state_->launcher; }
std::uint64_t Model::device_bytes() const noexcept { return state_->weights.device_bytes; }
std::uint64_t Model::bytes_per_token() const noexcept {
  const Weights& weights = state_->weights;
  const bool shared = weights.output.memory.address == weights.embedding.memory.address;
  return weights.device_bytes - (shared ? 0 : weights.embedding.memory.bytes);
}
std::uint64_t Model::fingerprint() const noexcept { return state_->fingerprint; }

}  // namespace ptxgen::inline v0::model
