// src/cli/commands/run.cpp - ptxgen run: one launch of any PTX
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/args/entry_name.hpp"
#include "cli/args/module_kernels.hpp"
#include "cli/args/run_options.hpp"
#include "cli/commands/cuda_source.hpp"
#include "cli/commands/run_gpu.hpp"
#include "cli/output/finding_text.hpp"
#include "cli/output/printed_buffer.hpp"
#include "cli/output/repro.hpp"
#include "cli/output/run_report.hpp"
#include "ptxgen/emulator/host/arguments.hpp"
#include "ptxgen/emulator/report/profile.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/support/trace.hpp"
#include "runtime/device/launch_trace.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

// Shared by the launches of all schedules.
struct Plan {
  std::string text;
  std::string file;
  ptx::Gpu gpu;
  std::vector<emulator::ArgumentSpec> specs;
  emulator::Options options;
  Trace trace;  // of the emulator; a GPU has its device's
};

// Standard input can be read once only.
void check_standard_input(const RunOptions& options, const Plan& plan) {
  unsigned readers = options.file == "-" ? 1 : 0;
  if (options.suppressions == "-") ++readers;
  bool by_argument = false;
  for (const emulator::ArgumentSpec& spec : plan.specs) {
    if (spec.input != "-") continue;
    ++readers;
    by_argument = true;
  }
  if (readers > 1) throw UsageError("'-' stands for standard input, which can be read once only");
  if (by_argument && options.schedules > 1) {
    throw UsageError(
        "--schedules reads the inputs again for each schedule, which standard input cannot give; "
        "name a file");
  }
}

struct BufferContent {
  std::size_t argument = 0;
  std::string name;
  std::vector<std::byte> bytes;
};

// The result of one schedule.
struct Outcome {
  std::string kernel;
  std::uint64_t seed = 0;
  emulator::Result result;
  std::vector<BufferContent> buffers;
  std::vector<PrintedBuffer> printed;
  std::vector<emulator::SourceCounters> sources;
};

std::vector<BufferContent> contents_of(const emulator::Device& device,
                                       const emulator::Program::Kernel& kernel,
                                       const emulator::Arguments& arguments, const Plan& plan) {
  std::vector<BufferContent> all;
  for (const emulator::Arguments::Buffer& buffer : arguments.buffers()) {
    if (plan.specs[buffer.argument].is_readonly()) continue;
    BufferContent content;
    content.argument = buffer.argument;
    content.name = kernel.parameters[buffer.argument].name;
    content.bytes.resize(static_cast<std::size_t>(buffer.bytes));
    device.read(buffer.address, content.bytes);
    all.push_back(std::move(content));
  }
  return all;
}

std::vector<PrintedBuffer> printed_of(const emulator::Device& device,
                                      const emulator::Program::Kernel& kernel,
                                      const emulator::Arguments& arguments, const Plan& plan) {
  std::vector<PrintedBuffer> all;
  for (const emulator::Arguments::Buffer& buffer : arguments.buffers()) {
    if (!plan.specs[buffer.argument].print) continue;
    all.push_back(print_buffer(buffer.argument + 1, parameter_name(kernel, buffer.argument),
                               buffer.type, buffer.shape,
                               [&](std::uint64_t offset, std::span<std::byte> bytes) {
                                 device.read(buffer.address + offset, bytes);
                               }));
  }
  return all;
}

// A new device for each schedule: fresh buffers, fresh module variables, equal addresses.
// `write_error` is the error if an output file could not be written.
Outcome run_schedule(const Plan& plan, const RunOptions& options, std::uint64_t seed,
                     bool write_outputs, std::unique_ptr<Error>& write_error) {
  emulator::Device device(plan.gpu);
  Span loading(plan.trace, "load", "program");
  emulator::Program program = emulator::Program::load(device, plan.text, plan.file);
  loading.end();
  const emulator::Program::Kernel& kernel = chosen_kernel(program.kernels(), options);
  emulator::Launch launch = launch_of(options, kernel);
  Span filling(plan.trace, "arguments", "program");
  const emulator::Arguments arguments(device, kernel, plan.specs);
  filling.end();
  launch.parameters = arguments.parameters();
  const auto write = [&] {
    if (!write_outputs) return;
    try {
      arguments.write_outputs();
    } catch (const Error& error) {
      write_error = std::make_unique<Error>(error);
    }
  };
  ProgressBar bar(options.schedules > 1 ? format_text("{}, seed {}", kernel.name, seed)
                                        : kernel.name);
  emulator::Options how = plan.options;
  how.seed = seed;
  how.progress = bar.sink();
  Outcome outcome{kernel.name, seed, {}, {}, {}, {}};
  try {
    const Span running(plan.trace, "launch", "program");
    outcome.result = emulator::run(program, launch, how);
    LaunchTrace(plan.trace).add(kernel.name, outcome.result);
  } catch (...) {
    write();
    throw;
  }
  write();
  if (write_outputs) outcome.printed = printed_of(device, kernel, arguments, plan);
  if (options.profile_source) {
    outcome.sources = emulator::by_source(outcome.result.counters, program.module());
  }
  if (options.schedules > 1) outcome.buffers = contents_of(device, kernel, arguments, plan);
  return outcome;
}

bool same(const emulator::RunFinding& a, const emulator::RunFinding& b) {
  return a.rule == b.rule && a.finding.line == b.finding.line &&
         a.finding.kernel == b.finding.kernel && a.has_other == b.has_other &&
         (!a.has_other || a.other.line == b.other.line);
}

// Adds the findings of a further schedule.
void merge(std::vector<emulator::RunFinding>& all, std::vector<emulator::RunFinding> more,
           std::uint64_t seed) {
  for (emulator::RunFinding& finding : more) {
    bool known = false;
    for (emulator::RunFinding& earlier : all) {
      if (!same(earlier, finding)) continue;
      earlier.count += finding.count;
      known = true;
      break;
    }
    if (known) continue;
    finding.finding.details.push_back(
        format_text("not found with the first seed; to see it alone: --seed {}", seed));
    all.push_back(std::move(finding));
  }
}

std::string hex_bytes(const std::vector<std::byte>& bytes, std::size_t from, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = from; i < from + count; ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    text += (text.empty() ? "" : " ");
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

// Where a buffer of two schedules differs, as a finding; count 0 if it does not.
emulator::RunFinding difference(const Outcome& first, const Outcome& second, const BufferContent& a,
                                const BufferContent& b, const std::string& file) {
  emulator::RunFinding found;
  found.count = 0;
  std::size_t offset = 0;
  std::size_t differing = 0;
  for (std::size_t i = 0; i < a.bytes.size(); ++i) {
    if (a.bytes[i] == b.bytes[i]) continue;
    if (differing++ == 0) offset = i;
  }
  if (differing == 0) return found;
  // Show the 32-bit word of the byte.
  const std::size_t word = offset / 4 * 4;
  const std::size_t count = std::min<std::size_t>(4, a.bytes.size() - word);
  const emulator::RuleInfo& rule = emulator::info(emulator::Rule::Nondeterminism);
  found.rule = emulator::Rule::Nondeterminism;
  found.count = 1;
  found.finding.severity = rule.severity;
  found.finding.rule = std::string(rule.name);
  found.finding.file = file;
  found.finding.kernel = first.kernel;
  found.finding.message =
      format_text("argument {} (parameter {}) depends on the schedule: {} of {} differ",
                  a.argument + 1, a.name, differing, count_text(a.bytes.size(), "byte"));
  found.finding.details = {
      format_text("first at offset {}; bytes from {}: {} with --seed {}, {} with --seed {}", offset,
                  word, hex_bytes(a.bytes, word, count), first.seed,
                  hex_bytes(b.bytes, word, count), second.seed),
      "order the accesses that decide it: a barrier, or one fixed order of additions"};
  return found;
}

void compare(std::vector<emulator::RunFinding>& findings, const Outcome& first,
             const Outcome& second, const Plan& plan) {
  const emulator::Rule rule = emulator::Rule::Nondeterminism;
  if (!plan.options.checks.has(rule)) return;
  for (const emulator::Suppression& suppression : plan.options.suppressions) {
    if (suppression.rule == rule && suppression.line == 0 &&
        (suppression.kernel.empty() || suppression.kernel == first.kernel)) {
      return;
    }
  }
  for (std::size_t i = 0; i < first.buffers.size(); ++i) {
    emulator::RunFinding found =
        difference(first, second, first.buffers[i], second.buffers[i], plan.file);
    if (found.count == 0) continue;
    const std::string which = format_text("argument {} ", first.buffers[i].argument + 1);
    bool known = false;
    for (emulator::RunFinding& earlier : findings) {
      if (earlier.rule != rule || !earlier.finding.message.starts_with(which)) continue;
      ++earlier.count;
      known = true;
    }
    if (!known) findings.push_back(std::move(found));
  }
}

// All schedules as one result: findings of all, everything else of the first.
Outcome run_all(const Plan& plan, const RunOptions& options, std::unique_ptr<Error>& write_error) {
  const Span span(plan.trace, "run", "program");
  Outcome all = run_schedule(plan, options, options.seed, true, write_error);
  emulator::Status& status = all.result.status;
  // A stopped schedule has not finished its work; only complete ones are compared.
  const Outcome* baseline = status == emulator::Status::Fault ? nullptr : &all;
  Outcome later;
  std::vector<emulator::RunFinding> differences;
  for (std::uint64_t i = 1; i < options.schedules; ++i) {
    Outcome next = run_schedule(plan, options, options.seed + i, false, write_error);
    all.result.seconds += next.result.seconds;
    merge(all.result.findings, std::move(next.result.findings), next.seed);
    status = std::max(status, next.result.status);
    if (next.result.status == emulator::Status::Fault) continue;
    if (baseline != nullptr) {
      compare(differences, *baseline, next, plan);
    } else {
      later = std::move(next);
      baseline = &later;
    }
  }
  for (emulator::RunFinding& finding : differences) {
    all.result.findings.push_back(std::move(finding));
  }
  if (!differences.empty()) status = std::max(status, emulator::Status::Findings);
  return all;
}

nlohmann::json as_json(const Outcome& outcome, const Plan& plan, const RunOptions& options) {
  nlohmann::json document = {{"kernel", outcome.kernel},
                             {"gpu", plan.gpu.name},
                             {"seed", options.seed},
                             {"schedules", options.schedules},
                             {"status", name_of(outcome.result.status)},
                             {"findings", to_json(outcome.result.findings)},
                             {"unchecked", to_json(outcome.result.unchecked)},
                             {"printf", outcome.result.printed},
                             {"seconds", outcome.result.seconds},
                             {"counters", to_json(outcome.result.counters)}};
  if (options.profile) document["lines"] = lines_json(outcome.result.counters);
  document["groups"] = groups_json(outcome.result.findings);
  if (options.profile_source) document["sources"] = sources_json(outcome.sources);
  if (!outcome.printed.empty()) document["outputs"] = to_json(outcome.printed);
  document["device"] = "emulator";
  return document;
}

// Findings and a last line for people, on standard error.
void describe(const Outcome& outcome, const Plan& plan, bool all) {
  std::cerr << findings_text(outcome.result.findings, all);
  const std::string summary = findings_summary(outcome.result.findings);
  std::cerr << format_text(
      "{}: {}{}{}; {}, {:g} s, emulating {}{}\n", demangled(outcome.kernel),
      name_of(outcome.result.status), summary.empty() ? "" : ", ", summary,
      count_text(outcome.result.counters.warp_instructions, "warp instruction"),
      outcome.result.seconds, plan.gpu.name, not_checked(outcome.result.unchecked));
}

// The arguments with the seeds that `random` without one had: a recording has others.
std::vector<emulator::ArgumentSpec> with_seeds(std::vector<emulator::ArgumentSpec> specs) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].kind != emulator::ArgumentKind::Random || specs[i].seeded) continue;
    specs[i] = emulator::parse_argument(format_text("{}:{}", specs[i].text, i + 1));
  }
  return specs;
}

// On a device of its own: the launch had none that others could open.
void record_failure(const RunOptions& options, const Plan& plan, const std::string& name) {
  const Settings settings = Settings::from_environment();
  write_repro(settings, "run-" + name, [&] {
    const std::vector<emulator::Program::Kernel> kernels =
        kernels_of(ptx::parse(plan.text, plan.file));
    const LaunchGeometry geometry =
        geometry_of(launch_of(options, chosen_kernel(kernels, options)));
    const std::vector<emulator::ArgumentSpec> specs = with_seeds(plan.specs);
    Settings plain = settings;
    plain.repro.clear();
    const Context context(Device::open("emulator:" + std::string(plan.gpu.name), plain));
    return record(context,
                  {.ptx = plan.text,
                   .file = plan.file,
                   .kernel = name,
                   .geometry = geometry,
                   .arguments = specs},
                  {.frames = 1});
  });
}

void run_on_emulator(const RunOptions& options, Plan& plan, int& exit_code) {
  Profile profile(options.profiling);
  plan.trace = profile.start();
  std::unique_ptr<Error> write_error;
  const Outcome outcome = run_all(plan, options, write_error);
  const emulator::Result& result = outcome.result;
  if (options.json) {
    write_output(options.output, text_of(as_json(outcome, plan, options)));
  } else {
    write_output({}, result.printed);
    for (const PrintedBuffer& buffer : outcome.printed) write_output({}, to_text(buffer));
    if (options.profile_source) {
      write_output(options.output, emulator::to_text(outcome.sources));
    } else if (options.profile) {
      write_output(options.output, emulator::annotate(plan.text, result.counters));
    } else if (!options.output.empty()) {
      write_output(options.output, emulator::to_text(result.counters));
    }
    describe(outcome, plan, options.all);
  }
  profile.report(plan.trace);
  exit_code =
      result.status == emulator::Status::Fault ? kFound : verdict(result.findings, options.strict);
  if (exit_code != kDone) record_failure(options, plan, outcome.kernel);
  if (write_error) throw Error(*write_error);
}

nlohmann::json as_json(const GpuOutcome& outcome, const DeviceInfo& info,
                       const DeviceChoice& choice) {
  nlohmann::json document = {{"kernel", outcome.kernel},
                             {"gpu", info.name},
                             {"device", choice.name},
                             {"status", outcome.fault.empty() ? "ok" : "fault"},
                             {"findings", nlohmann::json::array()},
                             {"printf", outcome.printed},
                             {"seconds", outcome.seconds},
                             {"registers", outcome.resources.registers},
                             {"local", outcome.resources.local},
                             {"shared", outcome.resources.static_shared}};
  if (!outcome.buffers.empty()) document["outputs"] = to_json(outcome.buffers);
  if (!outcome.fault.empty()) document["fault"] = outcome.fault;
  return document;
}

void run_on_device(const RunOptions& options, const Plan& plan, const ptx::Module& module,
                   const DeviceChoice& choice, int& exit_code) {
  Settings settings = Settings::from_environment();
  Profile profile(options.profiling);
  profile.apply(settings);
  const Device device = Device::open(choice.name, settings);
  std::unique_ptr<Error> write_error;
  const GpuOutcome outcome =
      run_on_gpu(device, options, plan.text, module, plan.specs, options.json, write_error);
  profile.report(device.trace());
  if (!outcome.fault.empty()) std::cerr << outcome.fault << '\n';
  if (outcome.outputs_lost) {
    std::cerr << "no output file was written: a fault on a GPU takes its memory with it; the "
                 "emulator (--device emulator) keeps what was there\n";
  }
  if (options.json) {
    write_output(options.output, text_of(as_json(outcome, device.info(), choice)));
  } else {
    for (const PrintedBuffer& buffer : outcome.buffers) write_output({}, to_text(buffer));
    std::cerr << format_text("{}: {}; {} registers, {:g} s, on {} ({})\n",
                             demangled(outcome.kernel), outcome.fault.empty() ? "ok" : "fault",
                             outcome.resources.registers, outcome.seconds, device.info().name,
                             choice.name);
  }
  if (write_error) throw Error(*write_error);
  exit_code = outcome.fault.empty() ? kDone : kFound;
}

// The text to run. CUDA C++ is compiled for the device, or for the GPU to be emulated.
void read_program(Plan& plan, const RunOptions& options, const DeviceChoice& choice) {
  plan.file = input_name(options.file);
  if (!is_cuda_source(options.file)) {
    plan.text = read_input(options.file);
    return;
  }
  const Settings settings = Settings::from_environment();
  const std::string target = choice.emulator
                                 ? std::string(chosen_gpu(options.device.gpu, choice, {}).target)
                                 : Device::open(choice.name, settings).info().target;
  CompiledSource compiled = compile_source(options.file, target, settings);
  plan.text = std::move(compiled.ptx);
  plan.file += ".ptx";
  std::cerr << options.file << ": compiled by " << compiled.tool << " for " << target << '\n'
            << compiled.log;
}

void run_command(const RunOptions& options, int& exit_code) {
  const DeviceChoice choice =
      choose_device(options.device.device, emulator_only(options), Settings::from_environment());
  Plan plan;
  plan.options = emulator_options(options);
  for (const std::string& text : options.arguments) {
    plan.specs.push_back(emulator::parse_argument(text));
  }
  check_standard_input(options, plan);
  check_outputs(options, plan.specs);
  read_program(plan, options, choice);
  const ptx::Module module = ptx::parse(plan.text, plan.file);
  if (!choice.emulator) {
    run_on_device(options, plan, module, choice, exit_code);
    return;
  }
  // CUDA C++ was compiled for the GPU that is emulated.
  plan.gpu =
      chosen_gpu(options.device.gpu, choice, is_cuda_source(options.file) ? "" : module.target);
  run_on_emulator(options, plan, exit_code);
}

void add_schedule_options(Command& command, RunOptions& options) {
  command.add_option("--seed", options.seed, "which legal schedule").capture_default_str();
  command
      .add_option("--schedules", options.schedules,
                  "run that many seeds and compare the contents of the buffers")
      .range(std::uint64_t{1}, std::uint64_t{1'000'000})
      .capture_default_str();
  command.add_option("--max-instructions", options.max_instructions, "for each warp")
      .range(std::uint64_t{1}, ~std::uint64_t{0})
      .capture_default_str();
  command
      .add_option("--max-launch-instructions", options.max_launch_instructions,
                  "for all warps together; 0: no limit")
      .capture_default_str();
  command.add_flag("--cooperative", options.cooperative,
                   "launch as cuLaunchCooperativeKernel does, for grid-wide barriers (grid.sync)");
  command.add_flag("--parallel", options.parallel,
                   "blocks run in any order even where the result may depend on it");
}

void add_finding_options(Command& command, RunOptions& options) {
  command.add_flag("--profile", options.profile, "print the PTX annotated with counters");
  command.add_flag("--profile-source", options.profile_source,
                   "print the counters by source line, where the PTX has .loc");
  command.add_flag("--all", options.all,
                   "every finding; without it those of one source line and cause are one entry");
  add_rule_options(command, options);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  Command command(app, "run", "Run a kernel of any PTX, on a GPU or without one");
  command.footer(argument_help(
      "Example: ptxgen run vadd.ptx --grid 4 --block 256 --arg random:f32:1024 iota:f32:1024 "
      "print:f32:1024 u32:1024"));
  add_launch_options(command, *options);
  add_schedule_options(command, *options);
  add_finding_options(command, *options);
  options->device.add_to(command);
  options->profiling.add_to(command);
  command.add_option("-o,--output", options->output,
                     "write there: the JSON, the annotated PTX, else the counters");
  command.add_flag("--no-gates", options->no_gates,
                   "on a GPU: load the PTX whatever `ptxgen check` finds in it");
  command.add_flag("--json", options->json, "one JSON document: findings, printf, counters");
  command.add_flag("--strict", options->strict, "exit with 1 for warnings too");
  command.callback([options, &exit_code] { run_command(*options, exit_code); });
}

}  // namespace ptxgen::cli
