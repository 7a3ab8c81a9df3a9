// ptxgen/ptx/source_map.hpp - from statements to the source lines of `.loc`
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// The `.loc` directives of one function. Keeps references to module and function.
class SourceMap {
 public:
  SourceMap(const Module& module, const Function& function);

  /// The source positions of a statement (index in Function::body) from the last `.loc` before it:
  /// the position itself, then the call site of each inlined function, innermost first. Empty if
  /// there is no `.loc`, or if its line is 0.
  [[nodiscard]] std::vector<SourcePosition> stack(std::size_t statement) const;
  /// The innermost position of the stack that is in the file of the outermost one (the kernel's own
  /// file), without the function's name; unknown if the stack is empty.
  [[nodiscard]] SourcePosition position(std::size_t statement) const;
  /// Fills `source_file`, `source_line` and `inlined`.
  void fill(Finding& finding, std::size_t statement) const;

 private:
  struct Location {
    std::uint32_t statement = 0;
    std::uint32_t parent = kNone;  ///< in locations_: the `.loc` of its `inlined_at`
  };
  [[nodiscard]] std::vector<SourcePosition> walk(std::size_t statement, bool names) const;
  [[nodiscard]] SourcePosition at(std::uint32_t file, std::uint32_t line,
                                  std::uint32_t column) const;
  [[nodiscard]] std::string function_name(const Operand& label) const;

  const Module* module_;
  const Function* function_;
  std::vector<Location> locations_;  ///< in the order of the text
};

/// Fills `source_file`, `source_line` and `inlined` of findings that have a PTX line and no source.
void fill_sources(std::span<Finding> findings, const Module& module);

}  // namespace ptxgen::inline v0::ptx
