// src/cli/commands/replay.cpp - ptxgen replay: a recording run again, and compared
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/numbers.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime/recording/recording.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct ReplayArguments {
  std::string file;
  std::string flip;
  std::uint64_t last_launch = ~std::uint64_t{0};
  bool list = false;
  std::uint64_t schedule = 0;
  std::uint32_t threads = 0;
  bool parallel = false;
  DeviceOptions device;
  std::string output;
  bool json = false;
};

// FRAME:BUFFER:BIT, the buffer by name or number.
FlippedBit flip_of(const std::string& text, const Recording& recording) {
  const std::size_t first = text.find(':');
  const std::size_t last = text.rfind(':');
  if (first == std::string::npos || last == first) {
    throw UsageError(format_text("--flip {}: expected FRAME:BUFFER:BIT, as in 3:x:17", text));
  }
  FlippedBit flip;
  flip.frame = whole_number("--flip", text.substr(0, first), 0, ~std::uint64_t{0});
  flip.bit = whole_number("--flip", text.substr(last + 1), 0, ~std::uint64_t{0});
  const std::string name = text.substr(first + 1, last - first - 1);
  std::string names;
  for (const RecordedBuffer& buffer : recording.buffers) {
    if (buffer.name == name) return flip;
    ++flip.buffer;
    names += (names.empty() ? "" : ", ") + buffer.name;
  }
  throw UsageError(
      format_text("--flip {}: there is no buffer '{}'; there are: {}", text, name, names));
}

// The emulator models the GPU of the recording, unless the call names one.
Device device_for(const ReplayArguments& options, const Recording& recording,
                  const Settings& settings) {
  DeviceOptions device = options.device;
  DeviceChoice choice = device.choice(settings);
  const bool asked = !device.gpu.empty() || !choice.gpu.empty();
  if (choice.emulator && !asked && !recording.gpu.empty()) {
    return open_device(choice, gpu_of_name(recording.gpu, "the recording"), settings);
  }
  return device.open(choice, settings);
}

void set_schedule(const Context& context, const ReplayArguments& options) {
  const bool asked = options.schedule != 0 || options.threads != 0 || options.parallel;
  if (!is_emulated(context.device().info().kind)) {
    if (asked) {
      throw UsageError(
          "--schedule, --threads and --parallel are for the emulator; a GPU has a "
          "schedule of its own");
    }
    return;
  }
  emulator::Options how = driver::emulated::default_options();
  how.seed = options.schedule;
  how.threads = options.threads;
  how.parallel = options.parallel;
  driver::emulated::set_launch_options(context.handle(), how);
}

// What a program's recording lacks.
std::string notes_of(const Replay& result, const Recording& recording) {
  std::string text;
  for (const std::string& note : recording.notes) text += "not recorded: " + note + "\n";
  if (!recording.cut_off.empty()) text += "not all of it: " + recording.cut_off + "\n";
  if (result.moved != 0) {
    text += format_text(
        "{} {} at other addresses or with other handles than in the recording; those that are "
        "stored "
        "in memory are not translated\n",
        result.moved, count_verb(result.moved, "allocation or object", "allocations or objects"));
  }
  return text;
}

std::string as_text(const Replay& result, const Recording& recording, std::uint64_t last_launch) {
  const std::string_view frame = recording.is_program() ? "launch" : "frame";
  std::string text = format_text(
      "{} of {} as recorded by {}; hash {}\n", result.first ? result.first->frame : result.frames,
      count_text(recording.frame_hashes.size(), frame), recording.made_by, result.hash);
  if (result.first) text += to_text(*result.first, recording) + "\n";
  if (result.differing_launches > 1) {
    text += format_text("{} differ\n", count_text(result.differing_launches, "launch"));
  }
  if (!result.failure.empty()) {
    text += format_text("{} {}: {}\n", frame, result.frames, result.failure);
  }
  const bool all = last_launch >= recording.frame_hashes.size();
  if (result.failure.empty() && !recording.failure.empty() && all) {
    text += format_text("{} {} failed when it was recorded ({}), and does not here\n", frame,
                        recording.frame_hashes.size(), recording.failure);
  }
  text += notes_of(result, recording);
  return text + (result.same ? "the same\n" : "not the same\n");
}

nlohmann::json as_json(const Replay& result, const Recording& recording) {
  nlohmann::json document = {{"same", result.same},       {"frames", result.frames},
                             {"hash", result.hash},       {"expected_hash", recording.hash},
                             {"failure", result.failure}, {"expected_failure", recording.failure},
                             {"first", nullptr}};
  if (recording.is_program()) {
    document.update({{"differing_launches", result.differing_launches},
                     {"moved", result.moved},
                     {"notes", recording.notes},
                     {"cut_off", recording.cut_off}});
  }
  if (!result.first) return document;
  const Divergence& first = *result.first;
  document["first"] = {
      {"frame", first.frame}, {"expected", first.expected}, {"found", first.found}};
  if (recording.is_program()) {
    document["first"].update({{"kernel", first.kernel}, {"buffer", first.buffer}});
  }
  if (first.differing != 0) {
    document["first"].update({{"buffer", first.buffer},
                              {"offset", first.offset},
                              {"differing", first.differing},
                              {"expected_byte", std::to_integer<unsigned>(first.expected_byte)},
                              {"found_byte", std::to_integer<unsigned>(first.found_byte)}});
  }
  return document;
}

std::string size_text(const std::uint32_t (&size)[3]) {
  return format_text("({},{},{})", size[0], size[1], size[2]);
}

std::string effect_text(const std::vector<driver::StepOutput>& outputs,
                        const std::string& failure) {
  std::uint64_t bytes = 0;
  for (const driver::StepOutput& output : outputs) bytes += output.bytes;
  return format_text("changes {} in {}{}", count_text(bytes, "byte"),
                     count_text(outputs.size(), "buffer"),
                     failure.empty() ? "" : ", fails: " + failure);
}

// A line for each launch of a program; those of a graph that is run as one are before its line.
std::string launches_text(const Recording& recording) {
  if (!recording.is_program()) {
    throw UsageError("--list is for recordings of programs; this one has launches of one frame");
  }
  std::string text;
  std::uint64_t number = 0;
  bool in_graph = false;
  for (const driver::Step& step : recording.steps) {
    if (std::holds_alternative<driver::BeginGraphStep>(step)) in_graph = true;
    if (const auto* const graph = std::get_if<driver::EndGraphStep>(&step)) {
      in_graph = false;
      text += format_text("{} graph {}\n", number++, effect_text(graph->outputs, graph->failure));
    }
    const auto* const launch = std::get_if<driver::LaunchStep>(&step);
    if (launch == nullptr) continue;
    const std::string call =
        format_text("{} <<<{}, {}, {}>>>", launch->kernel, size_text(launch->grid),
                    size_text(launch->block), launch->shared_bytes);
    text += in_graph ? format_text("  {}\n", call)
                     : format_text("{} {} {}\n", number++, call,
                                   effect_text(launch->outputs, launch->failure));
  }
  return text + notes_of({}, recording);
}

int replay_command(const ReplayArguments& options) {
  Settings settings = Settings::from_environment();
  settings.repro.clear();  // what fails is recorded
  const Recording recording = parse_recording(read_input(options.file), input_name(options.file));
  if (options.list) {
    write_output(options.output, launches_text(recording));
    return kDone;
  }
  ReplayOptions how;
  how.last_launch = options.last_launch;
  if (!options.flip.empty()) how.flip = flip_of(options.flip, recording);
  const Context context(device_for(options, recording, settings));
  set_schedule(context, options);
  const Replay result = replay(context, recording, how);
  write_output(options.output, options.json ? text_of(as_json(result, recording))
                                            : as_text(result, recording, options.last_launch));
  return result.same ? kDone : kFound;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReplayArguments>();
  Command command(app, "replay",
                  "Run what `ptxgen record` or PTXGEN_RECORD kept, and name the first frame or "
                  "launch that is not the same");
  command.footer(
      "Example: ptxgen replay gemv.json --device cuda:0\n"
      "To see that a difference is found: ptxgen replay gemv.json --flip 3:x:17\n"
      "A program: PTXGEN_RECORD=run.json LD_LIBRARY_PATH=... ./program; ptxgen replay run.json");
  command.add_option("file", options->file, "the recording, - for standard input").required();
  command.add_option("--flip", options->flip,
                     "FRAME:BUFFER:BIT: invert one bit of an input in that frame, or of memory "
                     "before that launch of a program");
  command.add_option("--launch", options->last_launch,
                     "of a program: the number of the last launch that is run");
  command.add_flag("--list", options->list, "of a program: print its launches, and run none");
  command.add_option("--schedule", options->schedule, "on the emulator: which legal schedule")
      .capture_default_str();
  command.add_option("--threads", options->threads, "of the emulator; 0: one for each core")
      .range(0, 1024)
      .capture_default_str();
  command.add_flag(
      "--parallel", options->parallel,
      "on the emulator: blocks run in any order even where the result may depend on it");
  options->device.add_to(command);
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"same\",\"frames\",\"hash\",\"first\",\"failure\",..}");
  command.callback([options, &exit_code] { exit_code = replay_command(*options); });
}

}  // namespace ptxgen::cli
