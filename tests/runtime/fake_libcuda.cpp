// tests/runtime/fake_libcuda.cpp - a driver library without a driver
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#ifndef FAKE_INIT_STATUS
#define FAKE_INIT_STATUS 0
#endif

namespace {

constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidPtx = 218;
constexpr int kNoBinary = 209;

// A link keeps what cuLinkCreate was told; the PTX decides what happens next.
struct Link {
  char* info = nullptr;
  std::size_t info_bytes = 0;
  char* error = nullptr;
  std::size_t error_bytes = 0;
  std::size_t target = 0;
  std::size_t optimization = 0;
  unsigned char image[64] = {0x7f, 'E', 'L', 'F', 2, 1};
};

void write_log(char* buffer, std::size_t bytes, const std::string& text) {
  if (buffer == nullptr || bytes == 0) return;
  const std::size_t length = std::min(bytes - 1, text.size());
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return FAKE_INIT_STATUS; }
int cuDriverGetVersion(int* version) {
  *version = 13020;
  return 0;
}
int cuGetErrorName(int status, const char** name) {
  *name = status == kNoDevice     ? "CUDA_ERROR_NO_DEVICE"
          : status == kInvalidPtx ? "CUDA_ERROR_INVALID_PTX"
                                  : "CUDA_ERROR_UNKNOWN";
  return 0;
}
int cuGetErrorString(int status, const char** words) {
  *words = status == kNoDevice ? "no CUDA-capable device is detected" : "something went wrong";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = 7;
  return ordinal == 0 ? 0 : kInvalidDevice;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 16 ? 132 : attribute == 75 ? 9 : 0;
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{1} << 37;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(std::size_t{42});
  return device == 7 ? 0 : kInvalidDevice;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxPushCurrent_v2(void*) { return 0; }
int cuCtxPopCurrent_v2(void**) { return 0; }

int cuLinkCreate_v2(unsigned count, int* options, void** values, void** out) {
  auto* link = new Link;
  for (unsigned i = 0; i < count; ++i) {
    const auto number = reinterpret_cast<std::size_t>(values[i]);
    switch (options[i]) {
      case 3:
        link->info = static_cast<char*>(values[i]);
        break;
      case 4:
        link->info_bytes = number;
        break;
      case 5:
        link->error = static_cast<char*>(values[i]);
        break;
      case 6:
        link->error_bytes = number;
        break;
      case 7:
        link->optimization = number;
        break;
      case 9:
        link->target = number;
        break;
      default:
        break;
    }
  }
  *out = link;
  return 0;
}
int cuLinkAddData_v2(void* handle, int, void* data, std::size_t bytes, const char*, unsigned, int*,
                     void**) {
  const auto* link = static_cast<Link*>(handle);
  const std::string_view ptx(static_cast<char*>(data), bytes - 1);
  if (ptx.find("reject me") != std::string_view::npos) {
    write_log(link->error, link->error_bytes,
              "ptxas application ptx input, line 2; error   : Unknown instruction\n");
    return kInvalidPtx;
  }
  if (ptx.find("say much") != std::string_view::npos) {
    std::string log;
    while (log.size() < 500000) log += "ptxas application ptx input, line 3; warning : again\n";
    log += "ptxas application ptx input, line 1; error   : the last line\n";
    write_log(link->error, link->error_bytes, log);
    return kInvalidPtx;
  }
  return 0;
}
int cuLinkComplete(void* handle, void** image, std::size_t* bytes) {
  auto* link = static_cast<Link*>(handle);
  if (link->target == 999) return kNoBinary;
  write_log(link->info, link->info_bytes,
            "target " + std::to_string(link->target) + ", level " +
                std::to_string(link->optimization) +
                "\nptxas info    : Compiling entry function 'k' for 'sm_90'\n"
                "ptxas info    : Used 17 registers, used 1 barriers, 64 bytes smem\n");
  *image = link->image;
  *bytes = sizeof link->image;
  return 0;
}
int cuLinkDestroy(void* handle) {
  delete static_cast<Link*>(handle);
  return 0;
}
}
