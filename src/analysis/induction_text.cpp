// src/analysis/induction_text.cpp - text of inductions
#include "ptxgen/analysis/induction.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0::analysis {

namespace {

std::string number(std::uint64_t value, unsigned bits) {
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  return std::to_string(static_cast<std::int64_t>((value ^ sign) - sign));
}

class Text {
 public:
  Text(const Inductions& inductions, const Cfg& cfg, const RegisterIndex& index,
       const Versions& versions, const ptx::Module& module, const ptx::Function& function)
      : inductions_(inductions),
        cfg_(cfg),
        index_(index),
        versions_(versions),
        module_(module),
        function_(function) {}

  std::string loop(std::uint32_t loop) {
    loop_ = loop;
    const Loop& l = cfg_.loops().loops()[loop];
    std::string text = "loop " + std::to_string(loop) + ": header block " +
                       std::to_string(l.header) + ", depth " + std::to_string(l.depth);
    if (l.irreducible) return text + ", irreducible\n";
    text += ", " + iterations(inductions_.trip_count(loop)) + "\n";
    for (const Induction& v : inductions_.of(loop)) text += variable(v);
    for (const LoopTest& t : inductions_.tests(loop)) text += test(t);
    return text;
  }

 private:
  std::string name(std::uint32_t version) const {
    return ptx::name_of(module_, function_, index_[versions_[version].reg]);
  }
  std::string term(const LoopTerm& t, unsigned bits) const {
    if (t.constant()) return number(t.value, bits);
    return t.known() ? name(t.version) : "unknown";
  }
  std::string iterations(const TripCount& count) const {
    switch (count.kind) {
      case TripCount::Kind::Constant:
        return count_text(count.iterations, "iteration");
      case TripCount::Kind::Symbolic:
        return count.wrap_excluded ? "iterations from its test"
                                   : "iterations from its test, may wrap around";
      case TripCount::Kind::Unknown:
        break;
    }
    return "iterations unknown";
  }
  std::string variable(const Induction& v) const {
    return "  " + name(v.phi) + " from " + term(v.start, v.bits) + " by " +
           (v.subtracts ? "-" : "") + term(v.step, v.bits) + "\n";
  }
  std::string test(const LoopTest& t) const {
    std::string text = "  test at block " + std::to_string(t.block);
    if (t.top) text += ", top";
    if (!t.every_iteration) text += ", not in every iteration";
    if (!t.goes_on) return text + ": no comparison with an invariant\n";
    const LoopComparison& c = *t.goes_on;
    const Induction& v = inductions_.of(loop_)[c.value.variable];
    text += ": goes on while " + name(v.phi);
    const bool stepped = c.value.is_next && !v.step.constant();
    if (stepped) text += std::string(v.subtracts ? " - " : " + ") + term(v.step, v.bits);
    if (c.value.offset != 0) text += " + " + number(c.value.offset, v.bits);
    text += " " + std::string(to_string(c.relation)) + " " + term(c.bound, v.bits);
    if (c.relation != Relation::Eq && c.relation != Relation::Ne) {
      text += c.is_signed ? ", signed" : ", unsigned";
    }
    return text + "\n";
  }

  const Inductions& inductions_;
  const Cfg& cfg_;
  const RegisterIndex& index_;
  const Versions& versions_;
  const ptx::Module& module_;
  const ptx::Function& function_;
  std::uint32_t loop_ = 0;
};

}  // namespace

std::string to_text(const Inductions& inductions, const Cfg& cfg, const RegisterIndex& index,
                    const Versions& versions, const ptx::Module& module,
                    const ptx::Function& function) {
  Text writer(inductions, cfg, index, versions, module, function);
  std::string text;
  for (std::uint32_t loop = 0; loop < cfg.loops().loops().size(); ++loop) text += writer.loop(loop);
  return text;
}

}  // namespace ptxgen::inline v0::analysis
