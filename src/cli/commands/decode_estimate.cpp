// src/cli/commands/decode_estimate.cpp - ptxgen decode-estimate: tokens per second by the GEMVs
#include "cli_common/decode_estimate.hpp"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli_common/device_choice.hpp"

namespace ptxgen::cli {

namespace {

struct Options {
  DecodeOptions decode;
  std::string gpu;
};

int decode_command(const Options& options) {
  const DecodeOptions& decode = options.decode;
  DecodeReport report = decode_report(decode);
  report.predict_for(planned_gpu(options.gpu, decode.device, Settings::from_environment()));
  write_output(decode.output, decode.json ? text_of(to_json(report)) : to_text(report));
  return kDone;
}

}  // namespace

void add_decode_estimate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  Command command(app, "decode-estimate",
                  "Predict the GEMVs of one token of a model, beside the roofline of its weights");
  command.footer(
      "Example: ptxgen decode-estimate --model llama-2-7b --dtype f16 --gpu h200\n"
      "With --measure the call runs `gemv-bench decode`, which also measures them.");
  add_decode_options(command, options->decode);
  command.add_option("--gpu", options->gpu, "t4 to rtx5090, or sm_90 and the like");
  command.add_option("--device", options->decode.device,
                     "cuda:N: predict for that GPU by its own description");
  command.callback([options, &exit_code] { exit_code = decode_command(*options); });
}

}  // namespace ptxgen::cli
