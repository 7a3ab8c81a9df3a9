// src/emulator/state/origins.hpp - where the statements of a loaded text come from
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ptxgen/support/source_location.hpp"

namespace ptxgen::inline v0::emulator {

class Program;

/// What a loader knows of the statements of a PTX text. Findings name these places, not lines of a
/// text that the caller has never seen.
struct Origins {
  std::string file;  ///< the caller's PTX, in which `Place::line` counts; empty: there is none
  struct Place {
    SourceLocation cpp;      ///< the builder call
    std::uint32_t line = 0;  ///< in `file`
  };
  std::vector<Place> places;  ///< of the text's lines, from line 0 (none) on

  /// Of a line of the text; an empty place if it has none.
  [[nodiscard]] Place at(std::uint32_t line) const;
  /// "FILE:LINE" of the builder call, or else of the caller's PTX; empty if neither is known.
  [[nodiscard]] std::string text(std::uint32_t line) const;
};

/// Gives the origins to a program, for runs that begin later; null: PTX lines stand for themselves.
/// Not while the program runs.
void set_origins(const Program& program, std::shared_ptr<const Origins> origins);

}  // namespace ptxgen::inline v0::emulator
