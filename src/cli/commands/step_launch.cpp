// src/cli/commands/step_launch.cpp - the launch that ptxgen step shows
#include "cli/commands/step_launch.hpp"

namespace ptxgen::cli {

StepLaunch::StepLaunch(const RunOptions& options, std::string text, std::string file, ptx::Gpu gpu,
                       std::vector<emulator::ArgumentSpec> specs)
    : options_(options),
      text_(std::move(text)),
      file_(std::move(file)),
      gpu_(gpu),
      specs_(std::move(specs)),
      how_(emulator_options(options)) {
  how_.seed = options.seed;
  prepare();
  // Sizes that are wrong are reported before a terminal is opened.
  static_cast<void>(launch_of(options_, *program_->find_kernel(kernel_)));
}

// Fresh buffers and module variables, at the same addresses in each run.
void StepLaunch::prepare() {
  buffers_.clear();
  arguments_.reset();
  program_.reset();
  device_.emplace(gpu_);
  program_.emplace(emulator::Program::load(*device_, text_, file_));
  const emulator::Program::Kernel& kernel = chosen_kernel(program_->kernels(), options_);
  kernel_ = kernel.name;
  arguments_.emplace(*device_, kernel, specs_);
  for (const emulator::Arguments::Buffer& buffer : arguments_->buffers()) {
    frames::Buffer& shown = buffers_.emplace_back();
    shown.name = parameter_name(kernel, buffer.argument);
    shown.address = buffer.address;
    shown.type = buffer.type;
    if (shown.type == ptx::Type::none) {
      shown.type = buffer.bytes % 4 == 0 ? ptx::Type::f32 : ptx::Type::u8;
    }
    shown.elements = buffer.bytes / ptx::bytes(shown.type);
  }
}

emulator::Result StepLaunch::run(emulator::Observer& observer) {
  prepare();
  return run_first(observer);
}

emulator::Result StepLaunch::run_first(emulator::Observer& observer) {
  emulator::Launch launch = launch_of(options_, *program_->find_kernel(kernel_));
  launch.parameters = arguments_->parameters();
  return emulator::observe(*program_, launch, observer, how_);
}

void StepLaunch::check(std::span<const frames::Watch> watches) const {
  frames::check_watches(*program_, kernel_, watches, buffers_);
}

}  // namespace ptxgen::cli
