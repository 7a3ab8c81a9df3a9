// tests/kernels/gemv_operands.cpp - which operand of a GEMV an instruction accesses
#include "gemv_operands.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "ptxgen/analysis.hpp"
#include "ptxgen/ptx.hpp"

namespace ptxgen::test {

namespace {

using analysis::NumberedAccess;
using analysis::Version;
using ptx::kNone;

// Pointers are 64 bits wide: only such registers are followed, through copies, sums and loops.
class Origins {
 public:
  explicit Origins(const ptx::Module& module)
      : module_(module),
        function_(module.functions.front()),
        cfg_(function_),
        index_(function_),
        versions_(function_, cfg_, index_) {}

  std::map<std::uint32_t, std::string> lines() {
    std::map<std::uint32_t, std::string> lines;
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      const ptx::Instruction& s = function_.body[i];
      if (s.kind != ptx::StatementKind::Instruction) continue;
      for (const ptx::Operand& o : function_.operands_of(s)) {
        if (o.kind != ptx::OperandKind::Memory || o.base != ptx::OperandKind::Register) continue;
        const std::uint32_t reg = index_.find(o.as_register());
        if (!wide(reg)) continue;
        const std::vector<std::string_view> from = of(versions_.read(i, reg));
        lines[s.line] = from.size() == 1 ? std::string(from.front()) : "?";
      }
    }
    return lines;
  }

 private:
  [[nodiscard]] bool wide(std::uint32_t reg) const {
    return reg != kNone && ptx::bits(function_.type_of(index_[reg])) == 64;
  }

  // The parameters that a version is computed from.
  std::vector<std::string_view> of(std::uint32_t start) {
    std::vector<std::string_view> names;
    std::vector<std::uint32_t> open{start};
    std::vector<bool> seen(versions_.size(), false);
    const auto add = [&](std::uint32_t version) {
      if (version != kNone && !seen[version]) open.push_back(version);
    };
    while (!open.empty()) {
      const std::uint32_t number = open.back();
      open.pop_back();
      if (number == kNone || seen[number]) continue;
      seen[number] = true;
      const Version& version = versions_[number];
      for (const std::uint32_t input : versions_.inputs(number)) add(input);
      if (version.kind != Version::Kind::Write) continue;
      add(version.previous);
      const ptx::Instruction& s = function_.body[version.statement];
      for (const ptx::Operand& o : function_.operands_of(s)) {
        if (o.kind != ptx::OperandKind::Memory || o.base != ptx::OperandKind::Symbol) continue;
        const std::string_view name = module_.text(module_.symbols[o.id].name);
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
      for (const NumberedAccess& a : index_.accesses(version.statement)) {
        if (!a.write && wide(a.reg)) add(versions_.read(version.statement, a.reg));
      }
    }
    return names;
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  analysis::Cfg cfg_;
  analysis::RegisterIndex index_;
  analysis::Versions versions_;
};

}  // namespace

std::map<std::uint32_t, std::string> operands_of_lines(const ptx::Module& module) {
  return Origins(module).lines();
}

}  // namespace ptxgen::test
