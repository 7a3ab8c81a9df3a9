// src/driver/lto_ir.hpp - what LTO IR begins with
#pragma once

#include <array>
#include <string_view>

namespace ptxgen::inline v0::driver {

/// Of what NVRTC 12 and 13 write with `-dlto`; nvJitLink reads it.
[[nodiscard]] constexpr bool is_lto_ir(std::string_view bytes) noexcept {
  constexpr std::array<char, 4> kMagic{'\xed', 'C', 'N', '\x7f'};
  return bytes.substr(0, kMagic.size()) == std::string_view(kMagic.data(), kMagic.size());
}

}  // namespace ptxgen::inline v0::driver
