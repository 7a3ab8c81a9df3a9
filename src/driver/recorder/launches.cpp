// src/driver/recorder/launches.cpp - launches of a recorded program
#include <algorithm>
#include <cstring>

#include "driver/recorder/recorder.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

constexpr const char* kUnknownKernel =
    "a launch that is not recorded (of machine code, or by a function from before CUDA 4.0): what "
    "it changes is recorded as if the host wrote it";

void set(std::uint32_t (&size)[3], unsigned x, unsigned y, unsigned z) {
  size[0] = x;
  size[1] = y;
  size[2] = z;
}

/// A launch of a kernel that is not recorded: its effect is found before the next step.
CUresult launch_unknown(Recorder& all, const Call& call) {
  all.catch_up();
  all.note(kUnknownKernel);
  all.suspect = true;
  return call();
}

/// A launch call: a step, a node, or neither. `params` and `extra` are those of the call.
CUresult launch_in(CUstream stream, KernelWork work, void** params, void** extra,
                   const Call& call) {
  return entry([&]() -> CUresult {
    const CallScope scope(stream);
    Recorder& all = scope.recorder();
    const auto copy_arguments = [&] {
      const RecordedKernel* const kernel = kernel_of(all, work.function);
      if (kernel == nullptr) return false;
      work.step.arguments = arguments_of(*kernel, params, extra);
      return true;
    };
    if (scope.captured()) {
      const CUresult result = call();
      const std::lock_guard lock(all.mutex);
      const bool known = result == CUDA_SUCCESS && copy_arguments();
      if (result == CUDA_SUCCESS) captured(all, stream, known ? Work(work) : Work());
      return result;
    }
    if (!scope.records()) {
      scope.pass_on();
      return call();
    }
    return copy_arguments() ? record_launch(scope, work, call) : launch_unknown(all, call);
  });
}

KernelWork work_of(const CUlaunchConfig& config, CUfunction function) {
  KernelWork work;
  work.function = function;
  set(work.step.grid, config.gridDimX, config.gridDimY, config.gridDimZ);
  set(work.step.block, config.blockDimX, config.blockDimY, config.blockDimZ);
  work.step.shared_bytes = config.sharedMemBytes;
  for (unsigned i = 0; config.attrs != nullptr && i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& cluster = attribute.value.clusterDim;
      set(work.step.cluster, cluster.x, cluster.y, cluster.z);
    }
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      work.step.cooperative = attribute.value.cooperative != 0;
    }
  }
  return work;
}

void replace_new_launches(Table& table) {
  table.launch_kernel = [](CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                           CUstream stream, void** params, void** extra) -> CUresult {
    KernelWork work;
    work.function = function;
    set(work.step.grid, grid_x, grid_y, grid_z);
    set(work.step.block, block_x, block_y, block_z);
    work.step.shared_bytes = shared;
    return launch_in(stream, work, params, extra, [=] {
      return active()->base.launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y,
                                          block_z, shared, stream, params, extra);
    });
  };
  if (table.launch_cooperative_kernel != nullptr) {
    table.launch_cooperative_kernel = [](CUfunction function, unsigned grid_x, unsigned grid_y,
                                         unsigned grid_z, unsigned block_x, unsigned block_y,
                                         unsigned block_z, unsigned shared, CUstream stream,
                                         void** params) -> CUresult {
      KernelWork work;
      work.function = function;
      set(work.step.grid, grid_x, grid_y, grid_z);
      set(work.step.block, block_x, block_y, block_z);
      work.step.shared_bytes = shared;
      work.step.cooperative = true;
      return launch_in(stream, work, params, nullptr, [=] {
        return active()->base.launch_cooperative_kernel(function, grid_x, grid_y, grid_z, block_x,
                                                        block_y, block_z, shared, stream, params);
      });
    };
  }
  if (table.launch_kernel_ex == nullptr) return;
  table.launch_kernel_ex = [](const CUlaunchConfig* config, CUfunction function, void** params,
                              void** extra) -> CUresult {
    if (config == nullptr) return active()->base.launch_kernel_ex(config, function, params, extra);
    return launch_in(config->hStream, work_of(*config, function), params, extra, [=] {
      return active()->base.launch_kernel_ex(config, function, params, extra);
    });
  };
}

/// The functions from before CUDA 4.0, whose arguments the function holds.
CUresult launch_old(CUstream stream, const Call& call) {
  return entry([&]() -> CUresult {
    const CallScope scope(stream);
    if (scope.records()) return launch_unknown(scope.recorder(), call);
    scope.pass_on();
    return call();
  });
}

void replace_old_launches(Table& table) {
  if (table.launch == nullptr || table.launch_grid == nullptr ||
      table.launch_grid_async == nullptr) {
    return;
  }
  table.launch = [](CUfunction function) -> CUresult {
    return launch_old(nullptr, [=] { return active()->base.launch(function); });
  };
  table.launch_grid = [](CUfunction function, int width, int height) -> CUresult {
    return launch_old(nullptr, [=] { return active()->base.launch_grid(function, width, height); });
  };
  table.launch_grid_async = [](CUfunction function, int width, int height,
                               CUstream stream) -> CUresult {
    return launch_old(
        stream, [=] { return active()->base.launch_grid_async(function, width, height, stream); });
  };
}

CUresult set_attribute(CUfunction function, int attribute, int value, const Call& call) {
  return entry([&]() -> CUresult {
    const CallScope scope;
    Recorder& all = scope.recorder();
    const RecordedKernel* const kernel = scope.records() ? kernel_of(all, function) : nullptr;
    const CUresult result = call();
    if (result == CUDA_SUCCESS && kernel != nullptr) {
      all.sink.write(AttributeStep{kernel->module, kernel->name, attribute, value});
    }
    return result;
  });
}

void replace_attributes(Table& table) {
  table.func_set_attribute = [](CUfunction function, CUfunction_attribute attribute,
                                int value) -> CUresult {
    return set_attribute(function, attribute, value, [=] {
      return active()->base.func_set_attribute(function, attribute, value);
    });
  };
  if (table.kernel_set_attribute == nullptr) return;
  table.kernel_set_attribute = [](CUfunction_attribute attribute, int value, CUkernel kernel,
                                  CUdevice device) -> CUresult {
    return set_attribute(reinterpret_cast<CUfunction>(kernel), attribute, value, [=] {
      return active()->base.kernel_set_attribute(attribute, value, kernel, device);
    });
  };
}

}  // namespace

std::vector<std::byte> arguments_of(const RecordedKernel& kernel, void** params, void** extra) {
  std::vector<std::byte> block(kernel.parameter_bytes);
  if (params != nullptr) {
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      const auto& [offset, bytes] = kernel.parameters[i];
      if (params[i] != nullptr) std::memcpy(block.data() + offset, params[i], bytes);
    }
    return block;
  }
  const void* from = nullptr;
  std::size_t bytes = 0;
  for (; extra != nullptr && extra[0] != nullptr; extra += 2) {
    const auto tag = reinterpret_cast<std::uintptr_t>(extra[0]);
    if (tag == kLaunchParamBufferPointer) from = extra[1];
    if (tag == kLaunchParamBufferSize && extra[1] != nullptr) {
      std::memcpy(&bytes, extra[1], sizeof bytes);
    }
  }
  if (from != nullptr) std::memcpy(block.data(), from, std::min(bytes, block.size()));
  return block;
}

CUresult add_outputs(Recorder& all, std::vector<StepOutput>& outputs) {
  std::vector<Change> changes;
  const CUresult result = all.shadow.look(false, changes);
  for (const Change& change : changes) {
    outputs.push_back({change.region->address + change.begin, change.end - change.begin,
                       all.sink.keep_output(change.bytes())});
  }
  return result;
}

CUresult record_launch(const CallScope& scope, const KernelWork& work, const Call& call) {
  Recorder& all = scope.recorder();
  const RecordedKernel* const kernel = kernel_of(all, work.function);
  if (kernel == nullptr) return launch_unknown(all, call);
  LaunchStep step = work.step;
  step.module = kernel->module;
  step.kernel = kernel->name;
  all.catch_up();
  const CUresult result = call();
  if (result != CUDA_SUCCESS) return result;
  const CUresult waited = scope.wait();
  if (waited == CUDA_SUCCESS) {
    (void)add_outputs(all, step.outputs);
  } else {
    step.failure = result_name(waited);
  }
  all.sink.write(step);
  if (waited != CUDA_SUCCESS) all.lost(waited);
  return result;
}

void replace_launches(Table& table) {
  replace_new_launches(table);
  replace_old_launches(table);
  replace_attributes(table);
}

}  // namespace ptxgen::inline v0::driver::recorder
