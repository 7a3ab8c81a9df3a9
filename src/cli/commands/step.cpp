// src/cli/commands/step.cpp - ptxgen step: a launch instruction by instruction
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/args/run_options.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/cuda_source.hpp"
#include "cli/commands/step_launch.hpp"
#include "cli/commands/step_screen.hpp"
#include "cli/output/finding_text.hpp"
#include "cli/output/frame_json.hpp"
#include "cli/output/run_report.hpp"
#include "cli_common/numbers.hpp"
#include "ptxgen/frames.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct StepOptions {
  RunOptions run;
  bool frames = false;
  std::string commands;
  std::string size = "80x24";
  std::vector<std::string> watches;
  std::vector<std::string> breakpoints;
  bool barriers = false;
  std::string only_block;
  std::string only_warp;
  std::uint64_t every = 1;
  std::uint64_t max_frames = 1000;
  std::string no_color;  // of the option, or of NO_COLOR
};

std::vector<std::uint32_t> lines_of(const StepOptions& options) {
  std::vector<std::uint32_t> lines;
  for (const std::string& text : options.breakpoints) {
    lines.push_back(static_cast<std::uint32_t>(whole_number("--break", text, 1, 0xffffffffu)));
  }
  return lines;
}

frames::FrameSize picture_size(const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross == text.npos) throw UsageError("--size " + text + ": expected WIDTHxHEIGHT");
  frames::FrameSize size;
  size.width = whole_number("--size", text.substr(0, cross), frames::kMinFrame.width, 1000);
  size.height = whole_number("--size", text.substr(cross + 1), frames::kMinFrame.height, 1000);
  return size;
}

std::vector<frames::Watch> watches_of(const StepOptions& options, const StepLaunch& launch) {
  std::vector<frames::Watch> watches;
  try {
    for (const std::string& text : options.watches) watches.push_back(frames::parse_watch(text));
    launch.check(watches);
  } catch (const Error& error) {
    throw UsageError("--watch: " + error.message);
  }
  return watches;
}

// The frames that are asked for, one after the other.
void print_frames(const StepOptions& options, StepLaunch& launch, int& exit_code) {
  frames::FrameOptions wanted;
  wanted.watches = watches_of(options, launch);
  wanted.buffers.assign(launch.buffers().begin(), launch.buffers().end());
  wanted.lines = lines_of(options);
  wanted.barriers = options.barriers;
  wanted.every = options.every;
  wanted.max_frames = options.max_frames;
  if (wanted.one_block = !options.only_block.empty(); wanted.one_block) {
    wanted.block = whole_number("--only-block", options.only_block, 0, ~std::uint64_t{0});
  }
  if (wanted.one_warp = !options.only_warp.empty(); wanted.one_warp) {
    wanted.warp = static_cast<std::uint32_t>(whole_number("--only-warp", options.only_warp, 0, 31));
  }
  frames::FrameStyle style;
  style.size = picture_size(options.size);
  style.source = launch.text();
  style.breakpoints = wanted.lines;
  frames::FrameRecorder recorder(launch.device(), wanted);
  const emulator::Result result = launch.run_first(recorder);
  recorder.finish(result);
  std::string text;
  for (const frames::Frame& frame : recorder.frames()) {
    text += frames::to_text(frame, style);
    text += '\n';
    style.previous = &frame;
  }
  if (options.run.json) {
    text = text_of({{"frames", to_json(recorder.frames())},
                    {"dropped", recorder.dropped()},
                    {"status", name_of(result.status)},
                    {"findings", to_json(result.findings)}});
  }
  write_output(options.run.output, text);
  if (recorder.dropped() != 0) {
    std::cerr << format_text(
        "the {} newest frames; {} before them were left out (--max-frames, or --break, --barriers, "
        "--only-block, --only-warp, --every for fewer)\n",
        options.max_frames, recorder.dropped());
  }
  std::cerr << findings_text(result.findings, options.run.all);
  exit_code = result.status == emulator::Status::Fault
                  ? kFound
                  : verdict(result.findings, options.run.strict);
}

void debug(const StepOptions& options, StepLaunch& launch) {
  frames::Debugger debugger(launch, watches_of(options, launch));
  for (const std::uint32_t line : lines_of(options)) {
    if (std::ranges::find(debugger.lines(), line) == debugger.lines().end()) {
      debugger.toggle_line(line);
    }
  }
  debugger.at_barriers = options.barriers;
  if (!options.commands.empty()) {
    StepScript script(launch, options.commands, picture_size(options.size));
    debugger.run(script);
    if (!options.run.json) {
      write_output(options.run.output, script.output());
      return;
    }
    nlohmann::json stops = nlohmann::json::array();
    for (const StepScript::Stop& stop : script.stops()) {
      stops.push_back({{"reason", stop.reason}, {"frame", to_json(stop.frame)}});
    }
    write_output(options.run.output, text_of({{"stops", stops}}));
    return;
  }
  if (options.run.json)
    throw UsageError("--json prints frames: use --frames or --commands with it");
  StepScreen screen(launch, options.no_color.empty() || options.no_color == "false");
  debugger.run(screen);
}

void step_command(const StepOptions& options, int& exit_code) {
  const Settings settings = Settings::from_environment();
  const DeviceChoice choice = choose_device(options.run.device.device, "step", settings);
  if (is_cuda_source(options.run.file)) {
    throw UsageError("step shows PTX; compile '" + options.run.file +
                     "' first: nvcc -ptx, or ptxgen run, which does it by itself");
  }
  std::vector<emulator::ArgumentSpec> specs;
  for (const std::string& text : options.run.arguments) {
    specs.push_back(emulator::parse_argument(text));
    if (specs.back().input == "-") {
      throw UsageError("--arg " + text +
                       ": step reads its inputs again for each run of the launch, which standard "
                       "input cannot give; name a file");
    }
  }
  const std::string file = input_name(options.run.file);
  std::string text = read_input(options.run.file);
  const ptx::Gpu gpu = chosen_gpu(options.run.device.gpu, choice, ptx::parse(text, file).target);
  StepLaunch launch(options.run, std::move(text), file, gpu, std::move(specs));
  if (options.frames) {
    print_frames(options, launch, exit_code);
  } else {
    debug(options, launch);
  }
}

void add_frame_options(Command& command, StepOptions& options) {
  command.add_flag("--frames", options.frames, "print frames as text instead of the debugger");
  command.add_option("--commands", options.commands,
                     "run these commands of the debugger, separated by semicolons, and print the "
                     "frame after each that moves: 'break 12; continue; watch %f1; step 3; back'");
  command
      .add_option("--watch", options.watches,
                  "register, shared variable or buffer: NAME[FIRST..LAST]:TYPE, repeatable")
      .one_value_each();
  command.add_option("--break", options.breakpoints, "stop before this PTX line, repeatable")
      .one_value_each();
  command.add_flag("--barriers", options.barriers, "stop before barriers");
  command.add_option("--only-block", options.only_block,
                     "with --frames: frames of this block alone, by number, x fastest");
  command.add_option("--only-warp", options.only_warp,
                     "with --frames: frames of this warp of a block alone");
  command.add_option("--every", options.every, "with --frames: each N-th of them")
      .range(1, ~std::uint64_t{0})
      .capture_default_str();
  command.add_option("--max-frames", options.max_frames, "with --frames: the newest N of them")
      .range(1, 1'000'000)
      .capture_default_str();
  command.add_option("--size", options.size, "WIDTHxHEIGHT of printed frames")
      .capture_default_str();
  command.add_flag("--no-color", options.no_color, "NO_COLOR", "no colours in the terminal");
}

}  // namespace

void add_step(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<StepOptions>();
  Command command(app, "step",
                  "Step through a launch on the emulator, forward and back, in a terminal");
  command.footer(argument_help(
      "No files of arguments are written.\n"
      "Example: ptxgen step vadd.ptx --grid 4 --block 256 --arg print:f32:1024 iota:f32:1024 "
      "iota:f32:1024 u32:1024 --watch %f1"));
  RunOptions& run = options->run;
  add_launch_options(command, run);
  add_frame_options(command, *options);
  command.add_option("--seed", run.seed, "which legal schedule").capture_default_str();
  command.add_option("--max-instructions", run.max_instructions, "for each warp")
      .range(std::uint64_t{1}, ~std::uint64_t{0})
      .capture_default_str();
  command.add_flag("--cooperative", run.cooperative,
                   "launch as cuLaunchCooperativeKernel does, for grid-wide barriers (grid.sync)");
  add_rule_options(command, run);
  run.device.add_to(command);
  command.add_option("-o,--output", run.output, "write the printed frames there");
  command.add_flag("--json", run.json, "one JSON document: the frames, or the stops of --commands");
  command.add_flag("--strict", run.strict, "with --frames: exit with 1 for warnings too");
  command.callback([options, &exit_code] { step_command(*options, exit_code); });
}

}  // namespace ptxgen::cli
