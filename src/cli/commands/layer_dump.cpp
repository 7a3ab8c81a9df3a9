// src/cli/commands/layer_dump.cpp - outputs of layers into NumPy files
#include "cli/commands/layer_dump.hpp"

#include <array>

#include "cli/output/array_file.hpp"
#include "cli_common/files.hpp"
#include "cli_common/numbers.hpp"
#include "cli_common/program.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

// The residual stream after a layer.
constexpr std::string_view kLayerOutput = "ffn_out";

}  // namespace

LayerDumps::LayerDumps(const std::vector<std::string>& arguments, std::uint32_t layers) {
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    Dump dump;
    dump.spec = arguments[i];
    dump.file = arguments[i + 1];
    check_writable("--dump-layer", dump.file);
    const std::string number = dump.spec.substr(0, dump.spec.find(':'));
    if (number.empty() || number.find_first_not_of("0123456789") == std::string::npos) {
      const auto layer = parse_whole(number, 0, model::kNoLayer - 1);
      if (!layer || *layer >= layers) {
        throw UsageError(format_text("--dump-layer {}: the model has the layers 0 to {}", dump.spec,
                                     layers - 1));
      }
      dump.layer = static_cast<std::uint32_t>(*layer);
      dump.name = number == dump.spec ? kLayerOutput : dump.spec.substr(number.size() + 1);
    } else {
      dump.name = dump.spec;
    }
    dumps_.push_back(std::move(dump));
  }
}

void LayerDumps::attach(model::Session& session) {
  if (dumps_.empty()) return;
  session.observe({[](void* user, const model::LayerTensor& tensor) {
                     static_cast<LayerDumps*>(user)->receive(tensor);
                   },
                   this});
}

void LayerDumps::receive(const model::LayerTensor& tensor) {
  for (Dump& dump : dumps_) {
    if (dump.layer != tensor.layer) continue;
    dump.known.emplace(tensor.name);
    if (dump.name != tensor.name) continue;
    dump.columns = tensor.columns;
    dump.rows += tensor.rows;
    dump.values.insert(dump.values.end(), tensor.values.begin(), tensor.values.end());
  }
}

void LayerDumps::check() const {
  for (const Dump& dump : dumps_) {
    if (dump.rows != 0) continue;
    std::string names;
    for (const std::string& name : dump.known) names += (names.empty() ? "" : ", ") + name;
    throw UsageError(format_text(
        "--dump-layer {}: there is no tensor '{}' {}; there are: {}", dump.spec, dump.name,
        dump.layer == model::kNoLayer ? "outside of the layers" : "in a layer", names));
  }
}

void LayerDumps::write() const {
  for (const Dump& dump : dumps_) {
    write_array(dump.file, dump.values, std::array{dump.rows, dump.columns});
  }
}

}  // namespace ptxgen::cli
