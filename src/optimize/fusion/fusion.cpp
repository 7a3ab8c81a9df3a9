// src/optimize/fusion/fusion.cpp - matching products and sums for fusion
#include "optimize/fusion/fusion.hpp"

#include <algorithm>

#include "ptx/row_shape.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0::optimize {

using analysis::Version;
using analysis::VersionUse;
using ptx::Instruction;
using ptx::kNone;
using ptx::Operand;
using ptx::OperandKind;

namespace {

// An operand of the product must keep its value up to the sum. Paths through more blocks are not
// searched.
constexpr std::size_t kMaxBlocks = 64;

bool plain_register(const Operand& operand) {
  return operand.kind == OperandKind::Register && operand.component == 0;
}

bool is_copy(const Instruction& statement) { return statement.is(ptx::Op::mov); }

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%';
}

}  // namespace

Fusion::Fusion(ptx::Function& function, PassContext& context, const FusionRules& rules)
    : function_(function),
      context_(context),
      rules_(rules),
      cfg_(context.facts(function).cfg()),
      index_(context.facts(function).index()),
      versions_(context.facts(function).versions()),
      scopes_(context.facts(function).scopes()),
      flows_(versions_.size(), false),
      writes_(index_.size(), 0),
      unknown_(index_.size(), false) {
  // An unknown target supports nothing.
  static_cast<void>(ptx::parse_target_name(context.module().target, target_));
  for (std::uint32_t v = 0; v < versions_.size(); ++v) {
    if (versions_[v].kind == Version::Kind::Write) ++writes_[versions_[v].reg];
  }
  find_flows();
  find_unknown_names();
}

// ---- facts

std::uint32_t Fusion::value(std::uint32_t reader, const Operand& reg) const {
  return versions_.read(reader, index_.find(reg.as_register()));
}

Operand Fusion::negative(std::uint32_t value, const Operand& reg, std::uint32_t sum) const {
  const auto found = negatives_.find(NegativeKey{value, reg.component, at(sum).type()});
  if (found == negatives_.end()) return {};
  const std::uint32_t source = cfg_.block_of(found->second.sum), target = cfg_.block_of(sum);
  const bool before =
      source == target ? found->second.sum < sum : cfg_.dominators().dominates(source, target);
  return before ? found->second.reg : Operand{};
}

// Names in the text of an instruction outside the op table may be read and written there.
void Fusion::find_unknown_names() {
  std::vector<std::string_view> names;
  for (const Instruction& s : function_.body) {
    if (s.kind != ptx::StatementKind::Unknown) continue;
    const std::string_view text = context_.module().text(s.text);
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
      std::size_t end = begin;
      while (end < text.size() && name_character(text[end])) ++end;
      if (end == begin) continue;
      names.push_back(text.substr(begin, end - begin));
      begin = end;
    }
  }
  if (names.empty()) return;
  std::sort(names.begin(), names.end());
  for (std::uint32_t r = 0; r < index_.size(); ++r) {
    const std::string name = ptx::name_of(context_.module(), function_, index_[r]);
    unknown_[r] = std::binary_search(names.begin(), names.end(), std::string_view(name));
  }
}

bool Fusion::unknown(const Operand& reg) const { return unknown_[index_.find(reg.as_register())]; }

// Whether a statement reads only the new value of a guarded write: it has the same guard, hence no
// other threads execute it.
bool Fusion::reads_own_lanes(std::uint32_t reader, std::uint32_t version) const {
  const std::uint32_t writer = versions_[version].statement;
  const ptx::Guard& guard = at(writer).guard;
  if (!guard.present() || !(at(reader).guard == guard)) return false;
  const std::uint32_t predicate = index_.find(guard.predicate);
  return versions_.read(reader, predicate) == versions_.read(writer, predicate);
}

// Marks the versions that may be read as part of another version: through a phi, or as the value
// that a guarded write keeps. Keeping the old value is not a read by itself.
void Fusion::find_flows() {
  std::vector<std::uint32_t> open;
  std::vector<bool> seen(versions_.size(), false);
  const auto open_once = [&](std::uint32_t version) {
    if (seen[version]) return;
    seen[version] = true;
    open.push_back(version);
  };
  const auto joins = [&](std::uint32_t v) {
    return versions_[v].kind == Version::Kind::Phi || versions_[v].previous != kNone;
  };
  for (std::uint32_t v = 0; v < versions_.size(); ++v) {
    if (!joins(v)) continue;
    const bool phi = versions_[v].kind == Version::Kind::Phi;
    for (const VersionUse& use : versions_.uses(v)) {
      if (use.returned() ||
          (use.statement != kNone && (phi || !reads_own_lanes(use.statement, v)))) {
        open_once(v);
      }
    }
  }
  while (!open.empty()) {
    const std::uint32_t v = open.back();
    open.pop_back();
    const auto reach = [&](std::uint32_t from) {
      if (from == kNone) return;
      flows_[from] = true;
      if (joins(from)) open_once(from);
    };
    reach(versions_[v].previous);
    for (const std::uint32_t input : versions_.inputs(v)) reach(input);
  }
}

Product Fusion::find(std::uint32_t sum, std::uint32_t operand_number) const {
  Product product;
  product.operand = operand_number;
  const Operand* operand = &this->operand(sum, operand_number);
  std::uint32_t reader = sum;
  while (product.count < Product::kMaxStatements) {
    if (!plain_register(*operand)) return {};
    const std::uint32_t version = value(reader, *operand);
    if (version == kNone || versions_[version].kind != Version::Kind::Write) return {};
    const std::uint32_t writer = versions_[version].statement;
    product.statements[product.count] = writer;
    product.versions[product.count++] = version;
    const Instruction& statement = at(writer);
    if (statement.kind != ptx::StatementKind::Instruction) return {};
    if (rules_.pair(statement, at(sum))) return product;
    const bool negates = rules_.negation != nullptr && rules_.negation(statement, at(sum));
    if (!negates && !is_copy(statement)) return {};
    product.negated ^= negates;
    operand = &this->operand(writer, 1);
    reader = writer;
  }
  return {};
}

// ---- words

std::string Fusion::place(std::uint32_t statement) const {
  const Instruction& s = at(statement);
  if (s.line != 0) return " in line " + std::to_string(s.line);
  const SourceLocation site = context_.module().site_of(s);
  if (!site.known()) return {};
  std::string_view file = site.file;
  file.remove_prefix(file.find_last_of("/\\") + 1);  // npos + 1 is 0
  return " at " + std::string(file) + ":" + std::to_string(site.line);
}

std::string Fusion::quote(std::uint32_t statement) const {
  std::string text = ptx::print(context_.module(), function_, at(statement));
  if (text.ends_with(';')) text.pop_back();
  return "'" + text + "'" + place(statement);
}

std::string Fusion::name(const Operand& reg) const {
  return ptx::name_of(context_.module(), function_, reg.as_register());
}

// ---- checks

Refusal Fusion::check(const Product& product, std::uint32_t sum) const {
  const std::uint32_t mul = product.statement();
  if (Refusal refusal = check_guards(product, sum)) return refusal;
  if (Refusal refusal = check_readers(product, sum)) return refusal;
  const auto loop = [&](std::uint32_t statement) {
    return cfg_.loops().innermost(cfg_.block_of(statement));
  };
  if (loop(mul) != loop(sum)) {
    return refuse("other-frequency", [&] {
      return quote(mul) +
             " and the sum are not in the same loop, and a fused operation would multiply as often "
             "as the sum is made; write the product next to the sum if that is wanted";
    });
  }
  for (std::size_t i = 1; i <= 2; ++i) {
    if (Refusal refusal = check_operand(operand(mul, i), mul, sum)) return refusal;
  }
  return {};
}

Refusal Fusion::check_readers(const Product& product, std::uint32_t sum) const {
  std::uint32_t reader = sum;
  for (std::uint32_t i = 0; i < product.count; reader = product.statements[i++]) {
    const std::uint32_t version = product.versions[i];
    const Operand& reg = operand(product.statements[i], 0);
    if (unknown(reg)) {
      return refuse("unknown-instruction", [&] {
        return name(reg) + ", the result of " + quote(product.statements[i]) +
               ", is named by an instruction that is not in the op table and may read it";
      });
    }
    const auto several = [&](const std::string& where, bool liftable = false) {
      const auto text = [&] {
        return name(reg) + ", the result of " + quote(product.statements[i]) + ", is read " +
               where +
               ": the multiplication would stay, and be done twice; multiply once for each sum to "
               "have them fused";
      };
      return refuse("several-uses", text, liftable);
    };
    if (reader == sum && operand(sum, 1) == operand(sum, 2)) return several("twice by the sum");
    for (const VersionUse& use : versions_.uses(version)) {
      if (use.returned()) return several("by the caller too");
      if (use.statement != kNone && use.statement != reader)
        return several("by " + quote(use.statement) + " too");
    }
    if (flows_[version]) return several("later on too, where paths join or a guard keeps it", true);
  }
  return {};
}

// The threads of the sum must be among those of the product, and no other thread may read the
// product's register.
Refusal Fusion::check_guards(const Product& product, std::uint32_t sum) const {
  std::uint32_t outer = sum;
  for (std::uint32_t i = 0; i < product.count; outer = product.statements[i++]) {
    const std::uint32_t inner = product.statements[i];
    const ptx::Guard& guard = at(inner).guard;
    if (!guard.present()) continue;
    const auto predicate = Operand::reg(guard.predicate);
    if (!(guard == at(outer).guard)) {
      return refuse("guard-differs", [&] {
        return quote(inner) + " is guarded, and " +
               (outer == sum ? std::string("the sum") : quote(outer)) +
               " is not under the same guard: where only the latter is executed it reads an "
               "older " +
               name(operand(inner, 0)) + "; put both under one guard to have them fused";
      });
    }
    if (unknown(predicate)) {
      return refuse("unknown-instruction", [&] {
        return name(predicate) + ", the guard of " + quote(inner) +
               ", is named by an instruction that is not in the op table and may write it";
      });
    }
    if (value(inner, predicate) != value(outer, predicate)) {
      return refuse("guard-redefined", [&] {
        return name(predicate) + ", the guard of " + quote(inner) +
               ", is written again before the sum, which other threads may make; write to another "
               "predicate to have them fused";
      });
    }
  }
  return {};
}

Refusal Fusion::check_operand(const Operand& operand, std::uint32_t from, std::uint32_t sum) const {
  if (operand.kind != OperandKind::Register) return {};
  if (unknown(operand)) {
    return refuse("unknown-instruction", [&] {
      return name(operand) + ", an operand of " + quote(from) +
             ", is named by an instruction that is not in the op table and may write it";
    });
  }
  std::uint32_t writer = kNone;
  switch (change(index_.find(operand.as_register()), from, sum, writer)) {
    case Change::None:
      break;
    case Change::Written: {
      const auto text = [&] {
        return name(operand) + ", an operand of " + quote(from) + ", is written again " +
               (writer == from ? std::string("by its own result")
                               : "by " + quote(writer) + " before the sum") +
               ": a fused operation would read the new value; write to another register to have "
               "them fused";
      };
      return refuse("operand-redefined", text, true);
    }
    case Change::TooFar:
      return refuse("too-far", [&] {
        return "more than " + count_text(kMaxBlocks, "block") + " are between " + quote(from) +
               " and the sum, too many to see whether " + name(operand) +
               " is written there; multiply nearer to the sum to have them fused";
      });
  }
  if (!scopes_.visible(operand.as_register(), sum)) {
    return refuse("not-visible", [&] {
      return name(operand) + ", an operand of " + quote(from) +
             ", is declared in braces that do not reach to the sum; declare it outside of them";
    });
  }
  return {};
}

// A write of the register among the statements [begin, end) of a block, or kNone.
std::uint32_t Fusion::writer_in(std::uint32_t reg, std::uint32_t block, std::uint32_t begin,
                                std::uint32_t end) const {
  const auto [first, last] = versions_.of(reg);
  std::uint32_t low = first, high = last;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    const Version& v = versions_[middle];
    const bool before = v.kind == Version::Kind::Entry || v.block < block ||
                        (v.block == block && (v.kind == Version::Kind::Phi || v.statement < begin));
    (before ? low : high) = before ? middle + 1 : middle;
  }
  if (low == last || versions_[low].block != block) return kNone;
  if (versions_[low].kind != Version::Kind::Write) return kNone;
  return versions_[low].statement < end ? versions_[low].statement : kNone;
}

// Whether a register that `from` reads may be written before control comes from there to `to`,
// which `from` dominates.
Fusion::Change Fusion::change(std::uint32_t reg, std::uint32_t from, std::uint32_t to,
                              std::uint32_t& writer) const {
  const std::uint32_t found = versions_.read(from, reg);
  // A single write that reaches `from` precedes it on every path, and no path from there to `to`
  // avoids `from`.
  if (writes_[reg] == 0) return Change::None;
  if (writes_[reg] == 1 && versions_[found].kind == Version::Kind::Write) return Change::None;
  const std::uint32_t first = cfg_.block_of(from);
  const std::uint32_t last = cfg_.block_of(to);
  if (first == last) {
    writer = writer_in(reg, first, from, to);
    return writer == kNone ? Change::None : Change::Written;
  }
  // Backwards from `to`, through every block that reaches it without passing `from`.
  writer = writer_in(reg, last, cfg_.blocks()[last].first, to);
  if (writer != kNone) return Change::Written;
  std::vector<std::uint32_t> blocks{last};
  for (std::size_t next = 0; next < blocks.size(); ++next) {
    for (const std::uint32_t block : cfg_.predecessors(blocks[next])) {
      if (!cfg_.reachable(block)) continue;
      if (std::find(blocks.begin() + 1, blocks.end(), block) != blocks.end()) continue;
      context_.visit();
      const std::uint32_t begin = block == first ? from : cfg_.blocks()[block].first;
      writer = writer_in(reg, block, begin, cfg_.blocks()[block].end);
      if (writer != kNone) return Change::Written;
      if (block == first) continue;
      if (blocks.size() == kMaxBlocks) return Change::TooFar;
      blocks.push_back(block);
    }
  }
  return Change::None;
}

Refusal Fusion::check_target(ptx::Op op, std::span<const ptx::Modifier> modifiers) const {
  Instruction form;
  form.op = op;
  const ptx::OpInfo& row = ptx::info(op);
  for (std::size_t i = 0; i < row.slot_count; ++i) {
    for (const ptx::Modifier modifier : modifiers) {
      if (ptx::allows(row.slots[i], modifier)) form.modifiers[i] = modifier;
    }
  }
  ptx::InstructionFault fault =
      ptx::check_target(function_, form, target_, context_.module().version);
  if (fault.rule.empty()) return {};
  return refuse("target-lacks", [&] {
    return fault.message + "; ask for that much by .target and .version to have them fused";
  });
}

std::uint32_t Fusion::negation(std::uint32_t reader, const Operand& operand,
                               std::uint32_t sum) const {
  if (!plain_register(operand) || unknown(operand)) return kNone;
  const std::uint32_t version = value(reader, operand);
  if (version == kNone || versions_[version].kind != Version::Kind::Write) return kNone;
  if (versions_[version].partial) return kNone;
  const std::uint32_t writer = versions_[version].statement;
  if (!rules_.negation(at(writer), at(sum))) return kNone;
  const Operand& source = this->operand(writer, 1);
  if (source.kind != OperandKind::Register) return kNone;
  if (check_operand(source, writer, sum)) return kNone;
  return writer;
}

bool Fusion::read_only_by(std::uint32_t statement, std::uint32_t reader) const {
  const Operand& result = operand(statement, 0);
  const std::uint32_t version = versions_.written(statement, index_.find(result.as_register()));
  const auto uses = versions_.uses(version);
  return !unknown(result) && !flows_[version] &&
         std::all_of(uses.begin(), uses.end(), [&](const VersionUse& use) {
           return use.statement == reader || (use.statement == kNone && !use.returned());
         });
}

// ---- iterations

namespace {

// The decision about a sum; kept until all iterations are done.
struct Verdict {
  std::uint32_t statement = 0;  // of the body as the pass found it
  std::uint32_t other = kNone;  // the multiplication
  bool fired = false;
  Refusal why;
};

}  // namespace

/// One pass over the body with one set of facts.
class FusionIteration {
 public:
  FusionIteration(ptx::Function& function, PassContext& context, const FusionRules& rules)
      : function_(function),
        context_(context),
        rules_(rules),
        fusion_(function, context, rules),
        edits_(context.module(), function),
        added_(function.body.size(), 0),
        erased_(function.body.size(), false) {}

  void run() {
    for (std::uint32_t s = 0; s < function_.body.size(); ++s) {
      context_.visit();
      const Instruction& statement = function_.body[s];
      if (statement.kind == ptx::StatementKind::Instruction && rules_.sum(statement)) look_at(s);
    }
  }
  /// Whether a fusion may have enabled a refused one.
  [[nodiscard]] bool again() const noexcept { return fired_ && liftable_; }
  [[nodiscard]] const std::vector<Verdict>& verdicts() const noexcept { return verdicts_; }
  void apply() { edits_.apply(); }
  /// By statement of the new body, the old statement that it is or precedes.
  [[nodiscard]] std::vector<std::uint32_t> origins() const {
    std::vector<std::uint32_t> origins;
    for (std::uint32_t s = 0; s < added_.size(); ++s) {
      origins.insert(origins.end(), added_[s] + (erased_[s] ? 0u : 1u), s);
    }
    return origins;
  }

 private:
  void look_at(std::uint32_t sum) {
    FusionPlan best;
    bool found = false, liftable = false;
    for (std::uint32_t side = 1; side <= 2; ++side) {
      const Product product = fusion_.find(sum, side);
      if (product.count == 0) continue;
      FusionPlan plan = rules_.plan(fusion_, sum, product);
      plan.product = product;
      liftable |= plan.refusal.liftable;
      if (!found || plan.better_than(best)) best = std::move(plan);
      found = true;
    }
    if (!found) best.refusal = several_definitions(sum);
    if (!found && !best.refusal) return;
    const std::uint32_t other = found ? best.product.statement() : kNone;
    if (best.refusal) {
      liftable_ |= liftable;
      verdicts_.push_back({sum, other, false, std::move(best.refusal)});
    } else {
      make(sum, best);
    }
  }

  // A product on one of several paths.
  Refusal several_definitions(std::uint32_t sum) const {
    constexpr std::size_t kMaxInputs = 8;
    for (std::size_t side = 1; side <= 2; ++side) {
      const Operand& operand = fusion_.operand(sum, side);
      if (!plain_register(operand)) continue;
      const std::uint32_t version = fusion_.value(sum, operand);
      if (version == kNone || fusion_.versions_[version].kind != Version::Kind::Phi) continue;
      const auto inputs = fusion_.versions_.inputs(version);
      for (const std::uint32_t input : inputs.first(std::min(inputs.size(), kMaxInputs))) {
        if (input == kNone || fusion_.versions_[input].kind != Version::Kind::Write) continue;
        const std::uint32_t writer = fusion_.versions_[input].statement;
        if (!rules_.pair(fusion_.at(writer), fusion_.at(sum))) continue;
        return fusion_.refuse("several-definitions", [&] {
          return fusion_.name(operand) + " comes from " + fusion_.quote(writer) +
                 " on one way to the sum and from elsewhere on another; add on each way to have "
                 "the product fused";
        });
      }
    }
    return {};
  }

  void make(std::uint32_t sum, FusionPlan& plan) {
    const Instruction& old = function_.body[sum];
    const ptx::Guard guard = old.guard;
    const ptx::Type type = old.type();
    for (std::size_t i = 0; i < 3; ++i) {
      if (plan.negate[i] == kNone) continue;
      const bool own = type == ptx::Type::f32 || type == ptx::Type::f64;
      const ptx::Register reg = edits_.new_register(own ? type : ptx::untyped(ptx::bits(type)));
      Instruction negation = edits_.make(plan.negation, {ptx::as_modifier(type)},
                                         {Operand::reg(reg), plan.operands[i]}, sum);
      negation.guard = guard;
      edits_.insert_before(sum, negation);
      ++added_[sum];
      const std::uint8_t component = plan.operands[i].component;
      plan.operands[i] = Operand::reg(reg);
      if (!guard.present())
        fusion_.negatives_.insert_or_assign(Fusion::NegativeKey{plan.negate[i], component, type},
                                            Fusion::Negative{sum, plan.operands[i]});
    }
    const std::array<Operand, 4> operands = {fusion_.operand(sum, 0), plan.operands[0],
                                             plan.operands[1], plan.operands[2]};
    Instruction fused = edits_.make(plan.op, plan.modifiers, operands, sum);
    fused.guard = guard;
    edits_.replace(sum, fused);
    for (std::uint32_t i = 0; i < plan.product.count; ++i) erase(plan.product.statements[i]);
    for (const std::uint32_t spare : plan.spare) {
      if (spare != kNone) erase(spare);
    }
    fired_ = true;
    context_.changed();
    Verdict verdict{sum, plan.product.statement(), true, {"fused", {}, false}};
    if (context_.explains()) {
      std::string text = ptx::print(context_.module(), function_, fused);
      text.pop_back();
      verdict.why.message =
          fusion_.quote(plan.product.statement()) + " and the sum are one '" + text + "'";
    }
    verdicts_.push_back(std::move(verdict));
  }
  void erase(std::uint32_t statement) {
    if (erased_[statement]) return;
    erased_[statement] = true;
    edits_.erase(statement);
  }

  ptx::Function& function_;
  PassContext& context_;
  const FusionRules& rules_;
  Fusion fusion_;
  Edits edits_;
  std::vector<std::uint32_t> added_;  // statements put before each
  std::vector<bool> erased_;
  std::vector<Verdict> verdicts_;
  bool fired_ = false, liftable_ = false;
};

namespace {

// Each iteration but the first was enabled by the one before it. Such chains are short; this bounds
// the cost of contrived ones.
constexpr int kMaxIterations = 64;

// Whether any sum reads a register that some product, or a copy or negation, writes. Most functions
// are spared the analyses by it. False too where an operand is missing, which the verifier refuses.
bool may_fuse(const ptx::Function& function, const FusionRules& rules) {
  std::vector<std::uint64_t> written;
  const auto key = [](const Operand& reg) { return std::uint64_t{reg.id} << 32 | reg.index; };
  bool any_product = false;
  for (const Instruction& s : function.body) {
    if (s.kind != ptx::StatementKind::Instruction) continue;
    const ptx::OpInfo& row = ptx::info(s.op);
    const bool product = rules.product(s);
    const bool writes = product || is_copy(s) || row.mnemonic == "neg";
    if ((writes || rules.sum(s)) && s.operand_count < row.required_operands) return false;
    any_product |= product;
    if (writes) written.push_back(key(function.operands[s.first_operand]));
  }
  if (!any_product) return false;
  std::sort(written.begin(), written.end());
  return std::any_of(function.body.begin(), function.body.end(), [&](const Instruction& s) {
    if (s.kind != ptx::StatementKind::Instruction || !rules.sum(s)) return false;
    const auto operands = function.operands_of(s);
    return std::any_of(operands.begin() + 1, operands.end(), [&](const Operand& operand) {
      return plain_register(operand) &&
             std::binary_search(written.begin(), written.end(), key(operand));
    });
  });
}

void tell(std::vector<Verdict>& verdicts, const ptx::Function& function, PassContext& context) {
  for (Verdict& v : verdicts)
    context.decide(function, v.statement, v.fired, v.why.reason, std::move(v.why.message), v.other);
}

}  // namespace

void fuse(ptx::Function& function, PassContext& context, const FusionRules& rules) {
  context.visit(function.body.size());
  if (!may_fuse(function, rules)) return;
  std::vector<Verdict> verdicts;
  std::vector<Instruction> original;   // from the second iteration on: the original body, and
  std::vector<std::uint32_t> origins;  // what each statement of the present body was in it
  for (int number = 0; number < kMaxIterations; ++number) {
    FusionIteration iteration(function, context, rules);
    iteration.run();
    const bool last = !iteration.again() || number + 1 == kMaxIterations;
    for (Verdict verdict : iteration.verdicts()) {
      if (!verdict.fired && !last) continue;
      if (!origins.empty()) {
        verdict.statement = origins[verdict.statement];
        if (verdict.other != kNone) verdict.other = origins[verdict.other];
      }
      verdicts.push_back(std::move(verdict));
    }
    if (last && original.empty()) {  // almost always
      tell(verdicts, function, context);
      iteration.apply();
      return;
    }
    std::vector<std::uint32_t> next = iteration.origins();
    if (original.empty()) {
      original = function.body;
    } else {
      for (std::uint32_t& origin : next) origin = origins[origin];
    }
    origins = std::move(next);
    iteration.apply();
    if (last) break;
  }
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [](const Verdict& a, const Verdict& b) { return a.statement < b.statement; });
  std::swap(function.body, original);
  tell(verdicts, function, context);
  std::swap(function.body, original);
}

}  // namespace ptxgen::inline v0::optimize
