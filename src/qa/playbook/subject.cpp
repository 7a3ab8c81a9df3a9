// src/qa/playbook/subject.cpp - the launcher as playbooks see it: events, quantities, defects
#include "qa/playbook/subject.hpp"

#include <algorithm>

#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "qa/gemv_check.hpp"
#include "support/format.hpp"

namespace ptxgen::qa {

namespace {

constexpr std::uint32_t kPlaybookRows = 100;
constexpr std::uint32_t kPlaybookColumns = 60;

constexpr NamedDoc kQuantities[] = {
    {"scheduler_present", "1 if there is a launcher"},
    {"context_present", "contexts that the driver has retained for it"},
    {"context_valid", "1 if the driver answers in the context, and no fault has poisoned it"},
    {"modules", "modules that the driver holds"},
    {"ptx_valid", "1 if the loaded kernel's PTX parses and the verifier finds no error"},
    {"allocated_bytes", "of the three buffers, as the driver knows them"},
    {"needed_bytes", "of y, a and x"},
    {"free_bytes", "of device memory; 0 without a context"},
    {"launch_valid", "1 if the loaded function accepts the launch's geometry"},
    {"shared_bytes", "static shared memory of the loaded function"},
    {"tile_bytes", "shared memory that the kernel's tile takes"},
    {"launches_pending", "launches that no synchronisation has waited for"},
    {"output_length", "elements of y that the host has read"},
    {"output_valid", "1 if there are some and each is within its bound of the fp64 reference"},
    {"device_errors", "findings of severity error, and a poisoned context"},
    {"error_recorded", "1 if the last failure is kept with its code"},
    {"error_status", "the driver's status of the last failure"},
    {"k", "rows of a"},
    {"n", "columns of a, elements of y"}};

constexpr NamedDoc kEvents[] = {
    {"create_scheduler", "context, stream and launcher are made"},
    {"compile_gemv_kernel", "gemv_coalesced is built and loaded by the launcher"},
    {"allocate_buffers", "y, a and x are allocated and filled"},
    {"launch_kernel", "the launcher queues the kernel"},
    {"synchronize", "the stream is waited for, and y is read"}};

constexpr NamedDoc kDefects[] = {
    {"leftover_scheduler", "a launcher is there before the first event"},
    {"lost_create", "create_scheduler does nothing"},
    {"early_module", "create_scheduler loads the kernel already"},
    {"lost_compile", "compile_gemv_kernel does nothing"},
    {"lost_allocation", "allocate_buffers does nothing"},
    {"lost_launch", "launch_kernel does nothing"},
    {"short_output", "synchronize reads all elements but one"},
    {"lost_error", "a failure is not recorded"}};

// Device memory at an address, as the driver knows it; 0 for none.
std::int64_t bytes_at(const driver::Table& table, std::uint64_t address) {
  if (address == 0 || table.mem_get_address_range == nullptr) return 0;
  driver::CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const driver::CUresult result = table.mem_get_address_range(&base, &bytes, address);
  return result == driver::CUDA_SUCCESS ? static_cast<std::int64_t>(bytes) : 0;
}

}  // namespace

LauncherSubject::LauncherSubject(const Device& device, DriverProbe& probe, const Settings& settings,
                                 std::string_view defect)
    : device_(device),
      probe_(probe),
      settings_(settings),
      defect_(defect),
      spec_{kPlaybookRows, kPlaybookColumns},
      problem_(random_problem(kPlaybookRows, kPlaybookColumns, 7)) {
  if (has("leftover_scheduler")) create();
}

std::span<const NamedDoc> LauncherSubject::quantities() noexcept { return kQuantities; }
std::span<const NamedDoc> LauncherSubject::events() noexcept { return kEvents; }
std::span<const NamedDoc> LauncherSubject::defects() noexcept { return kDefects; }

void LauncherSubject::perform(std::string_view event) {
  try {
    do_event(event);
  } catch (const Error& error) {
    if (!has("lost_error")) last_error_ = error;
    throw;
  }
}

void LauncherSubject::do_event(std::string_view event) {
  if (event == "create_scheduler" && !has("lost_create")) create();
  if (event == "compile_gemv_kernel" && !has("lost_compile")) compile();
  if (event == "allocate_buffers" && !has("lost_allocation")) allocate();
  if (event == "launch_kernel" && !has("lost_launch")) launch();
  if (event == "synchronize") synchronize();
}

void LauncherSubject::create() {
  context_.emplace(device_);
  stream_.emplace(*context_);
  LauncherOptions options;
  options.settings = settings_;
  options.cache.mode = CacheMode::MemoryOnly;
  launcher_.emplace(*context_, options);
  if (has("early_module")) compile();
}

void LauncherSubject::require(bool ready, std::string_view what, std::string_view event) {
  if (ready) return;
  throw Error(Stage::Launch, "not-ready",
              format_text("there is no {}; the event '{}' makes it", what, event));
}

void LauncherSubject::compile() {
  require(launcher_.has_value(), "launcher", "create_scheduler");
  kernel_.emplace(spec_.build(device_.target()));
  function_.emplace(launcher_->load(kernel_->module(), kernel_->name()));
}

void LauncherSubject::allocate() {
  require(context_.has_value(), "context", "create_scheduler");
  y_ = Buffer<f32>(*context_, problem_.n);
  a_ = Buffer<f32>(*context_, problem_.a);
  x_ = Buffer<f32>(*context_, problem_.x);
  y_.fill_bytes(0xff);
}

void LauncherSubject::launch() {
  require(function_.has_value(), "function", "compile_gemv_kernel");
  require(y_.size() != 0, "memory", "allocate_buffers");
  launcher_->launch(*function_, spec_.geometry(), *stream_, DeviceSpan<f32>(y_),
                    DeviceSpan<f32>(a_), DeviceSpan<f32>(x_), problem_.k, problem_.n);
}

void LauncherSubject::synchronize() {
  require(stream_.has_value(), "stream", "create_scheduler");
  require(y_.size() != 0, "memory", "allocate_buffers");
  stream_->synchronize();
  output_.resize(problem_.n - (has("short_output") ? 1 : 0));
  y_.read_part(0, output_);
}

std::int64_t LauncherSubject::context_valid() const {
  if (!context_ || context_->poisoned()) return 0;
  try {
    return context_->memory().total != 0;
  } catch (const Error&) {
    return 0;
  }
}

std::int64_t LauncherSubject::ptx_valid() const {
  if (!kernel_ || !function_) return 0;
  try {
    return count_errors(ptx::verify(ptx::parse(kernel_->ptx(), "gemv_coalesced"))) == 0;
  } catch (const Error&) {
    return 0;
  }
}

std::int64_t LauncherSubject::launch_valid() const {
  if (!function_) return 0;
  try {
    function_->check(spec_.geometry());
    return 1;
  } catch (const Error&) {
    return 0;
  }
}

std::int64_t LauncherSubject::allocated_bytes() const {
  if (!context_) return 0;
  const driver::Table& table = probe_.table();
  if (table.ctx_push_current(context_->handle()) != driver::CUDA_SUCCESS) return 0;
  std::int64_t sum = 0;
  for (const Buffer<f32>* buffer : {&y_, &a_, &x_}) {
    sum += bytes_at(table, buffer->address().value);
  }
  driver::CUcontext popped = nullptr;
  (void)table.ctx_pop_current(&popped);
  return sum;
}

std::int64_t LauncherSubject::output_valid() const {
  if (output_.empty()) return 0;
  // The columns that were read: the others are not judged here.
  Problem part;
  part.k = problem_.k;
  part.n = static_cast<std::uint32_t>(output_.size());
  part.x = problem_.x;
  for (std::uint32_t i = 0; i < part.k; ++i) {
    const auto row = problem_.a.begin() + static_cast<std::ptrdiff_t>(std::size_t{i} * problem_.n);
    part.a.insert(part.a.end(), row, row + static_cast<std::ptrdiff_t>(part.n));
  }
  Tally tally;
  check_gemv(tally, part, output_, coalesced_roundings(part), "y");
  return tally.ok();
}

std::int64_t LauncherSubject::device_errors() const {
  return static_cast<std::int64_t>(device_.finding_counts().errors) +
         (context_ && context_->poisoned() ? 1 : 0);
}

std::int64_t LauncherSubject::value(std::string_view quantity) const {
  const std::pair<std::string_view, std::int64_t (LauncherSubject::*)() const> computed[] = {
      {"context_valid", &LauncherSubject::context_valid},
      {"ptx_valid", &LauncherSubject::ptx_valid},
      {"allocated_bytes", &LauncherSubject::allocated_bytes},
      {"launch_valid", &LauncherSubject::launch_valid},
      {"output_valid", &LauncherSubject::output_valid},
      {"device_errors", &LauncherSubject::device_errors}};
  for (const auto& [name, function] : computed) {
    if (name == quantity) return (this->*function)();
  }
  if (quantity == "scheduler_present") return launcher_.has_value();
  if (quantity == "context_present") return probe_.living(driver::Object::Context);
  if (quantity == "modules") return probe_.living(driver::Object::Module);
  if (quantity == "needed_bytes") {
    return static_cast<std::int64_t>(sizeof(float) *
                                     (problem_.n + problem_.a.size() + problem_.x.size()));
  }
  if (quantity == "free_bytes") {
    return context_valid() == 0 ? 0 : static_cast<std::int64_t>(context_->memory().free);
  }
  if (quantity == "shared_bytes") return function_ ? function_->resources().static_shared : 0;
  if (quantity == "tile_bytes") return sizeof(float) * GemvCoalesced::kTile;
  if (quantity == "launches_pending") return probe_.launches_pending();
  if (quantity == "output_length") return static_cast<std::int64_t>(output_.size());
  if (quantity == "error_recorded") return last_error_ && !last_error_->code.empty();
  if (quantity == "error_status") return last_error_ ? last_error_->driver_status : 0;
  if (quantity == "k") return problem_.k;
  if (quantity == "n") return problem_.n;
  throw Error(Stage::Verify, "undefined-symbol",
              "there is no quantity '" + std::string(quantity) + "'");
}

}  // namespace ptxgen::qa
