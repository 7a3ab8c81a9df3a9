// src/driver/emulated/faults.cpp - running a kernel; what its findings mean to the driver
#include <cstdio>

#include "driver/emulated/launch.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

std::string words(const emulator::Dim3& size) {
  return "(" + std::to_string(size.x) + "," + std::to_string(size.y) + "," +
         std::to_string(size.z) + ")";
}

std::string place_of(const KernelLaunch& launch) {
  return "\n    in a launch of kernel '" + launch.function->kernel->name + "', grid " +
         words(launch.grid) + ", block " + words(launch.block);
}

CUresult poison(CUresult fault, const std::string& text) {
  return refuse(fault, text + "\n    the context cannot be used any more: " + result_name(fault) +
                           " (" + std::to_string(static_cast<int>(fault)) + ")");
}

/// Says what was found. The fault is that of the first finding, in the order of the launch, which
/// hardware would have stopped at.
CUresult judge(const KernelLaunch& launch, const emulator::Result& result) {
  CUresult fault = CUDA_SUCCESS;
  std::string fault_text;
  for (const emulator::RunFinding& finding : result.findings) {
    std::string text = to_text(finding) + place_of(launch);
    const bool passes = finding.mapped && launch.options.mapped_pages;
    const CUresult code = passes ? CUDA_SUCCESS : fault_of(finding.rule);
    if (code != CUDA_SUCCESS && fault == CUDA_SUCCESS) {
      fault = code;
      fault_text = std::move(text);
    } else {
      log(code != CUDA_SUCCESS || passes ? CU_LOG_LEVEL_ERROR : CU_LOG_LEVEL_WARNING, text);
    }
  }
  if (fault == CUDA_SUCCESS && result.status == emulator::Status::Fault) {
    fault = CUDA_ERROR_LAUNCH_FAILED;
    fault_text = "the kernel was stopped" + place_of(launch);
  }
  return fault == CUDA_SUCCESS ? fault : poison(fault, fault_text);
}

}  // namespace

CUresult fault_of(emulator::Rule rule) noexcept {
  using emulator::Rule;
  switch (rule) {
    case Rule::OutOfBounds:
    case Rule::InvalidAddress:
    case Rule::WriteToReadonly:
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
  emulator::Result result;
  try {
    result = emulator::run(launch.function->owner->program, request, launch.options);
  } catch (const Error& error) {
    memory.unlock();
    return poison(CUDA_ERROR_LAUNCH_FAILED, error.describe() + place_of(launch));
  } catch (const std::exception& error) {
    memory.unlock();
    return poison(CUDA_ERROR_LAUNCH_FAILED, error.what() + place_of(launch));
  }
  memory.unlock();  // who listens to the log or watches launches may wait for other threads
  if (!result.printed.empty()) {
    // Hardware keeps it until the next synchronisation; nothing can come in between here.
    (void)std::fwrite(result.printed.data(), 1, result.printed.size(), stdout);
    (void)std::fflush(stdout);
  }
  const CUresult fault = judge(launch, result);
  // Whoever takes the observer away waits for this lock, and so for a call in progress.
  const std::lock_guard reporting(context->report_mutex);
  decltype(context->report) report = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard lock(context->mutex);
    report = context->report;
    user = context->report_user;
  }
  if (report != nullptr) report(user, {request.kernel, launch.grid, launch.block, result, fault});
  return fault;
}

}  // namespace ptxgen::inline v0::driver::emulated
