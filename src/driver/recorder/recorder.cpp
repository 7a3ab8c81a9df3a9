// src/driver/recorder/recorder.cpp - scopes, contexts and the table of the recorder
#include "driver/recorder/recorder.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>

#include "support/format.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

// See the class comment.
std::unique_ptr<Recorder> the_recorder;

/// The row of the GPU table for a device: by name, else any of its architecture.
const ptx::Gpu* gpu_named(std::string_view name, bool& exact) {
  for (const ptx::Gpu& gpu : ptx::gpus()) {
    exact = name.starts_with(gpu.full_name) || gpu.full_name.starts_with(name);
    if (exact) return &gpu;
  }
  return nullptr;
}

const ptx::Gpu* gpu_of_sm(const Table& table, CUdevice device) {
  int major = 0;
  int minor = 0;
  (void)table.device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  (void)table.device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return ptx::first_gpu_of(format_text("sm_{}{}", major, minor));
}

/// Whether the current context is the recorded one, which it becomes if there is none.
bool is_recorded_context(Recorder& recorder) {
  CUcontext now = nullptr;
  if (recorder.base.ctx_get_current(&now) != CUDA_SUCCESS || now == nullptr) return false;
  if (now == recorder.context) return true;
  if (recorder.context != nullptr) {
    recorder.note("a second context: one context is recorded, and what is done in others is not");
    return false;
  }
  recorder.context = now;
  recorder.begin();
  return true;
}

/// The recorded context is no more, and with it all that it held.
void forget_context(Recorder& recorder) {
  for (const auto& [surface, object] : recorder.objects) {
    recorder.sink.write(DestroyStep{surface, object});
  }
  for (const auto& [address, region] : recorder.shadow.regions()) {
    if (recorder.allocated.count(address) != 0) recorder.sink.write(FreeStep{address});
  }
  forget_graph_memory(recorder);
  forget_virtual_memory(recorder);
  const auto unload = [&](const RecordedModule& module) {
    if (module.loaded) recorder.sink.write(UnloadStep{module.number});
  };
  for (const auto& [handle, module] : recorder.modules) unload(module);
  for (auto& [handle, module] : recorder.libraries) {
    unload(module);
    module.loaded = false;
    module.handle = nullptr;
    module.variables.clear();
  }
  recorder.shadow.clear();
  recorder.pending.clear();
  recorder.pending_objects.clear();
  recorder.objects.clear();
  recorder.arrays.clear();
  recorder.allocated.clear();
  recorder.modules.clear();
  recorder.graphs.clear();
  recorder.nodes.clear();
  recorder.context = nullptr;
}

/// Looks at a context that a call may have destroyed.
template <class Gone>
CUresult may_end_context(CUresult result, Gone&& gone) {
  if (result != CUDA_SUCCESS) return result;
  Recorder& all = *active();
  const std::lock_guard lock(all.mutex);
  if (all.context != nullptr && gone(all)) forget_context(all);
  return result;
}

/// Whether the recorded context is the primary one of a device.
bool is_primary(const Recorder& all, CUdevice device) {
  CUcontext primary = nullptr;
  if (all.base.device_primary_ctx_retain(&primary, device) != CUDA_SUCCESS) return false;
  (void)all.base.device_primary_ctx_release(device);
  return primary == all.context;
}

bool primary_is_active(Recorder& all, CUdevice device) {
  unsigned flags = 0;
  int active = 1;
  const bool known = all.base.device_primary_ctx_get_state != nullptr &&
                     all.base.device_primary_ctx_get_state(device, &flags, &active) == CUDA_SUCCESS;
  return !known || active != 0;
}

void replace_contexts(Table& table) {
  table.device_primary_ctx_reset = [](CUdevice device) -> CUresult {
    return entry([&] {
      const bool recorded = is_primary(*active(), device);
      return may_end_context(active()->base.device_primary_ctx_reset(device),
                             [&](Recorder&) { return recorded; });
    });
  };
  table.device_primary_ctx_release = [](CUdevice device) -> CUresult {
    return entry([&] {
      return may_end_context(active()->base.device_primary_ctx_release(device),
                             [&](Recorder& all) { return !primary_is_active(all, device); });
    });
  };
  if (table.ctx_destroy != nullptr) {
    table.ctx_destroy = [](CUcontext context) -> CUresult {
      return entry([&] {
        return may_end_context(active()->base.ctx_destroy(context),
                               [&](Recorder& all) { return all.context == context; });
      });
    };
  }
  if (table.ctx_set_limit == nullptr) return;
  table.ctx_set_limit = [](CUlimit limit, std::size_t value) -> CUresult {
    return entry([&] {
      const CallScope scope;
      const CUresult result = scope.recorder().base.ctx_set_limit(limit, value);
      if (result == CUDA_SUCCESS && scope.records()) {
        scope.recorder().sink.write(LimitStep{static_cast<int>(limit), value});
      }
      return result;
    });
  };
}

}  // namespace

Recorder* active() noexcept { return the_recorder.get(); }

void Recorder::begin() {
  if (begun) return;
  begun = true;
  CUdevice device = 0;
  (void)base.ctx_get_device(&device);
  std::array<char, 256> name{};
  (void)base.device_get_name(name.data(), static_cast<int>(name.size()), device);
  bool exact = false;
  gpu = gpu_named(name.data(), exact);
  if (gpu == nullptr) gpu = gpu_of_sm(base, device);
  sink.begin(name.data(), exact ? gpu->name : std::string_view());
}

void Recorder::note(const std::string& text) {
  begin();
  if (noted.insert(text).second) sink.note(text);
}

void Recorder::catch_up() {
  std::vector<Change> changes;
  if (shadow.look(sees_all_calls && !suspect, changes) != CUDA_SUCCESS) return;
  suspect = false;
  for (const Change& change : changes) {
    const std::uint64_t bytes = change.end - change.begin;
    WriteStep step;
    step.to = {change.region->address + change.begin, bytes, 1, 1, bytes, 1};
    step.content = sink.keep(change.bytes());
    step.unseen = true;
    sink.write(step);
  }
}

void Recorder::lost(CUresult result) { sink.end("device-fault: " + result_name(result)); }

CallScope::CallScope(CUstream stream) : recorder_(*active()), stream_(stream) {
  if (recorder_.sink.ended()) return;
  if (recorder_.captures.load() != 0) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult known = recorder_.base.stream_is_capturing(stream, &status);
    captured_ = known == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return;
  }
  // Without the lock: functions of the host that are queued may need other threads.
  if (recorder_.base.stream_synchronize(stream) != CUDA_SUCCESS) return;
  std::unique_lock lock(recorder_.mutex);
  if (!is_recorded_context(recorder_)) return;
  for (const Recorder::Pending& one : std::exchange(recorder_.pending, {})) {
    allocated(recorder_, one.address, one.bytes, one.memory);
  }
  for (const ObjectStep& one : std::exchange(recorder_.pending_objects, {})) {
    write_object(recorder_, one);
  }
  lock_ = std::move(lock);
}

// Memory cannot be looked at while a stream is captured.
void CallScope::pass_on() const {
  if (recorder_.sink.ended() || recorder_.captures.load() == 0) return;
  const std::lock_guard lock(recorder_.mutex);
  recorder_.suspect = true;
  recorder_.note("what is done while another stream is captured is recorded by its effect");
}

CUresult CallScope::wait() const { return recorder_.base.stream_synchronize(stream_); }

Table recording_table(const Table& base, StepSink& sink, bool sees_all_calls) {
  the_recorder = std::make_unique<Recorder>(base, sink, sees_all_calls);
  Table table = base;
  replace_contexts(table);
  replace_memory(table);
  replace_arrays(table);
  replace_copies(table);
  replace_modules(table);
  replace_launches(table);
  replace_graphs(table);
  replace_graph_memory(table);
  replace_virtual_memory(table);
  return table;
}

Table recorded_if_asked(const Table& plain, bool sees_all_calls) noexcept {
  try {
    const Settings settings = Settings::from_environment();
    if (settings.record.empty()) return plain;
    // Never destroyed: threads of the host may call the driver while the process ends.
    static StepSink* const sink = open_program_recording(settings).release();
    if (sink == nullptr) return plain;
    std::atexit([] { sink->end({}); });
    return recording_table(plain, *sink, sees_all_calls);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ptxgen: nothing is recorded: %s\n", failure.what());
    return plain;
  }
}

}  // namespace ptxgen::inline v0::driver::recorder
