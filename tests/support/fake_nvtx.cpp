// tests/support/fake_nvtx.cpp - a profiler's injection library, and a libnvToolsExt
//
// Built in variants: FAKE_NVTX_LIBRARY is a libnvToolsExt; else an injection library that fills
// FAKE_NVTX_MODULE (5: domains, 1: plain ranges, -1: nothing) and returns FAKE_NVTX_RESULT.
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace {

struct Recording {
  std::mutex mutex;
  std::string text;
  int depth = 0;

  void add(const std::string& what) {
    const std::lock_guard lock(mutex);
    text += what + "|";
  }
};

Recording& recording() {
  static auto* const one = new Recording;
  return *one;
}

struct Attributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const char* message;
};

std::string domain_name;

}  // namespace

extern "C" {

void* nvtxDomainCreateA(const char* name) {
  recording().add(std::string("domain ") + name);
  domain_name = name;
  return &domain_name;
}
int nvtxDomainRangePushEx(void* domain, const Attributes* attributes) {
  const bool sound = domain == &domain_name && attributes->version == 3 &&
                     attributes->size == sizeof(Attributes) && attributes->message_type == 1;
  recording().add((sound ? "push " : "WRONG ") + std::string(attributes->message));
  return 0;
}
int nvtxDomainRangePop(void* domain) {
  recording().add(domain == &domain_name ? "pop" : "WRONG DOMAIN");
  return 0;
}
int nvtxRangePushA(const char* message) {
  recording().add(std::string("plain push ") + message);
  return 0;
}
int nvtxRangePop() {
  recording().add("plain pop");
  return 0;
}

const char* fake_nvtx_recording() { return recording().text.c_str(); }

#if !defined(FAKE_NVTX_LIBRARY)
using Function = void (*)();
struct Callbacks {
  std::size_t bytes;
  int (*get_module_function_table)(int, Function***, unsigned*);
};
struct Version {
  std::size_t bytes;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_injection_version)(std::uint32_t);
};

int InitializeInjectionNvtx2(const void* (*get_export_table)(std::uint32_t)) {
  const auto* version = static_cast<const Version*>(get_export_table(3));
  const auto* callbacks = static_cast<const Callbacks*>(get_export_table(1));
  if (get_export_table(0) != nullptr || get_export_table(2) != nullptr || version == nullptr ||
      callbacks == nullptr || version->version != 3 || version->bytes < sizeof(Version) ||
      callbacks->bytes < sizeof(Callbacks)) {
    recording().add("WRONG EXPORTS");
    return 0;
  }
  version->set_injection_version(3);
  const unsigned sizes[] = {0, 16, 9, 15, 7, 16, 7};
  for (int module = 0; module < 9; ++module) {
    Function** table = nullptr;
    unsigned size = 0;
    const int found = callbacks->get_module_function_table(module, &table, &size);
    const bool expected = module >= 1 && module <= 6;
    if ((found != 0) != expected || (expected && size != sizes[module])) {
      recording().add("WRONG MODULE " + std::to_string(module));
    }
    // A profiler writes through every slot that it knows and stops at the terminator.
    for (unsigned i = 1; i < size; ++i) *table[i] = nullptr;
    if (expected && (table[0] != nullptr || table[size] != nullptr)) recording().add("WRONG END");
    if (module != FAKE_NVTX_MODULE) continue;
    if (module == 5) {
      *table[4] = reinterpret_cast<Function>(nvtxDomainRangePushEx);
      *table[5] = reinterpret_cast<Function>(nvtxDomainRangePop);
      *table[12] = reinterpret_cast<Function>(nvtxDomainCreateA);
    } else {
      *table[9] = reinterpret_cast<Function>(nvtxRangePushA);
      *table[11] = reinterpret_cast<Function>(nvtxRangePop);
    }
  }
  return FAKE_NVTX_RESULT;
}
#endif

}  // extern "C"
