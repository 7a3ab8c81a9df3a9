// src/ptx/earlier_body.cpp - unchanged statements of a function
#include "ptx/earlier_body.hpp"

#include <algorithm>
#include <cstring>

namespace ptxgen::inline v0::ptx {

namespace {

// Whether `now` begins with the old entries, compared by `same`: a pass may append to the tables.
template <class T, class Same>
bool begins_with(const std::vector<T>& now, const std::vector<T>& before, Same same) {
  return before.size() <= now.size() && std::equal(before.begin(), before.end(), now.begin(), same);
}

bool same_kind(const Symbol& a, const Symbol& b) {
  return a.kind == b.kind && a.function == b.function && a.index == b.index;
}
bool same_space(const Variable& a, const Variable& b) { return a.space == b.space; }
bool same_type(const RegisterDecl& a, const RegisterDecl& b) {
  return a.type == b.type && a.vector == b.vector;
}

// Bytes that differ in nothing but padding only cost a second look.
bool same_operands(const Function& now, const Function& before) {
  return before.operands.size() <= now.operands.size() &&
         (before.operands.empty() || std::memcmp(before.operands.data(), now.operands.data(),
                                                 before.operands.size() * sizeof(Operand)) == 0);
}

bool same_statement(const Instruction& a, const Instruction& b) {
  return a.kind == b.kind && a.op == b.op && a.first_operand == b.first_operand &&
         a.operand_count == b.operand_count && a.guard == b.guard && a.modifiers == b.modifiers;
}

}  // namespace

EarlierBody::EarlierBody(const Module& module, const Module& before, std::size_t function) {
  if (function >= before.functions.size()) return;
  const Function& now = module.functions[function];
  const Function& then = before.functions[function];
  const bool same_ground = module.version == before.version && module.target == before.target &&
                           begins_with(module.symbols, before.symbols, same_kind) &&
                           begins_with(module.variables, before.variables, same_space) &&
                           begins_with(now.variables, then.variables, same_space) &&
                           begins_with(now.registers, then.registers, same_type) &&
                           same_operands(now, then);
  if (same_ground) earlier_ = &then;
}

bool EarlierBody::has(const Instruction& statement) noexcept {
  if (earlier_ == nullptr || statement.kind != StatementKind::Instruction) return false;
  const auto& body = earlier_->body;
  while (next_ < body.size() && !same_statement(statement, body[next_])) ++next_;
  if (next_ == body.size()) return false;
  ++next_;
  return true;
}

}  // namespace ptxgen::inline v0::ptx
