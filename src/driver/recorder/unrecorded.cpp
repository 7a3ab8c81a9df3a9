// src/driver/recorder/unrecorded.cpp - calls of which only the effect is recorded
#include "driver/recorder/recorder.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

constexpr char kVirtual[] = "virtual memory (cuMemMap) is not recorded";

/// The same call of the recorded table, with a note; what it changes is found later.
template <auto Member, const char* Text, class... Parameters>
CUresult noted(Parameters... parameters) {
  return entry([&]() -> CUresult {
    Recorder& all = *active();
    const CUresult result = (all.base.*Member)(parameters...);
    // Without the lock: a call from a host function, which is refused, must not wait for it.
    if (result != CUDA_SUCCESS || all.sink.ended()) return result;
    const std::lock_guard lock(all.mutex);
    all.suspect = true;
    all.note(Text);
    return result;
  });
}

template <auto Member, const char* Text, class... Parameters>
void replace(CUresult (*&function)(Parameters...)) {
  if (function != nullptr) function = &noted<Member, Text, Parameters...>;
}

}  // namespace

void replace_unrecorded(Table& table) { replace<&Table::mem_map, kVirtual>(table.mem_map); }

}  // namespace ptxgen::inline v0::driver::recorder
