// src/driver/emulated/faults.cpp - running a kernel; what its findings mean to the driver
#include <algorithm>
#include <cstdio>

#include "driver/emulated/memory_before.hpp"
#include "driver/emulated/modules.hpp"
#include "driver/emulated/reported.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

std::string lost_text(CUresult fault, bool strict = false) {
  return (strict ? "\n    PTXGEN_STRICT=1: an error is a fault, also where hardware would go on"
                 : "") +
         std::string("\n    the context cannot be used any more: ") + result_name(fault) + " (" +
         std::to_string(static_cast<int>(fault)) + ")";
}

/// Keeps what the context is going to be poisoned with. The first fault stays.
void note_fault(CUcontext context, FaultNote note) {
  const std::lock_guard lock(context->mutex);
  if (context->fault_note.code == CUDA_SUCCESS) context->fault_note = std::move(note);
}

/// A launch that the emulator gave up, for a reason that is no finding.
CUresult give_up(CUcontext context, const KernelLaunch& launch, const std::string& why) {
  FaultNote note;
  note.code = CUDA_ERROR_LAUNCH_FAILED;
  note.kernel = launch.function->kernel->name;
  note.finding.text = why + launch_text(launch);
  const std::string text = note.finding.text + lost_text(note.code);
  note_fault(context, std::move(note));
  const NoCalls none;
  return refuse(CUDA_ERROR_LAUNCH_FAILED, text);
}

FaultNote fault_in(const KernelLaunch& launch, const emulator::Result& result,
                   std::span<const ReportedFinding> findings) {
  FaultNote note;
  note.kernel = launch.function->kernel->name;
  const auto fault = std::ranges::find_if(findings, &ReportedFinding::fault);
  if (fault != findings.end()) {
    note.code = fault_code(*fault);
    note.finding = *fault;
  }
  if (note.code == CUDA_SUCCESS && result.status == emulator::Status::Fault) {
    note.code = CUDA_ERROR_LAUNCH_FAILED;
    note.finding.text = "the kernel was stopped" + launch_text(launch);
  }
  return note;
}

/// To the driver's log, the fault last.
void log_findings(std::span<const ReportedFinding> findings, std::span<const FindingEntry> entries,
                  const FaultNote& fault) {
  for (const FindingEntry& entry : entries) {
    const ReportedFinding& example = findings[entry.group.example];
    // The driver's log has no level for notes; LaunchReport has them.
    const Severity severity = example.found.finding.severity;
    if (example.fault || severity == Severity::Note) continue;
    log(severity == Severity::Error ? CU_LOG_LEVEL_ERROR : CU_LOG_LEVEL_WARNING, entry.text);
  }
  if (fault.code == CUDA_SUCCESS) return;
  const bool strict = fault.finding.fault && fault_of(fault.finding.found.rule) == CUDA_SUCCESS;
  log(CU_LOG_LEVEL_ERROR, fault.finding.text + lost_text(fault.code, strict));
}

bool has_failed(const emulator::Result& result, std::span<const ReportedFinding> findings) {
  return result.status == emulator::Status::Fault ||
         std::ranges::any_of(findings, [](const ReportedFinding& reported) {
           return reported.fault || reported.found.finding.severity == Severity::Error;
         });
}

/// To the observer of the module or the context.
void report(CUcontext context, const LaunchReport& launch, LaunchListener* listener) {
  if (listener != nullptr) listener->ended(launch);
  // A caller that removes the observer waits for this lock, and so for a call in progress.
  const std::lock_guard reporting(context->report_mutex);
  decltype(context->report) call = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard lock(context->mutex);
    call = context->report;
    user = context->report_user;
  }
  if (call != nullptr) call(user, launch);
}

}  // namespace

CUresult fault_of(emulator::Rule rule) noexcept {
  using emulator::Rule;
  switch (rule) {
    case Rule::OutOfBounds:
    case Rule::InvalidAddress:
    case Rule::WriteToReadonly:
    case Rule::TextureObject:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Rule::Misaligned:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Rule::Assert:
      return CUDA_ERROR_ASSERT;
    case Rule::Trap:
    case Rule::ExitedBlock:
      return CUDA_ERROR_LAUNCH_FAILED;
    // What cuda.h says of this code: the call stack exceeded its size limit.
    case Rule::StackOverflow:
      return CUDA_ERROR_HARDWARE_STACK_ERROR;
    // Hardware would run on until its watchdog, where it has one, ends the kernel.
    case Rule::BarrierDeadlock:
    case Rule::InstructionBudget:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case Rule::UninitializedRead:
    case Rule::SharedRace:
    case Rule::GlobalRace:
    case Rule::ScopeTooNarrow:
    case Rule::BarrierDivergence:
    case Rule::ExitedBeforeBarrier:
    case Rule::SyncMask:
    case Rule::UnfinishedCopy:
    case Rule::WarpgroupOrder:
    case Rule::WarpgroupMismatch:
    case Rule::MatrixDescriptor:
    case Rule::ProxyFence:
    case Rule::TensorMap:
    case Rule::Nondeterminism:
    case Rule::RaceSameValue:
    case Rule::ExitedLaneInMask:
    case Rule::DivisionByZero:
      return CUDA_SUCCESS;
  }
  return CUDA_SUCCESS;
}

CUresult run_kernel(CUcontext context, const KernelLaunch& launch) {
  std::unique_lock memory(context->memory_mutex);
  if (!living(launch.function)) {
    memory.unlock();
    log(CU_LOG_LEVEL_ERROR, "a queued launch names a function whose module was unloaded");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  emulator::Launch request;
  request.kernel = launch.function->kernel->name;
  request.grid = launch.grid;
  request.block = launch.block;
  request.cluster = launch.cluster;
  request.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  request.cooperative = launch.cooperative;
  request.parameters = launch.arguments;
  const std::shared_ptr<LaunchListener> listener =
      launch.function->owner->notes ? launch.function->owner->notes->listener : nullptr;
  const bool keeps = listener != nullptr && listener->keeps_failed();
  std::vector<MemoryBefore> before;
  if (keeps) before = memory_before(context->memory.space(), launch);
  emulator::Result result;
  try {
    result = emulator::run(launch.function->owner->program, request, launch.options);
  } catch (const Error& error) {
    memory.unlock();
    return give_up(context, launch, error.describe());
  } catch (const std::exception& error) {
    memory.unlock();
    return give_up(context, launch, error.what());
  }
  const std::vector<ReportedFinding> findings = report_findings(launch, result);
  const std::vector<FindingEntry> entries = group_entries(launch, findings);
  const ptx::Module& module = launch.function->owner->program.module();
  const bool failed = keeps && has_failed(result, findings);
  const std::string ptx = failed ? ptx::print(module) : std::string();
  memory.unlock();  // who listens to the log or watches launches may wait for other threads
  if (!result.printed.empty()) {
    // Hardware keeps it until the next synchronisation; nothing can come in between here.
    (void)std::fwrite(result.printed.data(), 1, result.printed.size(), stdout);
    (void)std::fflush(stdout);
  }
  const FaultNote fault = fault_in(launch, result, findings);
  if (fault.code != CUDA_SUCCESS) note_fault(context, fault);
  const NoCalls none;
  log_findings(findings, entries, fault);
  const std::uint64_t number = launch.number != 0 ? launch.number : next_launch_number();
  const LaunchReport about{request.kernel, launch.grid, launch.block, result, fault.code,
                           number,         findings,    entries,      &module};
  report(context, about, listener.get());
  if (failed) {
    listener->failed({about, ptx, launch.cluster, launch.dynamic_shared_bytes, launch.cooperative,
                      launch.arguments, before});
  }
  return fault.code;
}

FaultNote fault_note(CUcontext handle) {
  const std::shared_ptr<CUctx_st> context = hold(handle);
  if (!context) return {};
  const std::lock_guard lock(context->mutex);
  return context->fault_note;
}

}  // namespace ptxgen::inline v0::driver::emulated
