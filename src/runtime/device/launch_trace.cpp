// src/runtime/device/launch_trace.cpp - launches on the emulator as spans and counter tracks
#include "runtime/device/launch_trace.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kCategory = "emulator";

std::vector<CounterValue> totals_of(const emulator::Counters& counters) {
  return {{"warp_instructions", counters.warp_instructions},
          {"global_sectors", counters.global_load.sectors + counters.global_store.sectors},
          {"ideal_global_sectors",
           counters.global_load.ideal_sectors + counters.global_store.ideal_sectors},
          {"bank_conflicts",
           counters.shared_load.bank_conflicts + counters.shared_store.bank_conflicts},
          {"divergent_branches", counters.divergent_branches}};
}

std::vector<CounterValue> values_of(const emulator::LineCounters& line) {
  std::vector<CounterValue> values = {{"executions", line.executions}};
  if (line.memory.requests != 0) {
    values.push_back({"sectors", line.memory.sectors});
    values.push_back({"ideal_sectors", line.memory.ideal_sectors});
  }
  if (line.shared.requests != 0) {
    values.push_back({"wavefronts", line.shared.wavefronts});
    values.push_back({"bank_conflicts", line.shared.bank_conflicts});
  }
  if (line.divergent != 0) values.push_back({"divergent", line.divergent});
  return values;
}

}  // namespace

void LaunchTrace::add_track(const std::string& name, const std::vector<CounterValue>& values,
                            double microseconds_ago) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(values.size());
  for (const CounterValue& value : values) numbers.push_back(value.value);
  std::vector<std::uint64_t>& last = last_[name];
  if (last == numbers) return;
  last = std::move(numbers);
  trace_.add_counters(name, kCategory, values, microseconds_ago);
}

void LaunchTrace::add_lines(std::string_view kernel, const emulator::Counters& counters,
                            double microseconds_ago) {
  std::string name;
  for (const emulator::LineCounters& line : counters.lines) {
    if (line.executions == 0) continue;
    name = kernel;
    name += ':';
    name += std::to_string(line.line);
    name += ' ';
    name += line.opcode;
    add_track(name, values_of(line), microseconds_ago);
  }
}

void LaunchTrace::open(Trace trace) noexcept {
  const std::lock_guard lock(mutex_);
  trace_ = std::move(trace);
  on_.store(trace_.recording(), std::memory_order_relaxed);
}

void LaunchTrace::close() noexcept {
  on_.store(false, std::memory_order_relaxed);
  Trace last;  // written after the lock, if it is the last handle
  const std::lock_guard lock(mutex_);
  std::swap(last, trace_);
}

void LaunchTrace::add_launch(std::string_view kernel, const emulator::Result& result) noexcept {
  const std::lock_guard lock(mutex_);
  const double microseconds = result.seconds * 1e6;
  trace_.add_ended(kernel, kCategory, microseconds);
  if (result.counters.warp_instructions == 0) return;  // not counted, or nothing ran
  try {
    add_track(std::string(kernel), totals_of(result.counters), microseconds);
    add_lines(kernel, result.counters, microseconds);
  } catch (...) {
    // No memory: the trace lacks counters, the launch is not affected.
  }
}

}  // namespace ptxgen::inline v0
