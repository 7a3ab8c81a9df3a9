// src/cli/commands/gguf.cpp - ptxgen gguf: metadata and tensors of a model file
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/commands/commands.hpp"
#include "cli/output/gguf_text.hpp"
#include "ptxgen/model/gguf.hpp"

namespace ptxgen::cli {

namespace {

struct GgufArguments {
  std::string file;
  std::string output;
  bool json = false;
};

std::string listed(const gguf::File& file, const GgufArguments& options) {
  return options.json ? text_of(to_json(file)) : to_text(file);
}

std::string listed(const GgufArguments& options) {
  if (options.file != "-") return listed(gguf::File(options.file), options);
  const std::string bytes = read_input(options.file);
  const std::span characters(bytes.data(), bytes.size());
  return listed(gguf::File::view(std::as_bytes(characters), input_name(options.file)), options);
}

}  // namespace

void add_gguf(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<GgufArguments>();
  Command command(app, "gguf", "List the metadata and tensors of a GGUF file");
  command.footer("Example: ptxgen gguf model.gguf --json");
  command.add_option("file", options->file, "a GGUF file of version 2 or 3, or - for stdin")
      .required();
  command.add_flag("--json", options->json,
                   "one JSON document: version, metadata with full arrays, tensors, totals");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.callback([options, &exit_code] {
    write_output(options->output, listed(*options));
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
