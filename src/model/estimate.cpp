// src/model/estimate.cpp - the time of one token, predicted kernel by kernel
#include "ptxgen/model/estimate.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "model/format.hpp"
#include "model/forward.hpp"
#include "model/tensors.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels/attention/decode.hpp"
#include "ptxgen/kernels/gemv/group.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/kernels/tokens/embedding.hpp"
#include "ptxgen/support/error.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0::model {

namespace {

[[noreturn]] void refuse(std::string message) {
  throw Error(Stage::Launch, "arguments", std::move(message));
}

using TypeOfTensor = std::function<ElementType(const std::string& name)>;

/// Weights without memory: shapes, types and addresses that are never used.
class WeightShapes {
 public:
  WeightShapes(const ModelConfig& config, const TypeOfTensor& type_of)
      : config_(config), type_of_(type_of) {
    all.embedding = matrix("token_embd.weight", config.width, config.vocabulary);
    all.output = all.embedding;
    if (!config.tied) {
      all.device_bytes = 0;  // one row of it is read
      all.output = matrix("output.weight", config.width, config.vocabulary);
    }
    all.output_norm = vector(config.width);
    if (config.rope_factors || config.rope_divisor != 1) all.factors = vector(half());
    if (config.rope_factors) all.local_factors = vector(half());
    for (std::uint32_t layer = 0; layer < config.layers; ++layer) add_layer(layer);
  }

  Weights all;  ///< `device_bytes`: those that a token reads

 private:
  [[nodiscard]] std::uint32_t half() const { return config_.head_size / 2; }

  DeviceRange memory(std::uint64_t bytes) {
    const DeviceRange range{next_, bytes, ptx::Type::none};
    next_ += (bytes + 255) / 256 * 256;
    all.device_bytes += bytes;
    return range;
  }
  DeviceRange vector(std::uint64_t values, bool there = true) {
    return there ? memory(4 * values) : DeviceRange();
  }
  Matrix matrix(const std::string& name, std::uint32_t k, std::uint32_t n) {
    const ElementType type = type_of_(name);
    const std::uint32_t block = info(type).block_values;
    if (k % block != 0) {
      refuse(
          format_text("{} has rows of {} elements, which are no whole blocks of {} ({} values); "
                      "take another type",
                      name, k, to_string(type), block));
    }
    return {memory(bytes(type, std::uint64_t{k} * n)), type, k, n};
  }
  void add_layer(std::uint32_t layer) {
    const auto of_layer = [&](std::string_view name, std::uint32_t k, std::uint32_t n) {
      return matrix(layer_tensor(layer, name), k, n);
    };
    const std::uint32_t width = config_.width;
    LayerWeights w;
    w.attn_norm = vector(width);
    w.ffn_norm = vector(width);
    w.q = of_layer("attn_q.weight", width, config_.q_width());
    w.k = of_layer("attn_k.weight", width, config_.kv_width());
    w.v = of_layer("attn_v.weight", width, config_.kv_width());
    w.q_bias = vector(config_.q_width(), config_.qkv_bias);
    w.k_bias = vector(config_.kv_width(), config_.qkv_bias);
    w.v_bias = vector(config_.kv_width(), config_.qkv_bias);
    w.q_norm = vector(config_.head_size, config_.head_norms);
    w.k_norm = vector(config_.head_size, config_.head_norms);
    w.o = of_layer("attn_output.weight", config_.q_width(), width);
    w.post_attention_norm = vector(width, config_.post_norms);
    w.gate = of_layer("ffn_gate.weight", width, config_.ffn);
    w.up = of_layer("ffn_up.weight", width, config_.ffn);
    w.down = of_layer("ffn_down.weight", config_.ffn, width);
    w.post_ffw_norm = vector(width, config_.post_norms);
    all.layers.push_back(w);
  }

  const ModelConfig& config_;
  const TypeOfTensor& type_of_;
  std::uint64_t next_ = 1u << 20;
};

/// A launch as the estimate has it.
struct Predicted {
  double us = 0, boundary_us = 0;
  std::string_view bound_by;
  ErrorBand error;
};

std::string_view largest(const GemvTerms& terms) {
  const std::pair<double, std::string_view> all[] = {
      {terms.dram, "dram"},      {terms.latency, "latency"},     {terms.issue, "issue"},
      {terms.l1, "l1"},          {terms.reduction, "reduction"}, {terms.blocks, "blocks"},
      {terms.boundary, "launch"}};
  return std::max_element(std::begin(all), std::end(all),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

/// Predicts each launch of a forward pass; launches of one name and shape once.
class Estimator final : public Emitter {
 public:
  Estimator(DecodeEstimate& estimate, const ptx::Gpu& gpu, Boundary boundary)
      : estimate_(estimate), gpu_(gpu), boundary_(boundary) {}

 private:
  struct Known {
    std::string_view step;
    const KernelDescription* kernel;
    std::vector<std::uint64_t> values;
    bool operator==(const Known&) const = default;
  };

  void described(const Step& step, const KernelDescription& kernel, const void* spec) override {
    Known one{step.name, &kernel, std::vector<std::uint64_t>(kernel.parameters.size())};
    kernel.values_of(spec, one.values.data());
    const auto found = std::ranges::find(known_, one);
    const auto index = static_cast<std::size_t>(found - known_.begin());
    if (found == known_.end()) {
      const Predicted p = predicted(kernel, spec, one.values);
      estimate_.rows.push_back({std::string(step.name), std::string(kernel.name),
                                shape_text(kernel, spec), 0, kernel.cost_of(spec).bytes(), p.us,
                                p.boundary_us, p.bound_by, p.error});
      known_.push_back(std::move(one));
    }
    ++estimate_.rows[index].launches;
  }

  Predicted predicted(const KernelDescription& kernel, const void* spec,
                      std::span<const std::uint64_t> values) const {
    if (kernel.type == kDescription<GemvProblem>.type) {
      return gemv(*static_cast<const GemvProblem*>(spec));
    }
    const LaunchWork work = launch_work(kernel, values, gpu_);
    // What others than these read was written by the launches ahead.
    const bool cold = kernel.type == kDescription<GemvGroup>.type ||
                      kernel.type == kDescription<AttentionDecode>.type ||
                      kernel.type == kDescription<Embedding>.type;
    const LaunchPrediction p = predict(work, gpu_, {boundary_, !cold});
    Predicted result{p.us, p.terms.launch, p.bound_by, p.error};
    if (kernel.type == kDescription<GemvGroup>.type) {
      compute(*static_cast<const GemvGroup*>(spec), result);
    }
    return result;
  }

  Predicted gemv(const GemvProblem& problem) const {
    GemvPlan plan = plan_gemv(problem, gpu_);
    plan.programmatic = plan.programmatic && boundary_ == Boundary::Programmatic;
    const GemvPrediction p = ptxgen::predict(plan, gpu_);
    const bool stream = boundary_ == Boundary::Stream;
    return {stream ? p.isolated_us : p.chained_us,
            stream ? rates_of(gpu_).stream_us : p.terms.boundary, largest(p.terms), p.error};
  }

  // Instructions of the matrices add up, and may take longer than their bytes.
  void compute(const GemvGroup& group, Predicted& result) const {
    double issue = 0;
    for (std::uint32_t i = 0; i < group.matrices(); ++i) {
      const GemvPrediction p = ptxgen::predict(group.plan(i), gpu_);
      issue += p.terms.issue;
      result.error = p.error;
    }
    if (result.boundary_us + issue <= result.us) return;
    result.us = result.boundary_us + issue;
    result.bound_by = "issue";
  }

  DecodeEstimate& estimate_;
  const ptx::Gpu& gpu_;
  Boundary boundary_;
  std::vector<Known> known_;
};

void add_up(DecodeEstimate& estimate) {
  for (const EstimatedLaunches& row : estimate.rows) {
    const double us = row.launches * row.us;
    estimate.launches += row.launches;
    estimate.us += us;
    estimate.boundary_us += row.launches * row.boundary_us;
    estimate.error.mean += us * row.error.mean;
    estimate.error.worst += us * row.error.worst;
  }
  estimate.error.mean /= estimate.us;
  estimate.error.worst /= estimate.us;
}

std::uint64_t cache_bytes(const ModelConfig& config, const EstimateOptions& options) {
  std::uint64_t positions = 0;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    positions +=
        config.is_global(layer) ? options.context : std::min(options.context, config.window);
  }
  return 2 * bytes(options.cache, positions * config.kv_width());
}

DecodeEstimate estimate(const ModelConfig& config, const TypeOfTensor& type_of, const ptx::Gpu& gpu,
                        const EstimateOptions& options) {
  if (options.context == 0 || options.context > config.context) {
    refuse(format_text("context is {}; a token sees 1 to {} positions of this model",
                       options.context, config.context));
  }
  const WeightShapes weights(config, type_of);
  // Only what the launches refer to by parts has memory.
  const Device device =
      Device::open(driver::emulated::table(), 0, DeviceKind::Emulator, Settings{});
  const Context context(device);
  Activations work;
  work.norm = Buffer<f32>(context, config.width);
  work.logits = Buffer<f32>(context, config.vocabulary);
  work.greedy = Buffer<u32>(context, 1);
  const std::vector<LayerCache> cache(config.layers);
  SessionOptions session;
  session.context = options.context;
  session.cache = options.cache;
  DecodeEstimate result;
  Estimator estimator(result, gpu, options.boundary);
  forward(estimator, {config, weights.all, work, cache, session, gpu}, {});
  add_up(result);
  result.weight_bytes = weights.all.device_bytes;
  result.cache_bytes = cache_bytes(config, options);
  return result;
}

constexpr ElementType kMatrixTypes[] = {ElementType::f32,  ElementType::f16,  ElementType::bf16,
                                        ElementType::q4_0, ElementType::q4_1, ElementType::q5_0,
                                        ElementType::q5_1, ElementType::q8_0, ElementType::q4_k,
                                        ElementType::q5_k, ElementType::q6_k};

// Of files named Q4_K_M: half of the matrices of v and down, those of the first and the last eighth
// of the layers and every third one between, and the output have q6_k.
ElementType mixed_type(const std::string& name, std::uint32_t layers) {
  if (name == "output.weight") return ElementType::q6_k;
  const bool finer = name.ends_with("attn_v.weight") || name.ends_with("ffn_down.weight");
  if (!finer) return ElementType::q4_k;
  std::string_view rest = std::string_view(name).substr(4);
  const std::uint32_t layer = take_number<std::uint32_t>(rest).value_or(0);
  const std::uint32_t eighth = layers / 8;
  const bool outer = layer < eighth || layer >= 7 * layers / 8;
  return outer || (layer - eighth) % 3 == 2 ? ElementType::q6_k : ElementType::q4_k;
}

}  // namespace

DecodeEstimate estimate_decode(const gguf::File& file, const ptx::Gpu& gpu,
                               const EstimateOptions& options) {
  const ModelConfig config = ModelConfig::read(file);
  return estimate(
      config, [&](const std::string& name) { return *file.tensor(name).type->element; }, gpu,
      options);
}

DecodeEstimate estimate_decode(const ModelConfig& config, std::string_view weights,
                               const ptx::Gpu& gpu, const EstimateOptions& options) {
  if (weights == "q4_k_m") {
    // A tied embedding is the output.
    return estimate(
        config,
        [&](const std::string& name) {
          const bool output = config.tied && name == "token_embd.weight";
          return mixed_type(output ? "output.weight" : name, config.layers);
        },
        gpu, options);
  }
  const auto* const type = std::ranges::find_if(
      kMatrixTypes, [&](ElementType one) { return to_string(one) == weights; });
  if (type == std::end(kMatrixTypes)) {
    std::string names;
    for (const ElementType one : kMatrixTypes) names += std::string(to_string(one)) + ", ";
    refuse(format_text("there are no matrices of {}; expects {}or q4_k_m", weights, names));
  }
  return estimate(
      config, [&](const std::string&) { return *type; }, gpu, options);
}

ModelConfig config_of(const DecoderModel& model) {
  ModelConfig config;
  config.name = model.name;
  config.layers = model.layers;
  config.width = model.hidden;
  config.ffn = model.intermediate;
  config.heads = model.heads;
  config.kv_heads = model.kv_heads;
  config.head_size = model.head_dim;
  config.vocabulary = model.vocabulary;
  config.context = 1u << 17;
  config.tied = model.tied_head;
  return config;
}

}  // namespace ptxgen::inline v0::model
