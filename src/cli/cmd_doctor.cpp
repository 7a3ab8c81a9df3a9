// src/cli/cmd_doctor.cpp - ptxgen doctor: what this machine has
#include <nlohmann/json.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "ptxgen/runtime/doctor.hpp"

namespace ptxgen::cli {

namespace {

void indent_lines(std::string& text, std::string_view lines, std::string_view indentation) {
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    text += indentation;
    text += lines.substr(0, end);
    text += '\n';
    lines = end == std::string_view::npos ? std::string_view{} : lines.substr(end + 1);
  }
}

std::string described(const Diagnosis& diagnosis) {
  std::string text;
  for (const PieceFinding& piece : diagnosis.pieces) {
    text += piece.found ? "found    " : "missing  ";
    text += piece.piece;
    if (!piece.version.empty()) text += " " + piece.version;
    if (!piece.where.empty()) text += " at " + piece.where;
    text += '\n';
    text +=
        "           " + std::string(piece.found ? "gives " : "would give ") + piece.gives + "\n";
    if (!piece.found) indent_lines(text, piece.problem, "           ");
  }
  for (const GpuFinding& gpu : diagnosis.gpus) {
    text += "gpu " + std::to_string(gpu.ordinal) + "    " + gpu.name + ", " + gpu.target + ", " +
            std::to_string(gpu.multiprocessors) + " SMs, " +
            std::to_string(gpu.memory_bytes / 1000000) + " MB\n";
  }
  if (diagnosis.gpus.empty())
    text += "no GPU: PTX can be built, checked and assembled here, not run on one\n";
  return text;
}

nlohmann::json as_json(const Diagnosis& diagnosis) {
  nlohmann::json pieces = nlohmann::json::array();
  for (const PieceFinding& piece : diagnosis.pieces) {
    pieces.push_back({{"piece", piece.piece},
                      {"found", piece.found},
                      {"where", piece.where},
                      {"version", piece.version},
                      {"gives", piece.gives},
                      {"problem", piece.problem}});
  }
  nlohmann::json gpus = nlohmann::json::array();
  for (const GpuFinding& gpu : diagnosis.gpus) {
    gpus.push_back({{"ordinal", gpu.ordinal},
                    {"name", gpu.name},
                    {"target", gpu.target},
                    {"multiprocessors", gpu.multiprocessors},
                    {"memory_bytes", gpu.memory_bytes}});
  }
  return {{"pieces", std::move(pieces)}, {"gpus", std::move(gpus)}};
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  struct Options {
    bool json = false;
    std::string output;
  };
  auto options = std::make_shared<Options>();
  Command command(app, "doctor", "Say what is found where, and what each missing piece would give");
  command.footer("Example: ptxgen doctor --json");
  command.add_flag("--json", options->json, "one JSON document: {\"pieces\":[..],\"gpus\":[..]}");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.callback([options, &exit_code] {
    const Diagnosis diagnosis = diagnose(Settings::from_environment());
    write_output(options->output,
                 options->json ? text_of(as_json(diagnosis)) : described(diagnosis));
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
