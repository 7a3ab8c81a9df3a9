// src/driver/emulated/link.hpp - joining PTX texts
#pragma once

#include <span>
#include <string>

namespace ptxgen::inline v0::driver::emulated {

struct LinkInput {
  std::string name;  ///< as the caller named it
  std::string ptx;
};

/// One text that has what all inputs have: the newest `.version`, the highest `.target`, the bodies
/// one after another. Declarations (`.extern` functions and variables) of what another input
/// defines are left out; names that an input keeps to itself (neither `.visible`, `.weak`,
/// `.common` nor `.extern`) get a suffix where two inputs use them. A single input is returned as
/// it is, so that lines in messages are the caller's. Throws `Error`: as ptx::parse, or
/// Stage::Load, code "duplicate-name" where two inputs define the same visible name.
[[nodiscard]] std::string join(std::span<const LinkInput> inputs);

}  // namespace ptxgen::inline v0::driver::emulated
