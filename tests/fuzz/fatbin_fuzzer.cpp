// tests/fuzz/fatbin_fuzzer.cpp - module images of any bytes
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "driver/emulated/image.hpp"

// What is found lies inside the input, whatever its headers say; what is not found has a reason.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptxgen;
  namespace emulated = driver::emulated;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const char* name : {"t4", "h200", "rtx5090"}) {
    const emulated::ModuleImage image = emulated::read_image(bytes, *ptx::find_gpu(name));
    if (image.result != driver::CUDA_SUCCESS) {
      if (image.why.empty() || !image.ptx.empty()) std::abort();
      continue;
    }
    const char* const begin = reinterpret_cast<const char*>(data);
    if (image.ptx.data() < begin || image.ptx.data() + image.ptx.size() > begin + size) {
      std::abort();
    }
    (void)emulated::ptx_version(image.ptx);
  }
  return 0;
}
