// tests/fuzz/fatbin_fuzzer.cpp - module images of any bytes
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "driver/emulated/image.hpp"

namespace {

/// Where the text of an image must be: in what was decompressed, or else in the image itself.
std::string_view text_source(const ptxgen::driver::emulated::ModuleImage& image,
                             std::span<const std::byte> bytes) {
  if (image.unpacked != nullptr) return *image.unpacked;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// What is found is inside its source, whatever the headers say; what is not found has a reason.
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
    const std::string_view source = text_source(image, bytes);
    if (image.ptx.data() < source.data() ||
        image.ptx.data() + image.ptx.size() > source.data() + source.size()) {
      std::abort();
    }
    (void)emulated::ptx_version(image.ptx);
  }
  return 0;
}
