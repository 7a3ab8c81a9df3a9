// src/check/barrier_safety/fold.cpp - values that follow from the thread's index alone
#include <algorithm>

#include "check/barrier_safety/barrier_safety.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;

namespace {

// Cells of the table of values: 8 bytes each.
constexpr std::size_t kMaxCells = std::size_t{1} << 22;

bool all_equal(const std::vector<std::uint64_t>& values) {
  return std::ranges::adjacent_find(values, std::ranges::not_equal_to{}) == values.end();
}

}  // namespace

IndexValues::IndexValues(const Function& function, const analysis::RegisterIndex& index,
                         const std::array<std::uint32_t, 3>& block, bool exact)
    : index_(index),
      block_(block),
      exact_(exact),
      threads_(block[0] * block[1] * block[2]),
      values_(index.size()) {
  if (threads_ == 0 || threads_ > kMaxThreads) return;
  std::vector<std::uint32_t> writes(index.size(), 0);
  for (const Instruction& s : function.body) {
    analysis::for_each_access(function, s, [&](const analysis::RegisterAccess& a) {
      if (a.write) ++writes[index.find(a.reg)];
    });
  }
  std::size_t cells = 0;
  for (const Instruction& s : function.body) {
    if (s.kind != StatementKind::Instruction || s.guard.present()) continue;
    const RegisterRow row(function, s);
    if (!row) continue;
    const auto operands = function.operands_of(s);
    std::array<std::vector<std::uint64_t>, ScalarRow::kMaxSources> sources;
    bool known = true;
    for (std::size_t i = 0; i < row.sources() && known; ++i) {
      const Operand& source = operands[row.destinations() + i];
      if (const auto constant = row.constant(source, i))
        sources[i].assign(threads_, *constant);
      else
        known = operand(source, sources[i]);
    }
    for (std::size_t i = 0; i < row.destinations(); ++i) {
      known = known && (operands[i].kind == OperandKind::Sink ||
                        (operands[i].kind == OperandKind::Register && operands[i].component == 0 &&
                         writes[index.find(operands[i].as_register())] == 1));
    }
    if (!known || cells > kMaxCells) continue;
    cells += std::size_t{threads_} * 2;
    std::array<std::vector<std::uint64_t>, 2> results;
    for (std::vector<std::uint64_t>& result : results) result.resize(threads_);
    for (std::uint32_t t = 0; t < threads_ && known; ++t) {
      std::array<Value, ScalarRow::kMaxSources> in;
      for (std::size_t i = 0; i < row.sources(); ++i) in[i] = {sources[i][t], Mark::Exact};
      const auto computed = row(std::span(in).first(row.sources()));
      known = computed.has_value();
      for (std::size_t i = 0; i < 2 && known; ++i) results[i][t] = (*computed)[i];
    }
    for (std::size_t i = 0; i < row.destinations() && known; ++i) {
      if (operands[i].kind == OperandKind::Register)
        values_[index.find(operands[i].as_register())] = std::move(results[i]);
    }
  }
}

bool IndexValues::operand(const Operand& o, std::vector<std::uint64_t>& out) const {
  if (o.kind == OperandKind::Integer) {
    out.assign(threads_, o.value);
    return true;
  }
  if (o.kind == OperandKind::Register && o.component == 0) {
    const std::uint32_t reg = index_.find(o.as_register());
    if (reg == kNone || values_[reg].empty()) return false;
    out = values_[reg];
    if (o.negated) {
      for (std::uint64_t& value : out) value = value == 0 ? 1 : 0;
    }
    return true;
  }
  if (o.kind != OperandKind::Special) return false;
  out.resize(threads_);
  for (std::uint32_t t = 0; t < threads_; ++t) {
    const auto value =
        index_value(static_cast<SpecialRegister>(o.id), o.component, t, block_, exact_);
    if (!value) return false;
    out[t] = *value;
  }
  return true;
}

void fold_equal_values(Function& function, const std::array<std::uint32_t, 3>& block, bool exact) {
  const analysis::RegisterIndex index(function);
  const IndexValues values(function, index, block, exact);
  if (values.threads() == 0 || values.threads() > kMaxThreads) return;
  // A thread that reaches a read without the write has another value there.
  const analysis::RegisterSet undefined = analysis::maybe_undefined(function);
  for (const Instruction& s : function.body) {
    if (s.kind != StatementKind::Instruction || s.guard.present()) continue;
    const RegisterRow row(function, s);
    if (!row) continue;
    auto operands = function.operands_of(s);
    bool equal = true;
    for (std::size_t i = 0; i < row.destinations(); ++i) {
      if (operands[i].kind == OperandKind::Sink) continue;
      const std::uint32_t reg =
          operands[i].kind == OperandKind::Register ? index.find(operands[i].as_register()) : kNone;
      equal = equal && reg != kNone && !values.of(reg).empty() && all_equal(values.of(reg)) &&
              !undefined.contains(reg);
    }
    if (!equal) continue;
    for (std::size_t i = row.destinations(); i < operands.size(); ++i) {
      operands[i] = Operand::integer(0);
    }
  }
}

}  // namespace ptxgen::inline v0::gates::barriers
