// src/check/limits/target_limits.cpp - the gate target_limits
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/limits/limit_findings.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/limits.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

using ptx::DirectiveKind;
using ptx::Function;
using ptx::kNone;
using ptx::Module;

namespace {

constexpr std::uint64_t kTooMany = ~std::uint64_t{0};

std::string text(std::uint64_t number) {
  return number == kTooMany ? "2^64 or more" : std::to_string(number);
}

/// Bytes of consecutive variables, each aligned.
class Layout {
 public:
  void add(const ptx::Variable& variable) noexcept {
    const std::uint64_t alignment = std::max(1u, ptx::natural_alignment(variable));
    const std::uint64_t one = ptx::size_in_bytes(variable);
    const std::uint64_t count = std::max(1u, variable.range);
    if (one > kTooMany / count) return saturate();
    const std::uint64_t size = one * count;
    if (end_ > kTooMany - alignment) return saturate();
    const std::uint64_t start = (end_ + alignment - 1) / alignment * alignment;
    if (size > kTooMany - start) return saturate();
    end_ = start + size;
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return end_; }

 private:
  void saturate() noexcept { end_ = kTooMany; }
  std::uint64_t end_ = 0;
};

/// Variables and functions that a function names directly.
struct Uses {
  std::vector<std::uint32_t> shared;  // of the module's variables
  std::vector<std::uint32_t> called;  // functions called or with their address taken
};

/// The static shared memory of kernels.
class SharedMemory {
 public:
  explicit SharedMemory(const Module& module)
      : module_(module),
        uses_(module.functions.size()),
        looked_at_(module.functions.size(), false),
        reached_by_(module.functions.size(), kNone),
        counted_by_(module.variables.size(), kNone) {}

  std::uint64_t bytes_of(std::uint32_t entry) {
    Layout layout;
    for (const std::uint32_t reached : reachable(entry)) {
      for (const ptx::Variable& variable : module_.functions[reached].variables) {
        if (variable.space == ptx::Space::Shared) layout.add(variable);
      }
      for (const std::uint32_t shared : uses_[reached].shared) {
        if (std::exchange(counted_by_[shared], entry) != entry)
          layout.add(module_.variables[shared]);
      }
    }
    return layout.bytes();
  }

 private:
  // The entry and what it may call.
  std::vector<std::uint32_t> reachable(std::uint32_t entry) {
    std::vector<std::uint32_t> order{entry};
    reached_by_[entry] = entry;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const std::uint32_t called : uses_of(order[i]).called) {
        if (called >= reached_by_.size()) continue;
        if (std::exchange(reached_by_[called], entry) != entry) order.push_back(called);
      }
    }
    return order;
  }

  const Uses& uses_of(std::uint32_t index) {
    Uses& uses = uses_[index];
    if (looked_at_[index]) return uses;
    looked_at_[index] = true;
    const Function& function = module_.functions[index];
    for (const ptx::Instruction& statement : function.body) {
      for (const ptx::Operand& operand : function.operands_of(statement)) {
        add_use(uses, operand);
        if (operand.kind != ptx::OperandKind::Vector && operand.kind != ptx::OperandKind::List) {
          continue;
        }
        for (const ptx::Operand& element : function.elements(operand)) add_use(uses, element);
      }
    }
    return uses;
  }

  void add_use(Uses& uses, const ptx::Operand& operand) const {
    const bool named =
        operand.kind == ptx::OperandKind::Symbol ||
        (operand.kind == ptx::OperandKind::Memory && operand.base == ptx::OperandKind::Symbol);
    if (!named || operand.id >= module_.symbols.size()) return;
    const ptx::Symbol& symbol = module_.symbols[operand.id];
    if (symbol.kind == ptx::SymbolKind::Function) uses.called.push_back(symbol.index);
    if (symbol.kind != ptx::SymbolKind::Variable) return;
    const ptx::Variable& variable = module_.variables[symbol.index];
    const bool here = variable.linkage != ptx::Linkage::Extern;
    if (variable.space == ptx::Space::Shared && here) uses.shared.push_back(symbol.index);
  }

  const Module& module_;
  std::vector<Uses> uses_;
  std::vector<bool> looked_at_;
  // By function or variable, the last entry that reaches it.
  std::vector<std::uint32_t> reached_by_, counted_by_;
};

class Check {
 public:
  Check(const Module& module, const GateOptions& options)
      : module_(module),
        options_(options),
        target_text_(options.target.empty() ? std::string_view(module.target) : options.target),
        limits_(ptx::limits(target_text_)),
        shared_(module) {}

  std::vector<Finding> run() {
    constants();
    for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
      const Function& function = module_.functions[i];
      if (!function.entry || function.declaration) continue;
      function_ = &function;
      threads();
      registers();
      resident_blocks();
      parameters();
      static_shared(i);
    }
    return std::move(findings_);
  }

 private:
  const ptx::Directive* directive(DirectiveKind kind) const {
    for (const ptx::Directive& one : function_->directives) {
      if (one.kind == kind) return &one;
    }
    return nullptr;
  }

  // Threads -----------------------------------------------------------------------------------

  static std::array<std::uint64_t, 3> sides(const ptx::Directive& directive) {
    std::array<std::uint64_t, 3> values{1, 1, 1};
    for (std::size_t i = 0; i < directive.count; ++i) values[i] = directive.values[i];
    return values;
  }
  static std::uint64_t product(const std::array<std::uint64_t, 3>& sides) {
    // Three factors of 32 bits: the first two fit, the third may not.
    const std::uint64_t two = sides[0] * sides[1];
    return sides[2] != 0 && two > kTooMany / sides[2] ? kTooMany : two * sides[2];
  }

  void threads() {
    threads_.reset();
    launch();
    const ptx::Directive* exact = directive(DirectiveKind::reqntid);
    const ptx::Directive* bound = directive(DirectiveKind::maxntid);
    if (exact != nullptr && bound != nullptr) {
      report(Severity::Error, "has both .reqntid and .maxntid",
             "a kernel's block is either given or bounded", "leave .maxntid out");
      return;
    }
    if (exact != nullptr) block(*exact, ".reqntid", Severity::Error);
    if (bound != nullptr) block(*bound, ".maxntid", Severity::Warning);
    if (exact != nullptr) launched_otherwise(sides(*exact));
  }

  // .reqntid beyond the limit can never be launched; with .maxntid the block may be smaller.
  void block(const ptx::Directive& directive, std::string_view word, Severity severity) {
    const std::array<std::uint64_t, 3> requested = sides(directive);
    const std::string name(word);
    if (std::find(requested.begin(), requested.end(), 0u) != requested.end()) {
      report(Severity::Error, format_text("{} has a 0", name),
             "a block has at least 1 thread along each side", "make it 1");
      return;
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (requested[i] <= limits_.block[i]) continue;
      const std::string bound = std::to_string(limits_.block[i]);
      report(severity,
             format_text("{} asks for {} threads in {}", name, text(requested[i]), "xyz"[i]),
             format_text("a block has at most {} threads in {}", bound, "xyz"[i]),
             format_text("make it at most {}", bound));
      return;
    }
    const std::uint64_t count = product(requested);
    const std::string bound = std::to_string(limits_.threads_per_block);
    if (count > limits_.threads_per_block) {
      report(
          severity, format_text("{} asks for {} threads", name, text(count)),
          format_text("a block has at most {} threads", bound),
          severity == Severity::Error
              ? format_text("make it at most {} threads, and let each work on more elements", bound)
              : format_text("make it at most {}: an assembler ignores a larger bound", bound));
      return;
    }
    threads_ = count;
  }

  /// The block of the launch, if the options give one.
  void launch() {
    const auto& shape = options_.block;
    if (shape[0] == 0) return;
    const std::uint64_t count = std::uint64_t{shape[0]} * std::max(1u, shape[1]);
    const bool sides = shape[0] <= limits_.block[0] && shape[1] <= limits_.block[1] &&
                       shape[2] <= limits_.block[2];
    if (sides && count * std::max(1u, shape[2]) <= limits_.threads_per_block) return;
    report(Severity::Error,
           format_text("is launched with a block of {},{},{}", shape[0], shape[1], shape[2]),
           format_text("a block has at most {} threads, at most {} in x, {} in y and {} in z",
                       limits_.threads_per_block, limits_.block[0], limits_.block[1],
                       limits_.block[2]),
           "launch it with a smaller block, and let each thread work on more elements");
  }

  void launched_otherwise(const std::array<std::uint64_t, 3>& requested) {
    if (options_.block == std::array<std::uint32_t, 3>{0, 0, 0}) return;
    const auto triple = [](const auto& sides) {
      return format_text("{},{},{}", sides[0], sides[1], sides[2]);
    };
    if (std::equal(requested.begin(), requested.end(), options_.block.begin())) return;
    report(Severity::Error,
           format_text("is launched with a block of {}, and its .reqntid is {}",
                       triple(options_.block), triple(requested)),
           "a kernel with .reqntid runs in blocks of exactly that shape",
           format_text("launch it with {}", triple(requested)));
  }

  // Registers and blocks ----------------------------------------------------------------------

  void registers() {
    const ptx::Directive* bound = directive(DirectiveKind::maxnreg);
    if (bound == nullptr) return;
    const std::string limit = std::to_string(limits_.registers_per_thread);
    if (bound->values[0] == 0) {
      report(Severity::Error, ".maxnreg is 0", "a thread has at least 1 register",
             "leave it out, or make it 16 or more");
    } else if (bound->values[0] > limits_.registers_per_thread) {
      report(Severity::Warning,
             format_text(".maxnreg asks for {} registers", text(bound->values[0])),
             format_text("a thread has at most {} registers", limit),
             format_text("make it at most {}: an assembler ignores a larger bound", limit));
    }
  }

  void resident_blocks() {
    const ptx::Directive* min = directive(DirectiveKind::minnctapersm);
    if (min == nullptr) return;
    const std::uint64_t blocks = min->values[0];
    const std::string asks = format_text(".minnctapersm asks for {} blocks", text(blocks));
    if (blocks == 0) {
      report(Severity::Error, ".minnctapersm is 0", "a multiprocessor holds at least 1 block",
             "leave it out");
    } else if (blocks > limits_.blocks_per_sm) {
      report(Severity::Warning, asks,
             format_text("a multiprocessor of {} holds at most {}", target_text_,
                         count_text(limits_.blocks_per_sm, "block")),
             format_text("make it at most {}: an assembler ignores a larger one",
                         limits_.blocks_per_sm));
    } else if (directive(DirectiveKind::reqntid) == nullptr &&
               directive(DirectiveKind::maxntid) == nullptr) {
      report(Severity::Warning, format_text("{} of unknown size", asks),
             "without .maxntid or .reqntid an assembler ignores it",
             "say with .maxntid how many threads a block has at most");
    } else if (threads_ && blocks * *threads_ > limits_.threads_per_sm) {
      report(Severity::Warning,
             format_text("{} of {} threads, {} together", asks, text(*threads_),
                         text(blocks * *threads_)),
             format_text("a multiprocessor of {} holds at most {}", target_text_,
                         count_text(limits_.threads_per_sm, "thread")),
             format_text("make it at most {}: an assembler ignores a larger one",
                         limits_.threads_per_sm / *threads_));
    }
  }

  // Memory ------------------------------------------------------------------------------------

  void constants() {
    Layout layout;
    for (const ptx::Variable& variable : module_.variables) {
      if (variable.space == ptx::Space::Const && variable.linkage != ptx::Linkage::Extern) {
        layout.add(variable);
      }
    }
    if (layout.bytes() <= limits_.constant_bytes) return;
    Finding finding = limit_finding(
        Severity::Error,
        format_text("the module has {} bytes of .const variables", text(layout.bytes())),
        format_text("a module has at most {} of constant memory",
                    count_text(limits_.constant_bytes, "byte")),
        "put the larger tables into .global memory");
    finding.file = module_.file;
    findings_.push_back(std::move(finding));
  }

  void parameters() {
    Layout layout;
    for (const ptx::Variable& parameter : function_->parameters) layout.add(parameter);
    const std::uint32_t bound = ptx::parameter_bytes(module_.version);
    if (layout.bytes() <= bound) return;
    const bool newer = layout.bytes() <= ptx::parameter_bytes({255, 0});
    report(Severity::Error, format_text("has {} bytes of parameters", text(layout.bytes())),
           format_text("a kernel in PTX {}.{} has at most {} of them", module_.version.major,
                       module_.version.minor, count_text(bound, "byte")),
           newer ? format_text("raise .version to 8.1, which allows {}",
                               count_text(ptx::parameter_bytes({255, 0}), "byte"))
                 : "pass a pointer to them");
  }

  void static_shared(std::uint32_t entry) {
    const ptx::Target* target = ptx::find_target(target_text_);
    const ptx::Target& row = target != nullptr ? *target : ptx::targets().front();
    const std::uint64_t bytes = shared_.bytes_of(entry);
    if (bytes <= row.shared_per_block) return;
    Finding finding = static_shared_finding(name(), bytes, row);
    place(finding);
    findings_.push_back(std::move(finding));
  }

  // -------------------------------------------------------------------------------------------

  std::string_view name() const { return module_.text(function_->name); }

  void place(Finding& finding) const {
    finding.file = module_.file;
    finding.line = function_->line;
    finding.kernel = name();
  }

  void report(Severity severity, const std::string& what, std::string rule, std::string cure) {
    Finding finding = limit_finding(severity, format_text("kernel '{}' {}", name(), what),
                                    std::move(rule), std::move(cure));
    place(finding);
    findings_.push_back(std::move(finding));
  }

  const Module& module_;
  const GateOptions& options_;
  const std::string_view target_text_;
  const ptx::Limits& limits_;
  const Function* function_ = nullptr;
  std::optional<std::uint64_t> threads_;  // of a block, if directives give a valid number
  SharedMemory shared_;
  std::vector<Finding> findings_;
};

}  // namespace

std::uint64_t static_shared_bytes(const ptx::Module& module, std::uint32_t entry) {
  return SharedMemory(module).bytes_of(entry);
}

Finding static_shared_finding(std::string_view kernel, std::uint64_t bytes,
                              const ptx::Target& target) {
  Finding finding = limit_finding(
      Severity::Error,
      format_text("kernel '{}' has {} bytes of static shared memory", kernel, text(bytes)),
      format_text("a block has at most {} of static shared memory on every target",
                  count_text(target.shared_per_block, "byte")),
      bytes <= target.shared_per_block_opt_in
          ? format_text(
                "declare it as .extern .shared and ask for the bytes at launch: {} has up to {}",
                target.name, target.shared_per_block_opt_in)
          : format_text("make the arrays smaller: {} has at most {}, dynamic ones included",
                        target.name, count_text(target.shared_per_block_opt_in, "byte")));
  finding.kernel = kernel;
  return finding;
}

std::vector<Finding> target_limits(const ptx::Module& module, const GateOptions& options) {
  return Check(module, options).run();
}

}  // namespace ptxgen::inline v0::gates
