// src/cli/commands/coverage_runs.cpp - launches whose coverage is recorded
#include "cli/commands/coverage_runs.hpp"

#include <algorithm>
#include <cstring>

#include "cli/commands/commands.hpp"
#include "cli_common/numbers.hpp"
#include "coverage/recorder.hpp"
#include "ptxgen/runtime/recording/recording.hpp"
#include "runtime/recording/frames.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

using coverage::WatchedBuffer;

constexpr std::uint64_t kRowOfVector = 256;  // elements of a row, for buffers without a shape

// A buffer of one dimension in rows, so that it is a picture.
void shape_as_vector(WatchedBuffer& buffer, std::uint64_t elements) {
  buffer.columns = std::clamp<std::uint64_t>(elements, 1, kRowOfVector);
  buffer.rows = (elements + buffer.columns - 1) / buffer.columns;
}

// Of a matrix whose elements are counted by two parameters: k = 300, n = 200 and 60000 elements.
void shape_by_parameters(WatchedBuffer& buffer, std::uint64_t elements,
                         std::span<const std::uint64_t> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      if (values[i] < 2 || values[j] < 2 || elements / values[j] != values[i]) continue;
      if (values[i] * values[j] != elements) continue;
      buffer.rows = values[i];
      buffer.columns = values[j];
      return;
    }
  }
  shape_as_vector(buffer, elements);
}

// Applies the choice for a buffer of that name; false if others are chosen.
bool chosen(WatchedBuffer& buffer, std::span<const CellChoice> choices) {
  if (choices.empty()) return true;
  const auto found = std::ranges::find(choices, buffer.name, &CellChoice::buffer);
  if (found == choices.end()) return false;
  if (found->rows != 0) {
    buffer.rows = found->rows;
    buffer.columns = found->columns;
  }
  return true;
}

void check_choices(std::span<const CellChoice> choices, const std::vector<std::string>& names) {
  for (const CellChoice& choice : choices) {
    if (std::ranges::find(names, choice.buffer) != names.end()) continue;
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    throw UsageError(format_text("--cells {}: there is no buffer '{}'; there are: {}",
                                 choice.buffer, choice.buffer, known));
  }
}

void note_findings(const emulator::Result& result, std::string_view kernel,
                   std::string_view case_name, RunNotes& notes) {
  for (const emulator::RunFinding& found : result.findings) {
    if (found.finding.severity != Severity::Error) continue;
    notes.wrong.push_back(format_text("{} {}: {}", kernel, case_name, emulator::to_text(found)));
    return;  // the first says that the run is not to be trusted; `ptxgen run` shows all
  }
}

void note_uncounted(const coverage::CellRecorder& recorder, std::string_view kernel,
                    RunNotes& notes) {
  if (recorder.uncounted().empty()) return;
  std::string note =
      format_text("{}: accesses of {} are not in the cells", kernel, recorder.uncounted());
  if (std::ranges::find(notes.notes, note) == notes.notes.end()) {
    notes.notes.push_back(std::move(note));
  }
}

emulator::Dim3 emulated(const Dim3& size) { return {size.x, size.y, size.z}; }

/// A recording's buffers on an emulated device.
class RecordedMemory {
 public:
  RecordedMemory(emulator::Device& device, const Recording& recording) {
    for (const RecordedBuffer& buffer : recording.buffers) {
      const std::uint64_t address =
          device.allocate(std::max<std::uint64_t>(buffer.bytes, 1), buffer.name);
      addresses_.push_back(address);
      if (buffer.bytes != 0) device.write(address, content_of(buffer, 0));
    }
  }

  [[nodiscard]] std::uint64_t address(std::size_t buffer) const { return addresses_[buffer]; }
  [[nodiscard]] std::vector<std::byte> block_of(const RecordedLaunch& launch) const {
    std::vector<std::byte> block = launch.block;
    for (const RecordedPointer& pointer : launch.pointers) {
      const std::uint64_t value = addresses_[pointer.buffer] + pointer.offset;
      std::memcpy(block.data() + pointer.at, &value, sizeof(value));
    }
    return block;
  }

 private:
  std::vector<std::uint64_t> addresses_;
};

std::vector<WatchedBuffer> watched_operands(const Recording& recording,
                                            const RecordedMemory& memory,
                                            const KernelDescription& kernel,
                                            std::span<const std::uint64_t> values,
                                            std::span<const CellChoice> choices) {
  const ErasedValue spec = kernel.make_spec(values);
  std::vector<WatchedBuffer> watched;
  std::vector<std::string> names;
  for (std::size_t b = 0; b < recording.buffers.size(); ++b) {
    const RecordedBuffer& recorded = recording.buffers[b];
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
      if (kernel.arguments[i].name != recorded.name || recorded.bytes == 0) continue;
      const ElementInfo& type = info(kernel.type_of(spec.get(), i));
      const std::uint64_t elements = recorded.bytes / type.block_bytes;
      WatchedBuffer buffer{
          recorded.name, memory.address(b), recorded.bytes, type.block_bytes, 0, 0};
      shape_by_parameters(buffer, elements, values);
      names.push_back(buffer.name);
      if (chosen(buffer, choices)) watched.push_back(std::move(buffer));
    }
  }
  check_choices(choices, names);
  return watched;
}

// The counts are those of another run of the same case, which has them already.
void clear_counts(coverage::CaseCounts& counts) {
  counts.launches = 0;
  for (auto* const numbers : {&counts.blocks, &counts.edges, &counts.taken, &counts.not_taken}) {
    std::ranges::fill(*numbers, 0);
  }
}

WatchedBuffer watched_argument(const emulator::Arguments::Buffer& buffer, const std::string& name) {
  const unsigned bits = ptx::bits(buffer.type);
  WatchedBuffer watched{name, buffer.address, buffer.bytes, bits < 8 ? 1 : bits / 8, 0, 0};
  const std::uint64_t elements = buffer.bytes / watched.element_bytes;
  if (buffer.shape.size() < 2) {
    shape_as_vector(watched, elements);
  } else {
    watched.columns = buffer.shape.back();
    watched.rows = elements / watched.columns;
  }
  return watched;
}

}  // namespace

LaunchCoverage::LaunchCoverage(const Context& context, std::string of, std::string case_name)
    : context_(context.handle()), of_(std::move(of)), case_name_(std::move(case_name)) {
  (void)driver::emulated::observe_launches(context_, &LaunchCoverage::report, this);
}

LaunchCoverage::~LaunchCoverage() {
  (void)driver::emulated::observe_launches(context_, nullptr, nullptr);
}

coverage::Coverage LaunchCoverage::take() {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw Error(Stage::Emulate, "coverage", failure_);
  return std::move(coverage_);
}

void LaunchCoverage::report(void* user, const driver::emulated::LaunchReport& launch) {
  auto& self = *static_cast<LaunchCoverage*>(user);
  const std::lock_guard lock(self.mutex_);
  // The driver's thread must not see an exception.
  try {
    self.add(launch);
  } catch (const std::exception& error) {
    self.failure_ = error.what();
  }
}

void LaunchCoverage::add(const driver::emulated::LaunchReport& launch) {
  coverage::KernelCoverage kernel =
      coverage::of_launch(*launch.module, launch.kernel, launch.result.counters, case_name_);
  kernel.of = of_;
  coverage::add(coverage_, std::move(kernel));
}

std::vector<CellChoice> cell_choices(const std::vector<std::string>& texts) {
  std::vector<CellChoice> choices;
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    CellChoice& choice = choices.emplace_back();
    choice.buffer = text.substr(0, colon);
    if (colon == std::string::npos) continue;
    const std::string shape = text.substr(colon + 1);
    const std::size_t times = shape.find('x');
    if (times == std::string::npos) {
      throw UsageError(
          format_text("--cells {}: expected NAME or NAME:ROWSxCOLUMNS, as in a:256x256", text));
    }
    constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 40;
    choice.rows = whole_number("--cells", shape.substr(0, times), 1, kMaxExtent);
    choice.columns = whole_number("--cells", shape.substr(times + 1), 1, kMaxExtent);
  }
  return choices;
}

coverage::Coverage kernel_cells(const std::string& device, const ptx::Gpu& gpu,
                                const KernelDescription& kernel,
                                std::span<const std::uint64_t> values,
                                std::span<const CellChoice> choices, std::string_view case_name,
                                std::uint64_t seed, const Settings& settings, RunNotes& notes) {
  coverage::Coverage result;
  Recording recording;
  try {
    recording = record(device, kernel, values, {.seed = seed, .frames = 1}, settings);
  } catch (const Error& error) {
    if (error.code != "not-recorded") throw;
    notes.notes.push_back(format_text("{}: no cells: {}", kernel.name, error.message));
    return result;
  }
  emulator::Device emulated_device(gpu);
  const RecordedMemory memory(emulated_device, recording);
  coverage::CellRecorder recorder(watched_operands(recording, memory, kernel, values, choices));
  for (const RecordedLaunch& launch : recording.launches) {
    emulator::Program program =
        emulator::Program::load(emulated_device, recording.modules[launch.module]);
    const std::vector<std::byte> block = memory.block_of(launch);
    emulator::Launch request;
    request.kernel = launch.kernel;
    request.grid = emulated(launch.geometry.grid);
    request.block = emulated(launch.geometry.block);
    request.cluster = emulated(launch.geometry.cluster);
    request.dynamic_shared_bytes = launch.geometry.dynamic_shared_bytes;
    request.cooperative = launch.geometry.cooperative;
    request.parameters = block;
    const emulator::Result run = emulator::observe(program, request, recorder);
    note_findings(run, launch.kernel, case_name, notes);
    coverage::KernelCoverage code =
        coverage::of_launch(program.module(), launch.kernel, run.counters, case_name);
    code.of = std::string(kernel.name);
    clear_counts(code.cases.front());
    coverage::add(result, std::move(code));
  }
  note_uncounted(recorder, kernel.name, notes);
  if (!result.kernels.empty()) result.kernels.back().cases.front().cells = recorder.take();
  return result;
}

coverage::Coverage ptx_coverage(const RunOptions& options, const ptx::Gpu& gpu,
                                const std::string& text, std::span<const CellChoice> choices,
                                RunNotes& notes) {
  emulator::Device device(gpu);
  emulator::Program program = emulator::Program::load(device, text, input_name(options.file));
  const emulator::Program::Kernel& kernel = chosen_kernel(program.kernels(), options);
  emulator::Launch launch = launch_of(options, kernel);
  std::vector<emulator::ArgumentSpec> specs;
  for (const std::string& spec : options.arguments) {
    specs.push_back(emulator::parse_argument(spec));
  }
  const emulator::Arguments arguments(device, kernel, specs);
  launch.parameters = arguments.parameters();
  std::vector<WatchedBuffer> watched;
  std::vector<std::string> names;
  for (const emulator::Arguments::Buffer& buffer : arguments.buffers()) {
    names.push_back(parameter_name(kernel, buffer.argument));
    WatchedBuffer one = watched_argument(buffer, names.back());
    if (chosen(one, choices)) watched.push_back(std::move(one));
  }
  check_choices(choices, names);
  std::string case_name = format_text("grid {} block {}", options.grid,
                                      options.block.empty() ? "required" : options.block);
  for (const std::string& argument : options.arguments) case_name += " " + argument;
  coverage::CellRecorder recorder(std::move(watched));
  const emulator::Result run = emulator::observe(program, launch, recorder);
  note_findings(run, kernel.name, case_name, notes);
  note_uncounted(recorder, kernel.name, notes);
  coverage::KernelCoverage code =
      coverage::of_launch(program.module(), kernel.name, run.counters, case_name);
  code.cases.front().cells = recorder.take();
  coverage::Coverage result;
  coverage::add(result, std::move(code));
  return result;
}

}  // namespace ptxgen::cli
