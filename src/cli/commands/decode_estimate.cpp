// src/cli/commands/decode_estimate.cpp - ptxgen decode-estimate: tokens per second by the GEMVs
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/commands/estimate.hpp"
#include "cli/args/device_choice.hpp"
#include "cli/gemv_bench/decode_chain.hpp"
#include "cli/gemv_bench/run.hpp"
#include "cli/args/gemv_problem.hpp"
#include "cli/output/gemv_report.hpp"
#include "cli/args/numbers.hpp"
#include "cli/output/text_table.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/count.hpp"

namespace ptxgen::cli {

namespace {

struct Options {
  std::string model;
  std::string dtype = "f16";
  std::string gpu;
  std::string device;
  std::string output;
  std::string n = "200";
  std::uint64_t seed = 0;
  bool unfused = false;
  bool measure = false;
  bool json = false;
};

const DecoderModel& model_named(const std::string& name) {
  if (const DecoderModel* model = find_decoder_model(name)) return *model;
  std::string known;
  for (const DecoderModel& model : decoder_models()) {
    known += (known.empty() ? "" : ", ") + std::string(model.name);
  }
  throw UsageError("--model " + name +
                   ": there is no such model in the table; there are: " + known);
}

nlohmann::json model_json(const DecoderModel& model) {
  return {{"name", model.name},
          {"card", model.card},
          {"hidden", model.hidden},
          {"intermediate", model.intermediate},
          {"layers", model.layers},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"head_dim", model.head_dim},
          {"vocabulary", model.vocabulary},
          {"tied_head", model.tied_head}};
}

// The chain on the device that `--device` means, which must be a GPU.
ChainMeasurement measured(const Options& options, const DecodeEstimate& estimate,
                          const Settings& settings) {
  const DeviceChoice choice = choose_device(options.device, {}, settings);
  if (choice.emulator) {
    throw UsageError("--measure: " + choice.from +
                     " is the emulator here, whose times say nothing about a GPU; measure on a "
                     "machine with one");
  }
  if (!options.gpu.empty()) {
    throw UsageError("--measure and --gpu: what is measured is planned for the device itself");
  }
  const Device device = Device::open(choice.name, settings);
  std::vector<ChainShape> shapes;
  for (const EstimatedShape& row : estimate.shapes) {
    shapes.push_back({row.choice.plan, row.shape.count, std::string(row.shape.name)});
  }
  return measure_chain(device, shapes, whole_number("--n", options.n, 1, 1'000'000),
                       default_bench_options(device.info()).lead_bytes, options.seed, settings);
}

nlohmann::json chain_json(const ChainMeasurement& chain) {
  return {{"us",
           {{"n", chain.us.n},
            {"median", chain.us.median},
            {"ci_low", chain.us.low},
            {"ci_high", chain.us.high},
            {"p5", chain.us.p5},
            {"p95", chain.us.p95}}},
          {"tokens_per_s", chain.tokens_per_s()},
          {"kernels", chain.kernels},
          {"checked_launches", chain.checked},
          {"right", chain.wrong.empty()},
          {"wrong", chain.wrong}};
}

std::string as_text(const ChainMeasurement& chain, double predicted_us) {
  if (!chain.wrong.empty()) return "measured: WRONG, " + chain.wrong + "\n";
  return "measured: " + fixed(chain.us.median / 1e3, 3) + " ms (" + fixed(chain.us.low / 1e3, 3) +
         "-" + fixed(chain.us.high / 1e3, 3) + ", " + count_text(chain.us.n, "launch") +
         " of a graph of " + count_text(chain.kernels, "kernel") +
         "): " + fixed(chain.tokens_per_s(), 0) + " tokens/s, predicted " +
         fixed(100 * (predicted_us / chain.us.median - 1), 1) + " % off\n";
}

nlohmann::json as_json(const Options& options, const DecoderModel& model, const ptx::Gpu& gpu,
                       const DecodeEstimate& estimate) {
  nlohmann::json shapes = nlohmann::json::array();
  for (const EstimatedShape& row : estimate.shapes) {
    shapes.push_back({{"name", row.shape.name},
                      {"count", row.shape.count},
                      {"problem", to_json(row.problem)},
                      {"plan", to_json(row.choice.plan)},
                      {"prediction", to_json(row.choice.prediction)},
                      {"total_us", row.total_us()}});
  }
  return {{"model", model_json(model)},
          {"dtype", options.dtype},
          {"fused", !options.unfused},
          {"gpu", to_json(gpu)},
          {"gemvs", estimate.gemvs},
          {"bytes", estimate.bytes},
          {"fits", estimate.bytes <= static_cast<double>(gpu.memory_bytes)},
          {"shapes", std::move(shapes)},
          {"predicted_us", estimate.predicted_us},
          {"predicted_tokens_per_s", estimate.tokens_per_s()},
          {"roofline_tokens_per_s",
           {{"datasheet", estimate.roofline(gpu.bandwidth_gb_per_s)},
            {"read", estimate.roofline(read_rate(gpu))}}}};
}

std::string as_text(const Options& options, const DecoderModel& model, const ptx::Gpu& gpu,
                    const DecodeEstimate& estimate) {
  std::string text = std::string(model.name) + " " + options.dtype + " on " +
                     std::string(gpu.full_name) + ", the GEMVs of one token as one chain\n\n";
  TextTable table({"matrix", "k", "n", "count", "MB each", "us each", "GB/s", "us in all"});
  for (const EstimatedShape& row : estimate.shapes) {
    const double each = row.bytes() / row.shape.count;
    const double us = row.choice.prediction.chained_us;
    table.add({std::string(row.shape.name), std::to_string(row.shape.k),
               std::to_string(row.shape.n), std::to_string(row.shape.count), fixed(each / 1e6, 1),
               fixed(us, 2), fixed(each / us * 1e-3, 0), fixed(row.total_us(), 1)});
  }
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  text += "\n" + fixed(estimate.bytes / 1e9, 2) + " GB of weights in " +
          std::to_string(estimate.gemvs) + " GEMVs, " + fixed(estimate.predicted_us / 1e3, 3) +
          " ms predicted: " + fixed(estimate.tokens_per_s(), 0) + " tokens/s\n";
  text += "by the weights alone: " + fixed(estimate.roofline(read_rate(gpu)), 0) +
          " tokens/s at the " + fixed(read_rate(gpu), 0) + " GB/s that a reader gets, " +
          fixed(estimate.roofline(gpu.bandwidth_gb_per_s), 0) + " at the " +
          fixed(gpu.bandwidth_gb_per_s, 0) + " GB/s of the datasheet\n";
  if (estimate.bytes > static_cast<double>(gpu.memory_bytes)) {
    text += "the weights do not fit into the " +
            fixed(static_cast<double>(gpu.memory_bytes) / 1e9, 0) + " GB of this GPU\n";
  }
  return text;
}

int decode_command(const Options& options) {
  const Settings settings = Settings::from_environment();
  const DecoderModel& model = model_named(options.model);
  const GemvType weights = gemv_type("--dtype " + options.dtype, options.dtype);
  const ptx::Gpu gpu = planned_gpu(options.gpu, options.device, settings);
  const DecodeEstimate estimate = estimate_decode(model, weights, !options.unfused, gpu);
  std::optional<ChainMeasurement> chain;
  if (options.measure) chain = measured(options, estimate, settings);
  if (options.json) {
    nlohmann::json document = as_json(options, model, gpu, estimate);
    if (chain) document["measured"] = chain_json(*chain);
    write_output(options.output, text_of(document));
  } else {
    write_output(options.output, as_text(options, model, gpu, estimate) +
                                     (chain ? as_text(*chain, estimate.predicted_us) : ""));
  }
  return chain && !chain->wrong.empty() ? kFound : kDone;
}

}  // namespace

void add_decode_estimate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  Command command(app, "decode-estimate",
                  "Predict the GEMVs of one token of a model, beside the roofline of its weights");
  command.footer("Example: ptxgen decode-estimate --model llama-2-7b --dtype f16 --gpu h200");
  command.add_option("--model", options->model, "llama-2-7b and the like").required();
  command.add_option("--dtype", options->dtype, "of the weights: f32, f16 or bf16")
      .capture_default_str();
  command.add_option("--gpu", options->gpu, "t4 to rtx5090, or sm_90 and the like");
  command.add_option("--device", options->device,
                     "cuda:N: predict for that GPU by what it says of itself");
  command.add_flag("--unfused", options->unfused,
                   "q, k, v, gate and up as matrices of their own: 7 GEMVs a layer, not 4");
  command.add_flag("--measure", options->measure,
                   "measure the chain on the device, every GEMV with a matrix of its own");
  command.add_option("--n", options->n, "tokens measured").capture_default_str();
  command.add_option("--seed", options->seed, "of the random weights").capture_default_str();
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"model\",\"gpu\",\"shapes\",\"predicted_us\",..}");
  command.callback([options, &exit_code] { exit_code = decode_command(*options); });
}

}  // namespace ptxgen::cli
