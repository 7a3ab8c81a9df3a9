// src/cli/cmd_gemv.cpp - ptxgen gemv: generate, check, run, compare
#include <nlohmann/json.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <new>

#include "cli/run_report.hpp"
#include "ptxgen/emulator/profile.hpp"
#include "ptxgen/kernels/gemv_coalesced.hpp"
#include "ptxgen/kernels/gemv_strided.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::cli {

namespace {

struct Options {
  std::vector<std::string> settings;
  std::string impl = "auto";
  std::uint64_t seed = 0;
  std::string target;
  std::string gpu;
  std::string device;
  std::string output;
  bool json = false;
  bool strict = false;
};

struct Shape {
  std::uint32_t k = 4096;
  std::uint32_t n = 4096;
};

constexpr std::string_view kParameters =
    "k (1..4294967295), n (1..4294967295), layout (T or R), dtype (f32, f16 or bf16)";

std::uint32_t whole_number(const std::string& name, const std::string& text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end || value == 0) {
    throw UsageError("-p " + name + "=" + text + ": wants a whole number in 1..4294967295");
  }
  return value;
}

Shape shape_of(const Options& options) {
  Shape shape;
  for (const std::string& setting : options.settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("-p wants NAME=VALUE, not '" + setting + "'");
    }
    const std::string name = setting.substr(0, equals);
    const std::string value = setting.substr(equals + 1);
    if (name == "k") {
      shape.k = whole_number(name, value);
    } else if (name == "n") {
      shape.n = whole_number(name, value);
    } else if (name == "layout") {
      if (value == "R") {
        throw UsageError(
            "-p layout=R: the library has no GEMV for W[n x k] yet; there is T, A[k x n] "
            "row-major");
      }
      if (value != "T") throw UsageError("-p layout=" + value + ": wants T or R");
    } else if (name == "dtype") {
      if (value == "f16" || value == "bf16") {
        throw UsageError("-p dtype=" + value + ": the library has no such GEMV yet; there is f32");
      }
      if (value != "f32") throw UsageError("-p dtype=" + value + ": wants f32, f16 or bf16");
    } else {
      throw UsageError("gemv has no parameter '" + name + "'; it has: " + std::string(kParameters));
    }
  }
  return shape;
}

// Why this kernel and this geometry.
struct Plan {
  std::string kernel;
  std::string reason;
  BuiltKernel built;
  LaunchGeometry geometry;
  KernelCost cost;
  std::uint64_t roundings = 0;
};

template <class Spec>
Plan plan_with(const Shape& shape, const ptx::Target& target, std::string reason) {
  const Spec spec{shape.k, shape.n};
  return {std::string(Spec::kName), std::move(reason), spec.build(target),
          spec.geometry(),          spec.cost(),       spec.roundings()};
}

Plan make_plan(const Options& options, const Shape& shape, const ptx::Target& target) {
  if (options.impl == "auto") {
    return plan_with<GemvCoalesced>(shape, target,
                                    "auto: consecutive lanes read consecutive columns");
  }
  if (options.impl == "coalesced") return plan_with<GemvCoalesced>(shape, target, "asked for");
  if (options.impl == "strided") return plan_with<GemvStrided>(shape, target, "asked for");
  if (options.impl == "cublas") {
    throw UsageError(
        "--impl cublas: needs a GPU, and this version runs on the emulator only; there are: auto, "
        "coalesced, strided");
  }
  throw UsageError("--impl " + options.impl +
                   ": there is no such GEMV; there are: auto, coalesced, strided");
}

// Microseconds of each stage, in order.
class Stages {
 public:
  template <class Work>
  auto timed(const char* name, Work&& work) {
    struct Stop {
      Stages* stages;
      const char* name;
      std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
      ~Stop() {
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - begin;
        stages->list.emplace_back(name, took.count());
      }
    };
    const Stop stop{this, name};
    return work();
  }
  std::vector<std::pair<std::string, double>> list;
};

// 64-bit FNV-1a: to see whether two runs had the same text, nothing more.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string digits(16, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    digits[15 - i] = "0123456789abcdef"[hash >> (4 * i) & 15];
  }
  return "fnv1a64:" + digits;
}

// Numbers in [-1, 1) with 24 bits, the same on every host: splitmix64.
std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    values[i] = static_cast<float>(static_cast<std::int32_t>(z >> 40) - (1 << 23)) * 0x1p-23f;
  }
  return values;
}

struct Comparison {
  double nmse = 0;       // sum of squared errors / sum of squares of the reference
  double max_error = 0;  // largest |y - reference|
  double bound = 0;      // what is allowed where the error is nearest to, or beyond, its bound
  double worst = 0;      // the largest error / bound
  std::uint64_t outside = 0;
};

Comparison compare(std::span<const float> y, const GemvReference& reference,
                   std::uint64_t roundings) {
  Comparison made;
  double errors = 0;
  double squares = 0;
  for (std::size_t j = 0; j < y.size(); ++j) {
    const double error = std::abs(double{y[j]} - reference.y[j]);
    const double bound = gemv_error_bound(reference.magnitude[j], roundings);
    errors += error * error;
    squares += reference.y[j] * reference.y[j];
    // Not <=: a NaN lies outside.
    const bool inside = error <= bound;
    if (!inside) ++made.outside;
    double share = bound > 0 ? error / bound : (inside ? 0 : std::numeric_limits<double>::max());
    if (!std::isfinite(share)) share = std::numeric_limits<double>::max();
    if (j == 0 || share > made.worst) {
      made.worst = share;
      made.bound = bound;
    }
    made.max_error = std::isnan(error) ? error : std::max(made.max_error, error);
  }
  made.nmse = squares > 0 ? errors / squares : errors;
  return made;
}

struct Job {
  Plan plan;
  Shape shape;
  ptx::Gpu gpu;
  std::string target;
  std::string hash;
  std::vector<Finding> check;
  emulator::Result result;
  Comparison comparison;
  Stages stages;
  bool ok = false;
};

std::uint64_t upload(emulator::Device& device, std::span<const float> values,
                     std::string_view name) {
  const std::uint64_t address = device.allocate(values.size_bytes(), name);
  device.write(address, std::as_bytes(values));
  device.protect(address);
  return address;
}

template <class... Args>
std::vector<std::byte> packed(const Args&... arguments) {
  const auto block = GemvCoalesced::KernelType::pack(arguments...);
  return {block.data(), block.data() + block.size()};
}

emulator::Dim3 emulated(const Dim3& size) { return {size.x, size.y, size.z}; }

void run_job(Job& job, const Options& options) {
  const std::uint32_t k = job.shape.k;
  const std::uint32_t n = job.shape.n;
  const std::uint64_t elements = std::uint64_t{k} * n;
  Stages& stages = job.stages;
  emulator::Device device(job.gpu);
  emulator::Program program = stages.timed(
      "load", [&] { return emulator::Program::load(device, job.plan.built.module()); });
  std::vector<float> a;
  std::vector<float> x;
  stages.timed("inputs", [&] {
    a = random_values(elements, options.seed);
    x = random_values(k, ~options.seed);
  });
  std::vector<float> y(n);
  const std::uint64_t y_address = device.allocate(std::uint64_t{4} * n, "y");
  std::vector<std::byte> arguments;
  stages.timed("upload", [&] {
    const std::uint64_t a_address = upload(device, a, "A");
    const std::uint64_t x_address = upload(device, x, "x");
    arguments = packed(DeviceAddress<f32>{y_address}, DeviceAddress<f32>{a_address},
                       DeviceAddress<f32>{x_address}, k, n);
  });
  ProgressBar bar("gemv");
  emulator::Options how;
  how.progress = bar.sink();
  emulator::Launch launch;
  launch.kernel = job.plan.kernel;
  launch.grid = emulated(job.plan.geometry.grid);
  launch.block = emulated(job.plan.geometry.block);
  launch.dynamic_shared_bytes = job.plan.geometry.dynamic_shared_bytes;
  launch.parameters = arguments;
  stages.timed("run", [&] { job.result = emulator::run(program, launch, how); });
  device.read(y_address, std::as_writable_bytes(std::span(y)));
  const GemvReference reference =
      stages.timed("reference", [&] { return gemv_reference(a, x, k, n); });
  stages.timed("compare", [&] { job.comparison = compare(y, reference, job.plan.roundings); });
  job.ok = job.comparison.outside == 0 && job.result.status == emulator::Status::Ok;
}

nlohmann::json as_json(const Job& job, const Options& options) {
  nlohmann::json stages = nlohmann::json::object();
  for (const auto& [name, microseconds] : job.stages.list) stages[name] = microseconds;
  const LaunchGeometry& geometry = job.plan.geometry;
  nlohmann::json findings = to_json(job.result.findings);
  for (const Finding& finding : job.check) findings.push_back(to_json(finding));
  return {{"nmse", job.comparison.nmse},
          {"max_error", job.comparison.max_error},
          {"bound", job.comparison.bound},
          {"worst_error_over_bound", job.comparison.worst},
          {"outside_bound", job.comparison.outside},
          {"ok", job.ok},
          {"k", job.shape.k},
          {"n", job.shape.n},
          {"seed", options.seed},
          {"gpu", job.gpu.name},
          {"status", name_of(job.result.status)},
          {"plan",
           {{"kernel", job.plan.kernel},
            {"reason", job.plan.reason},
            {"target", job.target},
            {"layout", "T"},
            {"dtype", "f32"},
            {"grid", {geometry.grid.x, geometry.grid.y, geometry.grid.z}},
            {"block", {geometry.block.x, geometry.block.y, geometry.block.z}},
            {"bytes", job.plan.cost.bytes()},
            {"flops", job.plan.cost.flops}}},
          {"ptx_hash", job.hash},
          {"stages_us", std::move(stages)},
          {"findings", std::move(findings)},
          {"counters", to_json(job.result.counters)}};
}

std::string number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4);
  return {text, end.ptr};
}

std::string described(const Job& job, const Options& options) {
  std::string text;
  const auto row = [&text](std::string_view name, const std::string& value) {
    text += name;
    text.append(name.size() < 20 ? 20 - name.size() : 1, ' ');
    text += value + "\n";
  };
  const LaunchGeometry& geometry = job.plan.geometry;
  row("y = x A", "1x" + std::to_string(job.shape.k) + " times " + std::to_string(job.shape.k) +
                     "x" + std::to_string(job.shape.n) + ", f32, seed " +
                     std::to_string(options.seed));
  row("kernel", job.plan.kernel + " (" + job.plan.reason + ")");
  row("emulated on", std::string(job.gpu.full_name) + ", PTX for " + job.target);
  row("launch", std::to_string(geometry.grid.x) + " blocks of " + std::to_string(geometry.block.x) +
                    " threads");
  row("PTX", job.hash);
  row("result", std::string(job.ok ? "right" : "WRONG") + ": largest error " +
                    number(job.comparison.max_error) + ", at most " +
                    number(100 * job.comparison.worst) + " % of the error bound, nmse " +
                    number(job.comparison.nmse));
  if (job.comparison.outside != 0) {
    row("", std::to_string(job.comparison.outside) + " of " + std::to_string(job.shape.n) +
                " elements lie outside their bound, the worst has the bound " +
                number(job.comparison.bound));
  }
  row("status", std::string(name_of(job.result.status)) + ", " +
                    std::to_string(job.result.findings.size()) + " findings");
  text += emulator::to_text(job.result.counters);
  for (const auto& [name, microseconds] : job.stages.list) {
    row("time, " + name, number(microseconds / 1000) + " ms");
  }
  return text;
}

void gemv_command(const Options& options, int& exit_code) {
  check_device(options.device);
  const Shape shape = shape_of(options);
  const ptx::Gpu gpu = chosen_gpu(options.gpu, options.target.empty() ? "sm_89" : options.target);
  const std::string target_name = options.target.empty() ? std::string(gpu.target) : options.target;
  const ptx::Target* target = ptx::find_target(target_name);
  if (target == nullptr) {
    std::string known;
    for (const ptx::Target& row : ptx::targets()) known += " " + std::string(row.name);
    throw UsageError("there is no target '" + target_name + "'; there are:" + known);
  }
  if (std::uint64_t{shape.k} * shape.n > gpu.memory_bytes / 4) {
    throw UsageError("-p k=" + std::to_string(shape.k) + " -p n=" + std::to_string(shape.n) +
                     ": A does not fit into the " + std::to_string(gpu.memory_bytes) +
                     " bytes of " + std::string(gpu.name));
  }

  Stages stages;
  Plan plan = stages.timed("generate", [&] { return make_plan(options, shape, *target); });
  const std::string text = plan.built.ptx();
  Job job{
      std::move(plan), shape, gpu, std::string(target->name), hash_of(text), {}, {}, {}, {}, false};
  job.stages = std::move(stages);
  job.stages.timed("check", [&] {
    job.check = ptx::verify(ptx::parse(text, job.plan.kernel + ".ptx"),
                            {.target = {}, .entry = job.plan.kernel});
  });
  exit_code = verdict(job.check, options.strict);
  if (exit_code == kDone) {
    try {
      run_job(job, options);
    } catch (const std::bad_alloc&) {
      throw UsageError("this machine has too little memory for a matrix of " +
                       std::to_string(std::uint64_t{shape.k} * shape.n) + " elements");
    }
    exit_code = job.ok ? verdict(job.result.findings, options.strict) : kFound;
  }
  if (options.json) {
    write_output(options.output, text_of(as_json(job, options)));
    return;
  }
  for (const Finding& finding : job.check) std::cerr << to_text(finding) << '\n';
  for (const emulator::RunFinding& finding : job.result.findings) {
    std::cerr << to_text(finding) << '\n';
  }
  write_output(options.output, described(job, options));
}

}  // namespace

void add_gemv(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  Command command(app, "gemv",
                  "The main job: generate y = x A, check it, run it, compare it with fp64");
  command.footer("Example: ptxgen gemv -p k=4096 -p n=4096 --json");
  command
      .add_option("-p", options->settings,
                  "NAME=VALUE, repeatable: k, n, layout=T|R, dtype=f32|f16|bf16")
      .one_value_each();
  command.add_option("--impl", options->impl, "auto, coalesced or strided").capture_default_str();
  command.add_option("--seed", options->seed, "of the random inputs").capture_default_str();
  command.add_option("--target", options->target, "generate for it (default: the GPU's own)");
  command.add_option("--gpu", options->gpu, "the GPU to model: h200, ..., or sm_90 and the like");
  command.add_option("--device", options->device, "auto, emulator or cuda:N");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: nmse, max_error, bound, ok, plan, stages_us, counters");
  command.add_flag("--strict", options->strict, "exit with 1 for warnings too");
  command.callback([options, &exit_code] { gemv_command(*options, exit_code); });
}

}  // namespace ptxgen::cli
