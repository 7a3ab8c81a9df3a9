// src/runtime/module/module.cpp - modules: loading, functions, variables
#include "ptxgen/runtime/module/module.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "driver/emulated/notes.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "runtime/module/gates.hpp"
#include "runtime/module/loaded_module.hpp"
#include "support/format.hpp"
#include "support/process_ids.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

namespace {

using ModulePointer = std::shared_ptr<LoadedModule>;

bool waits(const ptx::Function& function) {
  for (const ptx::Instruction& statement : function.body) {
    if (statement.is(ptx::Op::griddepcontrol) &&
        statement.get(ptx::Field::GridAction) == ptx::Modifier::wait) {
      return true;
    }
  }
  return false;
}

std::vector<EntryFacts> entries_of(const ptx::Module& module) {
  // A device function is taken to be called by every kernel.
  bool helper_waits = false;
  for (const ptx::Function& function : module.functions) {
    helper_waits = helper_waits || (!function.entry && waits(function));
  }
  std::vector<EntryFacts> entries;
  for (const ptx::Function& function : module.functions) {
    if (!function.entry || function.declaration) continue;
    EntryFacts& entry = entries.emplace_back();
    entry.name = module.text(function.name);
    entry.waits = helper_waits || waits(function);
    entry.signature = signature_of(module, function);
  }
  return entries;
}

/// A comment that no other load has, so that no cache of compiled PTX knows the text.
std::string cold_comment() {
  std::random_device device;
  return format_text("\n// cold {} {} {}\n", process_id(), device(),
                     std::chrono::steady_clock::now().time_since_epoch().count());
}

template <class Image>
ModulePointer timed_load(const ContextCore& core, const Image& image, const ModuleOptions& options,
                         JitResult& outcome) {
  auto result = std::make_shared<LoadedModule>(core.shared_from_this());
  const Current current(core, Stage::Load);
  const auto start = std::chrono::steady_clock::now();
  outcome = run_jit(core, image.data(), options, result->module.handle);
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  if (outcome.failed) return nullptr;
  result->microseconds = spent.count();
  result->info_log = std::move(outcome.info);
  return result;
}

/// On the emulated device: where the lines of the text come from, and who hears of launches.
void annotate(const ContextCore& core, driver::CUmodule module, const PtxSource& source) {
  const Device& device = core.device();
  if (!is_emulated(device.info().kind)) return;
  driver::emulated::ModuleNotes notes;
  notes.listener = device.finding_store().shared_from_this();
  if (source.module != nullptr) {
    const ptx::Module& from = *source.module;
    emulator::Origins& origins = notes.origins;
    origins.file = source.lines != nullptr ? from.file : std::string(source.file);
    for (const ptx::Function& function : from.functions) {
      for (const ptx::Instruction& statement : function.body) {
        const std::uint32_t line = line_of(source, function, statement);
        if (line == 0) continue;
        if (line >= origins.places.size()) origins.places.resize(line + 1);
        origins.places[line] = {from.site_of(statement), statement.line};
      }
    }
  }
  static_cast<void>(driver::emulated::annotate(module, std::move(notes)));
}

// What only our own PTX and what we can read of others' goes through.
void pass_gates(const ContextCore& core, const PtxSource& source, const ModuleOptions& options) {
  if (!options.gates) {
    core.log().warn(format_text("the gates are off: {} is loaded unchecked", source.file));
  } else if (source.module != nullptr) {
    const Span span(core.trace(), "gates", "runtime");
    ptxgen::pass_gates({*source.module, source.file, source.text}, core.log(), core.trace());
  }
}

ModulePointer load_text(const Context& context, const PtxSource& source,
                        const ModuleOptions& options, GateMode gating) {
  const ContextCore& core = context.core();
  core.alive(Stage::Load);
  Span span(core.trace(), "load", "runtime");
  span.argument("file", source.file);
  check_before_jit(core, source);
  if (gating == GateMode::Here) pass_gates(core, source, options);
  std::string text(source.text);
  if (options.cold) text += cold_comment();
  std::vector<EntryFacts> entries;
  if (source.module != nullptr) entries = entries_of(*source.module);
  JitResult outcome;
  ModulePointer result = timed_load(core, text, options, outcome);
  if (result == nullptr) throw jit_error(core, source, std::move(outcome));
  annotate(core, result->module.handle, source);
  result->entries = std::move(entries);
  return result;
}

ModulePointer load_machine_code(const Context& context, std::span<const std::byte> image,
                                const ptx::Module* source) {
  const ContextCore& core = context.core();
  core.alive(Stage::Load);
  const Span span(core.trace(), "load", "runtime");
  if (image.empty()) throw Error(Stage::Load, "rejected", "the image is empty");
  std::vector<EntryFacts> entries;
  if (source != nullptr) entries = entries_of(*source);
  JitResult outcome;
  ModulePointer result = timed_load(core, image, {}, outcome);
  if (result == nullptr) throw jit_error(core, {}, std::move(outcome));
  annotate(core, result->module.handle, {});
  result->entries = std::move(entries);
  return result;
}

}  // namespace

Module Module::load(const Context& context, std::string_view ptx, const ModuleOptions& options,
                    std::string_view file) {
  return CheckedModule::load(context, ptx, options, file, GateMode::Here);
}

Module Module::load(const Context& context, const ptx::Module& module,
                    const ModuleOptions& options) {
  return CheckedModule::load(context, module, options, GateMode::Here);
}

Module CheckedModule::load(const Context& context, std::string_view ptx,
                           const ModuleOptions& options, std::string_view file, GateMode gating) {
  std::optional<ptx::Module> parsed;
  try {
    parsed = ptx::parse(ptx, file);
  } catch (const Error& error) {
    // The driver decides what PTX is, and may know more than we do.
    context.core().log().info(
        format_text("{} goes to the driver unchecked, because ptxgen cannot parse it: {}", file,
                    error.message));
  }
  const PtxSource source{ptx, file, parsed ? &*parsed : nullptr, nullptr};
  return Module(
      Hidden<Module::State>::make(Module::State{load_text(context, source, options, gating)}));
}

Module CheckedModule::load(const Context& context, const ptx::Module& module,
                           const ModuleOptions& options, GateMode gating) {
  ptx::LineMap lines;
  const std::string text = ptx::print(module, &lines);
  const PtxSource source{text, module.file.empty() ? std::string_view("<ptx>") : module.file,
                         &module, &lines};
  return Module(
      Hidden<Module::State>::make(Module::State{load_text(context, source, options, gating)}));
}

Module Module::load_image(const Context& context, std::span<const std::byte> image) {
  return Module(Hidden<State>::make(State{load_machine_code(context, image, nullptr)}));
}

Module Module::load_image(const Context& context, std::span<const std::byte> image,
                          const ptx::Module& source) {
  return Module(Hidden<State>::make(State{load_machine_code(context, image, &source)}));
}

Module::Module(Hidden<State> state) : state_(std::move(state)) {}
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&& other) noexcept {
  const Module old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}
Module::~Module() = default;

std::string_view Module::info_log() const noexcept { return state_->module->info_log; }
double Module::load_microseconds() const noexcept { return state_->module->microseconds; }
driver::CUmodule Module::handle() const noexcept { return state_->module->module.handle; }

Module::Variable Module::variable(std::string_view name) const {
  const ContextCore& core = state_->module->core();
  core.alive(Stage::Load);
  const Current current(core, Stage::Load);
  const std::string zero_ended(name);
  driver::CUdeviceptr address = 0;
  std::size_t bytes = 0;
  const driver::CUresult result = core.table().module_get_global(
      &address, &bytes, state_->module->module.handle, zero_ended.c_str());
  if (result != driver::CUDA_SUCCESS) {
    Error error = core.failure(Stage::Load, {&row_of(&Table::module_get_global), result},
                               format_text("looking for the variable '{}'", zero_ended));
    if (result == driver::CUDA_ERROR_NOT_FOUND) error.code = "not-found";
    throw error.refresh();
  }
  return {address, bytes};
}

}  // namespace ptxgen::inline v0
