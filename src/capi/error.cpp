// src/capi/error.cpp - errors as status codes and texts
#include <algorithm>
#include <new>
#include <utility>

#include "capi/handle.hpp"
#include "ptxgen/version.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

using namespace ptxgen;
using capi::Failure;

struct ptxgen_error {
  std::shared_ptr<const Failure> failure;
};

namespace ptxgen::inline v0::capi {

namespace {

// A status for every stage, in the stages' order.
constexpr ptxgen_status status_of(Stage stage) noexcept {
  return static_cast<ptxgen_status>(stage) + PTXGEN_ERROR_BUILD;
}
static_assert(status_of(Stage::Build) == PTXGEN_ERROR_BUILD);
static_assert(status_of(Stage::Verify) == PTXGEN_ERROR_VERIFY);
static_assert(status_of(Stage::Optimize) == PTXGEN_ERROR_OPTIMIZE);
static_assert(status_of(Stage::Assemble) == PTXGEN_ERROR_ASSEMBLE);
static_assert(status_of(Stage::Load) == PTXGEN_ERROR_LOAD);
static_assert(status_of(Stage::Launch) == PTXGEN_ERROR_LAUNCH);
static_assert(status_of(Stage::Cache) == PTXGEN_ERROR_CACHE);
static_assert(status_of(Stage::Emulate) == PTXGEN_ERROR_EMULATE);
static_assert(status_of(Stage::Device) == PTXGEN_ERROR_DEVICE);
static_assert(status_of(Stage::Io) == PTXGEN_ERROR_IO);
static_assert(PTXGEN_VERSION_MAJOR == kVersionMajor && PTXGEN_VERSION_MINOR == kVersionMinor &&
              PTXGEN_VERSION_PATCH == kVersionPatch);

/// The failures of calls without a handle.
std::shared_ptr<const Failure>& thread_slot() noexcept {
  thread_local std::shared_ptr<const Failure> failure;
  return failure;
}

std::shared_ptr<const Failure> plain(ptxgen_status status, std::string code, std::string message) {
  auto failure = std::make_shared<Failure>();
  failure->status = status;
  failure->text = format_text("error: {} [{}]", message, code);
  failure->code = std::move(code);
  failure->message = std::move(message);
  return failure;
}

std::shared_ptr<const Failure> from(const Error& error) {
  auto failure = std::make_shared<Failure>();
  failure->status = status_of(error.stage);
  failure->code = error.code;
  failure->message = error.message;
  failure->text = error.describe();
  failure->kernel = error.kernel;
  failure->target = error.target;
  failure->file = error.file;
  failure->line = error.line;
  failure->column = error.column;
  failure->excerpt = error.excerpt;
  failure->driver_status = error.driver_status;
  failure->log = error.log;
  return failure;
}

/// The failure of the exception being handled. Throws std::bad_alloc.
std::shared_ptr<const Failure> current() {
  try {
    throw;
  } catch (const Error& error) {
    return from(error);
  } catch (const UsageError& error) {
    return plain(PTXGEN_ERROR_USAGE, error.code, error.message);
  } catch (const std::bad_alloc&) {
    return plain(PTXGEN_ERROR_MEMORY, "out-of-host-memory", "the host is out of memory");
  } catch (const std::exception& error) {
    return plain(PTXGEN_ERROR_INTERNAL, "internal", error.what());
  } catch (...) {
    return plain(PTXGEN_ERROR_INTERNAL, "internal", "an unknown exception");
  }
}

/// Preallocated for out-of-memory errors.
const std::shared_ptr<const Failure>& no_memory() {
  static const std::shared_ptr<const Failure> failure =
      plain(PTXGEN_ERROR_MEMORY, "out-of-host-memory", "the host is out of memory");
  return failure;
}
[[maybe_unused]] const bool kPreallocated = no_memory() != nullptr;

}  // namespace

std::string_view to_string(Kind kind) noexcept {
  constexpr std::string_view kNames[] = {"unknown", "device",   "buffer", "stream",   "event",
                                         "graph",   "program",  "module", "function", "plan",
                                         "image",   "findings", "model",  "session"};
  const auto index = static_cast<std::size_t>(kind);
  return kNames[index < std::size(kNames) ? index : 0];
}

void Handle::keep(std::shared_ptr<const Failure> failure) const noexcept {
  const std::lock_guard lock(mutex_);
  failure_.swap(failure);
}

std::shared_ptr<const Failure> Handle::failure() const noexcept {
  const std::lock_guard lock(mutex_);
  return failure_;
}

const Handle* slot(const void* handle) noexcept {
  const auto* const known = static_cast<const Handle*>(handle);
  return known != nullptr && known->valid() ? known : nullptr;
}

ptxgen_status keep_current_exception(const Handle* handle) noexcept {
  std::shared_ptr<const Failure> failure;
  try {
    failure = current();
  } catch (...) {
    failure = no_memory();
  }
  const ptxgen_status status = failure->status;
  if (handle != nullptr) {
    handle->keep(std::move(failure));
  } else {
    thread_slot() = std::move(failure);
  }
  return status;
}

void throw_wrong_handle(const Handle* handle, Kind wanted, std::string_view name) {
  std::string message = std::string(name) + " is ";
  if (handle == nullptr) {
    message += "NULL";
  } else if (handle->valid()) {
    message += "the handle of a " + std::string(to_string(handle->kind()));
  } else {
    message += "no handle, or was freed";
  }
  throw UsageError{handle == nullptr ? "null" : "wrong-handle",
                   format_text("{}; expected a {}", message, to_string(wanted))};
}

void throw_null(std::string_view name) { throw UsageError{"null", std::string(name) + " is NULL"}; }

std::string_view need_text(const char* text, std::string_view name) {
  return &need_place(text, name);
}

void throw_struct_bytes(std::size_t bytes, std::string_view name) {
  throw UsageError{
      "struct-bytes",
      format_text("{}.struct_bytes is {}; set it to sizeof the structure before the call", name,
                  bytes)};
}

void throw_newer_struct(std::size_t bytes, std::size_t known, std::string_view name) {
  throw UsageError{
      "struct-bytes",
      format_text(
          "{} has {}, this library ({}) knows {}, and a later field is set; use a newer library",
          name, count_text(bytes, "byte"), kVersion, known)};
}

}  // namespace ptxgen::inline v0::capi

namespace {

const char* text_of(const ptxgen_error* error, std::string Failure::*field) noexcept {
  return error == nullptr ? "" : (error->failure.get()->*field).c_str();
}

std::shared_ptr<const Failure> last(const void* handle) noexcept {
  if (handle == nullptr) return capi::thread_slot();
  const capi::Handle* const known = capi::slot(handle);
  return known == nullptr ? nullptr : known->failure();
}

}  // namespace

extern "C" {

void ptxgen_version(int* major, int* minor, int* patch) noexcept {
  if (major != nullptr) *major = kVersionMajor;
  if (minor != nullptr) *minor = kVersionMinor;
  if (patch != nullptr) *patch = kVersionPatch;
}
const char* ptxgen_version_string(void) noexcept { return kVersion; }
int ptxgen_c_api(void) noexcept { return PTXGEN_C_API; }

const char* ptxgen_status_name(ptxgen_status status) noexcept {
  static constexpr const char* kNames[] = {"ok",   "build",  "verify", "optimize", "assemble",
                                           "load", "launch", "cache",  "emulate",  "device",
                                           "io",   "usage",  "memory", "internal"};
  static_assert(std::size(kNames) == PTXGEN_ERROR_INTERNAL + 1);
  return status >= 0 && static_cast<std::size_t>(status) < std::size(kNames) ? kNames[status]
                                                                             : "unknown";
}

ptxgen_error* ptxgen_last_error(const void* handle) noexcept {
  std::shared_ptr<const Failure> failure = last(handle);
  if (failure == nullptr) return nullptr;
  auto* const error = new (std::nothrow) ptxgen_error;
  if (error != nullptr) error->failure = std::move(failure);
  return error;
}
void ptxgen_error_free(ptxgen_error* error) noexcept { delete error; }

size_t ptxgen_last_error_text(const void* handle, char* buffer, size_t bytes) noexcept {
  const std::shared_ptr<const Failure> failure = last(handle);
  const std::string_view text = failure == nullptr ? std::string_view{} : failure->text;
  if (buffer != nullptr && bytes != 0) {
    const std::size_t fits = std::min(text.size(), bytes - 1);
    std::copy_n(text.data(), fits, buffer);
    buffer[fits] = '\0';
  }
  return text.size();
}

ptxgen_status ptxgen_error_status(const ptxgen_error* error) noexcept {
  return error == nullptr ? PTXGEN_OK : error->failure->status;
}
const char* ptxgen_error_code(const ptxgen_error* error) noexcept {
  return text_of(error, &Failure::code);
}
const char* ptxgen_error_message(const ptxgen_error* error) noexcept {
  return text_of(error, &Failure::message);
}
const char* ptxgen_error_text(const ptxgen_error* error) noexcept {
  return text_of(error, &Failure::text);
}
const char* ptxgen_error_kernel(const ptxgen_error* error) noexcept {
  return text_of(error, &Failure::kernel);
}
const char* ptxgen_error_target(const ptxgen_error* error) noexcept {
  return text_of(error, &Failure::target);
}
const char* ptxgen_error_file(const ptxgen_error* error) noexcept {
  return text_of(error, &Failure::file);
}
uint32_t ptxgen_error_line(const ptxgen_error* error) noexcept {
  return error == nullptr ? 0 : error->failure->line;
}
uint32_t ptxgen_error_column(const ptxgen_error* error) noexcept {
  return error == nullptr ? 0 : error->failure->column;
}
const char* ptxgen_error_excerpt(const ptxgen_error* error) noexcept {
  return text_of(error, &Failure::excerpt);
}
int ptxgen_error_driver_status(const ptxgen_error* error) noexcept {
  return error == nullptr ? 0 : error->failure->driver_status;
}
const char* ptxgen_error_log(const ptxgen_error* error) noexcept {
  return text_of(error, &Failure::log);
}

}  // extern "C"
