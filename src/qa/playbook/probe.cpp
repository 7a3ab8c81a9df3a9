// src/qa/playbook/probe.cpp - a driver table that counts objects and fails calls
#include "qa/playbook/probe.hpp"

#include <algorithm>
#include <atomic>

#include "ptxgen/support/error.hpp"

namespace ptxgen::qa {

namespace {

using namespace driver;

std::atomic<DriverProbe*> active_probe{nullptr};

enum ProbedRow : std::size_t {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  probed_##field,
#include "ptxgen/driver/functions.def"
  kProbedRows
};

template <class Call>
CUresult probed(std::size_t row, const Call& call) {
  DriverProbe& probe = *active_probe.load(std::memory_order_acquire);
  CUresult status = CUDA_SUCCESS;
  if (probe.fails(row, status)) return status;
  status = call(probe.base());
  if (status == CUDA_SUCCESS) probe.succeeded(row);
  return status;
}

#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments)   \
  CUresult probed_call_##field parameters {                                                 \
    return probed(probed_##field,                                                           \
                  [&](const Table& probed_table) { return probed_table.field arguments; }); \
  }
#include "ptxgen/driver/functions.def"

constexpr FaultSite kFaultSites[] = {
    {"create", "retaining the device's context", CUDA_ERROR_OUT_OF_MEMORY},
    {"compile", "loading a module", CUDA_ERROR_INVALID_PTX},
    {"allocation", "allocating device memory", CUDA_ERROR_OUT_OF_MEMORY},
    {"launch", "launching a kernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
    {"sync", "waiting for a stream", CUDA_ERROR_ILLEGAL_ADDRESS}};

// The site that a function belongs to, or none.
std::string_view site_of(std::size_t row) {
  switch (row) {
    case probed_device_primary_ctx_retain:
      return "create";
    case probed_module_load_data_ex:
    case probed_module_load_data:
    case probed_library_load_data:
      return "compile";
    case probed_mem_alloc:
    case probed_mem_alloc_async:
      return "allocation";
    case probed_launch_kernel:
    case probed_launch_kernel_ex:
      return "launch";
    case probed_stream_synchronize:
      return "sync";
    default:
      return {};
  }
}

}  // namespace

std::span<const FaultSite> fault_sites() noexcept { return kFaultSites; }

const FaultSite* fault_site(std::string_view name) noexcept {
  const auto found = std::ranges::find(kFaultSites, name, &FaultSite::name);
  return found == std::end(kFaultSites) ? nullptr : found;
}

DriverProbe::DriverProbe(const Table& base) : base_(base) {
  DriverProbe* none = nullptr;
  if (!active_probe.compare_exchange_strong(none, this)) {
    throw Error(Stage::Verify, "busy", "a playbook is running already in this process");
  }
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  if (base.field != nullptr) table_.field = probed_call_##field;
#include "ptxgen/driver/functions.def"
}

DriverProbe::~DriverProbe() { active_probe.store(nullptr, std::memory_order_release); }

void DriverProbe::fail_next(const FaultSite* site) {
  const std::lock_guard lock(mutex_);
  armed_ = site;
  failed_ = false;
}

bool DriverProbe::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

std::int64_t DriverProbe::living(Object object) const {
  const std::lock_guard lock(mutex_);
  return living_.at(static_cast<std::size_t>(object));
}

std::int64_t DriverProbe::launches_pending() const {
  const std::lock_guard lock(mutex_);
  return pending_;
}

bool DriverProbe::fails(std::size_t row, CUresult& status) {
  const std::lock_guard lock(mutex_);
  if (armed_ == nullptr || site_of(row) != armed_->name) return false;
  status = armed_->status;
  armed_ = nullptr;
  failed_ = true;
  return true;
}

void DriverProbe::succeeded(std::size_t row) {
  const ObjectEffect& effect = functions()[row].effect;
  const std::lock_guard lock(mutex_);
  living_.at(static_cast<std::size_t>(effect.object)) += effect.change;
  if (row == probed_launch_kernel || row == probed_launch_kernel_ex) ++pending_;
  if (row == probed_stream_synchronize || row == probed_ctx_synchronize) pending_ = 0;
}

}  // namespace ptxgen::qa
