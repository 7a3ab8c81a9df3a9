// src/driver/emulated/link.hpp - joining PTX texts
#pragma once

#include <span>
#include <string>

namespace ptxgen::inline v0::driver::emulated {

struct LinkInput {
  std::string name;  ///< as the caller named it
  std::string ptx;
};

/// Joins all inputs into one text with the newest `.version`, the highest `.target` and the
/// concatenated bodies. Declarations (`.extern` functions and variables) that another input defines
/// are dropped; local names (neither `.visible`, `.weak`, `.common` nor `.extern`) that two inputs
/// use get a suffix. A single input is returned unchanged, so lines in messages are the caller's.
/// Throws `Error`: as ptx::parse, or Stage::Load, code "duplicate-name" where two inputs define the
/// same visible name.
[[nodiscard]] std::string join(std::span<const LinkInput> inputs);

}  // namespace ptxgen::inline v0::driver::emulated
