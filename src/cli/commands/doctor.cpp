// src/cli/commands/doctor.cpp - ptxgen doctor: what this machine has
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "ptxgen/driver/table.hpp"
#include "ptxgen/runtime/device/doctor.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

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

// The driver in use, and the default device.
struct Answer {
  std::string driver;  // "libcuda", "stand-in", "none"
  std::string chosen;  // "cuda:0", "emulator"
  std::string why;
  std::string default_gpu;  // modelled where neither --gpu nor a .target decides
};

Answer answer_of(const Diagnosis& diagnosis, const Settings& settings) {
  Answer answer;
  const driver::Libcuda libcuda = driver::find_libcuda(settings);
  answer.driver = libcuda.table == nullptr ? "none" : libcuda.emulated ? "stand-in" : "libcuda";
  answer.default_gpu = settings.emulated_gpu;
  if (settings.device != "auto") {
    answer.chosen = settings.device;
    answer.why = "PTXGEN_DEVICE says so";
    return answer;
  }
  answer.chosen = diagnosis.gpus.empty() ? "emulator" : "cuda:0";
  answer.why =
      diagnosis.gpus.empty() ? std::string("no GPU was found") : diagnosis.gpus.front().name;
  return answer;
}

// "--device host: kernels run with avx2 vectors; there are avx2, sse4, portable (PTXGEN_HOST)"
std::string host_text(const HostFinding& host) {
  if (!host.problem.empty()) return "--device host: " + host.problem;
  if (host.vectors.empty()) {
    return "--device host: kernels run as their fp64 references; this build has no Highway "
           "(package "
           "libhwy-dev) for vectors";
  }
  return format_text("--device host: kernels run with {}; there are {} (PTXGEN_HOST)",
                     host.backend == "scalar" ? "their fp64 references" : host.backend + " vectors",
                     join_text(host.vectors, ", "));
}

std::string described(const Diagnosis& diagnosis, const Answer& answer) {
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
    text += format_text("gpu {}    {}, {}, {} SMs, {} MB\n", gpu.ordinal, gpu.name, gpu.target,
                        gpu.multiprocessors, gpu.memory_bytes / 1000000);
  }
  if (diagnosis.gpus.empty())
    text += "no GPU: PTX can be built, checked, assembled and run on the emulator here\n";
  text += "driver   " +
          std::string(answer.driver == "libcuda"    ? "NVIDIA's libcuda answers"
                      : answer.driver == "stand-in" ? "ptxgen's stand-in for libcuda answers"
                                                    : "no libcuda answers") +
          "\n";
  text += "host     " + host_text(diagnosis.host) + "\n";
  text += "device   without --device: " + answer.chosen + ": " + answer.why + "\n";
  text += "model    without --gpu: the first GPU of the PTX's .target; where there is none, " +
          answer.default_gpu + " (PTXGEN_EMULATED_GPU)\n";
  return text;
}

nlohmann::json as_json(const Diagnosis& diagnosis, const Answer& answer) {
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
  return {{"pieces", std::move(pieces)},
          {"gpus", std::move(gpus)},
          {"driver", answer.driver},
          {"default_gpu", answer.default_gpu},
          {"host",
           {{"backend", diagnosis.host.backend},
            {"vectors", diagnosis.host.vectors},
            {"problem", diagnosis.host.problem}}},
          {"auto", {{"device", answer.chosen}, {"why", answer.why}}}};
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
  command.add_flag("--json", options->json, "one JSON document: pieces, gpus, driver, auto");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.callback([options, &exit_code] {
    const Settings settings = Settings::from_environment();
    const Diagnosis diagnosis = diagnose(settings);
    const Answer answer = answer_of(diagnosis, settings);
    write_output(options->output, options->json ? text_of(as_json(diagnosis, answer))
                                                : described(diagnosis, answer));
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
