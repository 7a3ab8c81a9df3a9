// src/cli/commands/qa_model.cpp - the gates that a model file passes
#include "cli/commands/qa_model.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/dequantize.hpp"
#include "ptxgen/model/config.hpp"
#include "ptxgen/model/estimate.hpp"
#include "ptxgen/model/layer_sizes.hpp"
#include "ptxgen/model/model.hpp"
#include "ptxgen/model/session.hpp"
#include "ptxgen/model/tokenizer.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/launch/parity.hpp"
#include "ptxgen/support/error.hpp"
#include "qa/tally.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

constexpr qa::Line kGates[kModelGates] = {
    {"M1", qa::Section::Model, 0, "the file is valid",
     "header, metadata and descriptions of tensors", qa::Means::Unit},
    {"M2", qa::Section::Model, 0, "the architecture is known and no tensor is missing",
     "names, shapes and types of all tensors against the metadata", qa::Means::Unit},
    {"M3", qa::Section::Model, 0, "blocks are dequantised exactly",
     "blocks of each type in the file, by the kernel and by the host, bit for bit",
     qa::Means::Emulator},
    {"M4", qa::Section::Model, 0, "texts survive the tokenizer", "text to tokens and back",
     qa::Means::Unit},
    {"M5", qa::Section::Model, 0, "logits are those of fp64",
     "against the host, where each kernel is its fp64 reference: NMSE <= 1e-6",
     qa::Means::Emulator},
    {"M6", qa::Section::Model, 0, "batched kernels agree with their single-row twins",
     "PTX parity with the sizes of the model's layers", qa::Means::Emulator},
    {"M7", qa::Section::Model, 0, "the rate of decoding is predicted",
     "predicted time of a token, not below that of its bytes", qa::Means::Unit},
};

constexpr double kLogitsNmse = 1e-6;
constexpr std::uint64_t kDequantizedValues = 65536;  // of each type

// What gates share; later ones need the file of the first.
struct ModelUnderTest {
  const Device& device;
  const Settings& settings;
  const ModelGateOptions& options;
  std::optional<gguf::File> file;
};

qa::Outcome check_file(ModelUnderTest& model) {
  qa::Tally tally;
  model.file.emplace(model.options.file);
  tally.check(!model.file->tensors().empty(), "the file has no tensors");
  tally.figure("GGUF version {}, {}, {}", model.file->version(),
               count_text(model.file->metadata().size(), "key"),
               count_text(model.file->tensors().size(), "tensor"));
  return tally.outcome();
}

qa::Outcome check_architecture(ModelUnderTest& model) {
  qa::Tally tally;
  const model::ModelConfig config = model::ModelConfig::read(*model.file);
  tally.check(config.layers > 0 && config.vocabulary > 0, "no layers or no vocabulary");
  tally.figure("{}: {}, width {}, {} heads, {} of K and V, vocabulary {}",
               to_string(config.architecture), count_text(config.layers, "layer"), config.width,
               config.heads, config.kv_heads, config.vocabulary);
  return tally.outcome();
}

// The first values of a tensor by the kernel, compared with the host's.
void check_blocks(qa::Tally& tally, const Context& context, const Launcher& launcher,
                  const ptxgen::Stream& stream, const gguf::Tensor& tensor) {
  const ElementType type = *tensor.type->element;
  const std::uint64_t blocks =
      std::min(tensor.values, kDequantizedValues) / tensor.type->block_values;
  const std::uint64_t count = blocks * tensor.type->block_values;
  const std::span<const std::byte> bytes = tensor.data.first(blocks * tensor.type->block_bytes);
  const std::vector<double> expected = to_values(type, bytes);
  const auto words = std::as_bytes(bytes);
  std::vector<std::uint8_t> raw(words.size());
  std::memcpy(raw.data(), words.data(), words.size());
  const Buffer<u8> w(context, raw);
  Buffer<f32> y(context, count);
  y.fill_bytes(0xff);
  launcher.launch(Dequantize{.n = static_cast<std::uint32_t>(count), .type = type},
                  {.y = y, .w = DeviceRange(w.address().value, w.bytes())}, stream);
  stream.synchronize();
  std::vector<float> found(count);
  y.read(found);
  std::size_t different = 0;
  for (std::size_t i = 0; i < count; ++i) {
    different += std::bit_cast<std::uint32_t>(found[i]) !=
                 std::bit_cast<std::uint32_t>(static_cast<float>(expected[i]));
  }
  tally.check(different == 0, "{} ({}): {} of {} values differ", tensor.name, tensor.type->name,
              different, count);
  tally.figure("{}: {} values of {}", tensor.type->name, count, tensor.name);
}

qa::Outcome check_dequantization(ModelUnderTest& model) {
  qa::Tally tally;
  const Context context(model.device);
  LauncherOptions options;
  options.settings = model.settings;
  const Launcher launcher(context, options);
  const ptxgen::Stream stream(context);
  std::set<std::uint32_t> seen;
  for (const gguf::Tensor& tensor : model.file->tensors()) {
    if (!seen.insert(tensor.type->id).second) continue;
    if (!tensor.type->element) {
      tally.check(false, "{}: no kernel reads the type {}", tensor.name, tensor.type->name);
    } else if (tensor.type->block_values > 1) {
      check_blocks(tally, context, launcher, stream, tensor);
    } else {
      const std::uint64_t bytes = std::min<std::uint64_t>(tensor.bytes, 4 * kDequantizedValues);
      const std::vector<double> values = to_values(*tensor.type->element, tensor.data.first(bytes));
      tally.check(std::ranges::all_of(values, [](double v) { return std::isfinite(v); }),
                  "{}: a value is not finite", tensor.name);
      tally.figure("{}: {} finite values of {}", tensor.type->name, values.size(), tensor.name);
    }
  }
  return tally.outcome();
}

qa::Outcome check_tokenizer(ModelUnderTest& model) {
  qa::Tally tally;
  const model::Tokenizer tokenizer = model::Tokenizer::read(*model.file);
  constexpr const char* kTexts[] = {
      "The quick brown fox jumps over the lazy dog.", "if (x < 3) { return y[2]; }",
      "Größe, naïve, 東京, 42 + 7 = 49", "two  spaces\nand a line", "a"};
  std::size_t tokens = 0;
  for (const char* text : kTexts) {
    model::EncodeOptions plain;
    plain.add_special = false;
    const std::vector<std::uint32_t> ids = tokenizer.encode(text, plain);
    tokens += ids.size();
    const std::string back = tokenizer.decode(ids);
    tally.check(back == text, "'{}' comes back as '{}'", text, back);
  }
  tally.figure("{} texts, {} tokens of {}", std::size(kTexts), tokens, tokenizer.size());
  return tally.outcome();
}

// Token ids spread over the vocabulary.
std::vector<std::uint32_t> sample_tokens(std::uint32_t count, std::uint32_t vocabulary) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<std::uint32_t>(std::uint64_t{vocabulary} * (2 * i + 1) / (2 * count)));
  }
  return tokens;
}

std::vector<float> logits_on(const Device& device, const Settings& settings,
                             const std::string& file, std::uint32_t count) {
  const Context context(device);
  model::ModelOptions options;
  options.launcher.settings = settings;
  const model::Model loaded(context, file, options);
  model::SessionOptions session_options;
  session_options.context = count;
  session_options.prefill_rows = count;
  model::Session session(loaded, session_options);
  session.prefill(sample_tokens(count, loaded.config().vocabulary));
  const std::span<const float> logits = session.logits();
  return {logits.begin(), logits.end()};
}

qa::Outcome check_logits(ModelUnderTest& model) {
  qa::Tally tally;
  Settings reference = model.settings;
  reference.host = "scalar";
  const std::vector<float> expected = logits_on(Device::open("host", reference), reference,
                                                model.options.file, model.options.tokens);
  const std::vector<float> found =
      logits_on(model.device, model.settings, model.options.file, model.options.tokens);
  double error = 0;
  double square = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(found[i]) - expected[i];
    error += difference * difference;
    square += static_cast<double>(expected[i]) * expected[i];
  }
  const double nmse = square > 0 ? error / square : std::numeric_limits<double>::infinity();
  tally.check(nmse <= kLogitsNmse, "NMSE {:.3g} is above {:g}", nmse, kLogitsNmse);
  tally.figure("NMSE {:.3g} over {} logits after {}", nmse, found.size(),
               count_text(model.options.tokens, "token"));
  return tally.outcome();
}

qa::Outcome check_parity_of(ModelUnderTest& model) {
  qa::Tally tally;
  ParityOptions options;
  options.sizes = gguf::layer_sizes(*model.file);
  const ParityReport report = check_parity(model.device, options);
  tally.check(report.registered != 0 && report.pairs.size() == report.registered,
              "{} of {} registered pairs were compared", report.pairs.size(), report.registered);
  for (const ParityResult& pair : report.pairs) {
    for (const gates::ParityCheck& check : pair.checks) {
      std::string violations;
      if (!check.ok && model.options.verbose) {
        for (const Finding& finding : check.findings) violations += "\n" + to_text(finding);
      }
      tally.check(check.ok, "{} and {}, {}: {}{}", pair.batched, pair.single, check.name,
                  check.detail, violations);
    }
  }
  tally.figure("{}/{} kernel pairs passed PTX parity", report.passed(), report.registered);
  return tally.outcome();
}

qa::Outcome check_decode_rate(ModelUnderTest& model) {
  qa::Tally tally;
  const ptx::Gpu gpu = gpu_of(model.device.info());
  model::EstimateOptions options;
  options.context = std::min(512u, model::ModelConfig::read(*model.file).context);
  const model::DecodeEstimate estimate = model::estimate_decode(*model.file, gpu, options);
  const double roofline = estimate.roofline(gpu.bandwidth_gb_per_s);
  // Weights that fit the L2 may arrive faster than from DRAM.
  tally.check(estimate.launches > 0 && estimate.us > 0, "nothing is predicted");
  tally.check(estimate.tokens_per_s() <= roofline || estimate.bytes() < gpu.l2_bytes,
              "{:.0f} tokens/s are above {:.0f}, the rate of the bytes", estimate.tokens_per_s(),
              roofline);
  tally.figure("{} predicted: {:.0f} tokens/s, {} launches, {:.1f} MB each token", gpu.name,
               estimate.tokens_per_s(), estimate.launches,
               static_cast<double>(estimate.bytes()) / 1e6);
  return tally.outcome();
}

qa::Outcome run_gate(std::size_t gate, ModelUnderTest& model) {
  constexpr qa::Outcome (*kRuns[kModelGates])(ModelUnderTest&) = {
      check_file,   check_architecture, check_dequantization, check_tokenizer,
      check_logits, check_parity_of,    check_decode_rate};
  if (model.options.skip[gate]) {
    return qa::skipped(qa::Need::None, format_text("by --skip-{}", kModelGateNames[gate]));
  }
  try {
    if (gate != 0 && !model.file) model.file.emplace(model.options.file);
    return kRuns[gate](model);
  } catch (const std::exception& error) {
    qa::Outcome outcome;
    outcome.reason = error.what();
    return outcome;
  }
}

}  // namespace

qa::Report run_model_gates(const Device& device, const Settings& settings,
                           const ModelGateOptions& options) {
  using Steady = std::chrono::steady_clock;
  const auto seconds = [](Steady::time_point begin) {
    return std::chrono::duration<double>(Steady::now() - begin).count();
  };
  const Steady::time_point begin = Steady::now();
  qa::Report report;
  report.device = device.info().name;
  report.gpu = device.info().kind == DeviceKind::Cuda;
  ModelUnderTest model{device, settings, options, std::nullopt};
  for (std::size_t gate = 0; gate < kModelGates; ++gate) {
    const Steady::time_point gate_begin = Steady::now();
    qa::LineResult result;
    result.line = &kGates[gate];
    result.outcome = run_gate(gate, model);
    result.seconds = seconds(gate_begin);
    report.results.push_back(std::move(result));
  }
  report.seconds = seconds(begin);
  return report;
}

}  // namespace ptxgen::cli
