// src/support/nvtx.cpp - the NVTX 3 injection protocol and libnvToolsExt
#include "support/nvtx.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "support/dynamic_library.hpp"

namespace ptxgen::inline v0 {

namespace {

// Layouts and numbers are those of NVTX 3 (nvToolsExt.h, nvtxDetail/nvtxTypes.h of CUDA 13.0).
// The protocol is for 64-bit processes, where all have one calling convention.
using AnyFunction = void (*)();
using Domain = void*;

struct EventAttributes {
  std::uint16_t version = 3;
  std::uint16_t size = sizeof(EventAttributes);
  std::uint32_t category = 0;
  std::int32_t color_type = 0;
  std::uint32_t color = 0;
  std::int32_t payload_type = 0;
  std::int32_t reserved = 0;
  std::uint64_t payload = 0;
  std::int32_t message_type = 1;  // ASCII, which in practice is UTF-8
  const char* message = nullptr;
};
static_assert(sizeof(void*) != 8 || sizeof(EventAttributes) == 48);

using DomainCreate = Domain (*)(const char*);
using DomainPush = int (*)(Domain, const EventAttributes*);
using DomainPop = int (*)(Domain);
using Push = int (*)(const char*);
using Pop = int (*)();

// One slot for each function of a module; slot 0 means nothing in any of them.
constexpr std::array<unsigned, 7> kModuleSizes = {0, 16, 9, 15, 7, 16, 7};
constexpr std::size_t kMaxSlots = 16;
constexpr int kCore = 1;
constexpr int kCore2 = 5;
constexpr int kRangePushA = 9;
constexpr int kRangePop = 11;
constexpr int kDomainRangePushEx = 4;
constexpr int kDomainRangePop = 5;
constexpr int kDomainCreateA = 12;

/// The functions that a profiler fills in, and the pointers to them that it is shown.
struct Slots {
  std::array<std::array<AnyFunction, kMaxSlots>, kModuleSizes.size()> functions{};
  std::array<std::array<AnyFunction*, kMaxSlots + 1>, kModuleSizes.size()> shown{};
};

}  // namespace

struct Nvtx::Table {
  Domain domain = nullptr;
  DomainPush domain_push = nullptr;
  DomainPop domain_pop = nullptr;
  Push push = nullptr;
  Pop pop = nullptr;

  [[nodiscard]] bool usable() const noexcept {
    return (domain_push != nullptr && domain_pop != nullptr) || (push != nullptr && pop != nullptr);
  }
};

namespace {

Slots& slots() {
  static Slots all;
  return all;
}

int get_module_function_table(int module, AnyFunction*** table, unsigned* size) {
  const auto index = static_cast<std::size_t>(module);
  if (module <= 0 || index >= kModuleSizes.size()) return 0;
  Slots& all = slots();
  for (std::size_t i = 1; i < kModuleSizes[index]; ++i) {
    all.shown[index][i] = &all.functions[index][i];
  }
  if (table != nullptr) *table = all.shown[index].data();
  if (size != nullptr) *size = kModuleSizes[index];
  return 1;
}

void set_injection_version(std::uint32_t /*version*/) {}

struct CallbacksTable {
  std::size_t bytes;
  int (*get_module_function_table)(int, AnyFunction***, unsigned*);
};

struct VersionTable {
  std::size_t bytes;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_injection_version)(std::uint32_t);
};

const void* get_export_table(std::uint32_t id) {
  static constexpr CallbacksTable kCallbacks{sizeof(CallbacksTable), get_module_function_table};
  static constexpr VersionTable kVersion{sizeof(VersionTable), 3, 0, set_injection_version};
  if (id == 1) return &kCallbacks;
  if (id == 3) return &kVersion;
  return nullptr;
}

template <class Function>
Function slot(int module, int index) {
  return reinterpret_cast<Function>(
      slots().functions[static_cast<std::size_t>(module)][static_cast<std::size_t>(index)]);
}

using Initialize = int (*)(const void* (*)(std::uint32_t));

/// Why the library that was named gives no profiler.
void complain(const Log& log, const char* variable, const std::string& path,
              std::string_view reason) {
  log.warn([&] {
    return std::string(variable) + "=" + path + ": " + std::string(reason) +
           "; no profiler will see the library's ranges";
  });
}

std::optional<Nvtx::Table> inject(const NvtxSearch& search) {
  constexpr const char* kVariable = "NVTX_INJECTION64_PATH";
  LibrarySearch where;
  where.stem = "libnvtx_injection.so";
  where.variable = kVariable;
  where.override_path = search.injection;
  const DynamicLibrary library = DynamicLibrary::find(where);
  if (!library) {
    complain(search.log, kVariable, search.injection,
             library.attempts().empty() ? "not found" : library.attempts().back().reason);
    return std::nullopt;
  }
  const auto initialize = reinterpret_cast<Initialize>(library.symbol("InitializeInjectionNvtx2"));
  if (initialize == nullptr) {
    complain(search.log, kVariable, search.injection, "has no function InitializeInjectionNvtx2");
    return std::nullopt;
  }
  if (initialize(get_export_table) == 0) {
    complain(search.log, kVariable, search.injection, "InitializeInjectionNvtx2 returned 0");
    return std::nullopt;
  }
  Nvtx::Table table;
  table.push = slot<Push>(kCore, kRangePushA);
  table.pop = slot<Pop>(kCore, kRangePop);
  table.domain_push = slot<DomainPush>(kCore2, kDomainRangePushEx);
  table.domain_pop = slot<DomainPop>(kCore2, kDomainRangePop);
  if (const auto create = slot<DomainCreate>(kCore2, kDomainCreateA); create != nullptr) {
    table.domain = create("ptxgen");
  }
  return table;
}

std::optional<Nvtx::Table> load(const NvtxSearch& search) {
  constexpr const char* kVariable = "PTXGEN_NVTX_PATH";
  LibrarySearch where;
  where.stem = "libnvToolsExt.so";
  where.variable = kVariable;
  where.override_path = search.library;
  DynamicLibrary library;
  if (!search.library.empty()) {
    library = DynamicLibrary::find(where);
    if (!library) {
      complain(search.log, kVariable, search.library,
               library.attempts().empty() ? "not found" : library.attempts().back().reason);
    }
  } else if (search.in_process) {
    library = DynamicLibrary::find_loaded("libnvToolsExt.so.1");
  }
  if (!library) return std::nullopt;
  const auto named = [&library](const char* name) { return library.symbol(name); };
  Nvtx::Table table;
  table.push = reinterpret_cast<Push>(named("nvtxRangePushA"));
  table.pop = reinterpret_cast<Pop>(named("nvtxRangePop"));
  table.domain_push = reinterpret_cast<DomainPush>(named("nvtxDomainRangePushEx"));
  table.domain_pop = reinterpret_cast<DomainPop>(named("nvtxDomainRangePop"));
  if (const auto create = reinterpret_cast<DomainCreate>(named("nvtxDomainCreateA"));
      create != nullptr) {
    table.domain = create("ptxgen");
  }
  return table;
}

}  // namespace

Nvtx Nvtx::connect(const NvtxSearch& search) {
  static std::mutex mutex;
  static std::optional<Table> connection;

  // Only the outcome is shared; nothing is logged while the lock is held.
  NvtxSearch quiet = search;
  std::string complaint;
  const auto remember = [](void* user, LogLevel, std::string_view text) {
    auto& all = *static_cast<std::string*>(user);
    if (!all.empty()) all += '\n';
    all += text;
  };
  quiet.log = Log(LogLevel::Warn, {remember, &complaint, nullptr});

  Nvtx result;
  {
    const std::lock_guard lock(mutex);
    if (!connection && !quiet.injection.empty()) connection = inject(quiet);
    if (!connection) connection = load(quiet);
    if (connection && !connection->usable()) {
      connection.reset();
      quiet.log.warn("the profiler's NVTX library offers no ranges; none will be shown");
    }
    if (connection) result.table_ = &*connection;
  }
  if (!complaint.empty()) search.log.warn(complaint);
  return result;
}

void Nvtx::push(const char* name) const noexcept {
  if (table_->domain_push != nullptr && table_->domain_pop != nullptr) {
    EventAttributes attributes;
    attributes.message = name;
    table_->domain_push(table_->domain, &attributes);
  } else {
    table_->push(name);
  }
}

void Nvtx::pop() const noexcept {
  if (table_->domain_push != nullptr && table_->domain_pop != nullptr) {
    table_->domain_pop(table_->domain);
  } else {
    table_->pop();
  }
}

}  // namespace ptxgen::inline v0
