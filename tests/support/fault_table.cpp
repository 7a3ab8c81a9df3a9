// tests/support/fault_table.cpp - a driver table that counts, fails and watches
#include "support/fault_table.hpp"

#include <array>
#include <cstdlib>
#include <mutex>

namespace ptxgen::test {
namespace {

using namespace driver;

constexpr std::array<const char*, 14> kObjects = {
    "None",   "Context", "DeviceMemory", "HostMemory", "Registration", "Stream",     "Event",
    "Module", "Link",    "Graph",        "GraphExec",  "LogCallback",  "MemoryPool", "Library"};

struct State {
  std::mutex mutex;
  const Table* base = nullptr;
  std::vector<std::size_t> calls;
  std::uint64_t fail_at = 0;
  CUresult code = CUDA_SUCCESS;
  std::array<std::int64_t, kObjects.size()> living{};
};
State watch;  // see the class comment

enum Row : std::size_t {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  row_##field,
#include "ptxgen/driver/functions.def"
};

constexpr ObjectEffect creates(Object object) { return {object, +1}; }
constexpr ObjectEffect frees(Object object) { return {object, -1}; }
constexpr ObjectEffect no_effect{};

template <class Call>
CUresult pass_on(std::size_t row, ObjectEffect effect, const Call& call) {
  {
    const std::lock_guard lock(watch.mutex);
    watch.calls.push_back(row);
    if (watch.calls.size() == watch.fail_at) return watch.code;
  }
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    const std::lock_guard lock(watch.mutex);
    watch.living[static_cast<std::size_t>(effect.object)] += effect.change;
  }
  return result;
}

#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  CUresult wrap_##field parameters {                                                      \
    return pass_on(row_##field, effect, [&] { return watch.base->field arguments; });     \
  }
#include "ptxgen/driver/functions.def"

}  // namespace

FaultTable::FaultTable(const Table& base) {
  const std::lock_guard lock(watch.mutex);
  if (watch.base != nullptr) std::abort();
  watch.base = &base;
  watch.calls.clear();
  watch.fail_at = 0;
  watch.living.fill(0);
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  if (base.field != nullptr) table_.field = wrap_##field;
#include "ptxgen/driver/functions.def"
}

FaultTable::~FaultTable() {
  const std::lock_guard lock(watch.mutex);
  watch.base = nullptr;
}

void FaultTable::fail(std::uint64_t nth, CUresult code) {
  const std::lock_guard lock(watch.mutex);
  watch.calls.clear();
  watch.fail_at = nth;
  watch.code = code;
}

std::uint64_t FaultTable::calls() const {
  const std::lock_guard lock(watch.mutex);
  return watch.calls.size();
}

std::vector<const FunctionInfo*> FaultTable::rows() const {
  const std::lock_guard lock(watch.mutex);
  std::vector<const FunctionInfo*> rows;
  for (const std::size_t row : watch.calls) rows.push_back(&functions()[row]);
  return rows;
}

const FunctionInfo* FaultTable::failed() const {
  const std::lock_guard lock(watch.mutex);
  if (watch.fail_at == 0 || watch.calls.size() < watch.fail_at) return nullptr;
  return &functions()[watch.calls[watch.fail_at - 1]];
}

std::string FaultTable::leaked() const {
  const std::lock_guard lock(watch.mutex);
  std::string words;
  for (std::size_t i = 1; i < kObjects.size(); ++i) {
    if (watch.living[i] == 0) continue;
    words += (words.empty() ? "" : ", ") + std::to_string(watch.living[i]) + " of " + kObjects[i];
  }
  return words;
}

}  // namespace ptxgen::test
