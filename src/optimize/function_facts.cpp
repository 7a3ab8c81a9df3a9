// src/optimize/function_facts.cpp - analyses shared by passes
#include "optimize/function_facts.hpp"

#include <stdexcept>

namespace ptxgen::inline v0::optimize {

const Constants& FunctionFacts::constants(bool names) {
  const Constants& all = result(constants_, function(), cfg(), index(), versions());
  if (names || !all.rests_on_names()) return all;
  return result(nameless_, function(), cfg(), index(), versions(), false);
}

std::string FunctionFacts::outdated() {
  FunctionFacts fresh(module(), function());
  const auto differs = [](const std::string& known, const std::string& now) {
    return known != now;
  };
  if (has_cfg() &&
      differs(to_text(cfg(), module(), function()), to_text(fresh.cfg(), module(), function())))
    return "cfg";
  if (has_versions() && differs(to_text(versions(), index(), module(), function()),
                                to_text(fresh.versions(), fresh.index(), module(), function())))
    return "versions";
  if (has_uniformity() &&
      differs(to_text(uniformity(), cfg(), index(), module(), function()),
              to_text(fresh.uniformity(), fresh.cfg(), fresh.index(), module(), function())))
    return "uniformity";
  if (has_inductions() &&
      differs(to_text(inductions(), cfg(), index(), versions(), module(), function()),
              to_text(fresh.inductions(), fresh.cfg(), fresh.index(), fresh.versions(), module(),
                      function())))
    return "inductions";
  if (constants_ && !constants_->same_as(fresh.constants())) return "constants";
  if (nameless_ && !nameless_->same_as(fresh.constants(false))) return "constants without names";
  if (has_index() && index() != fresh.index()) return "registers";
  return {};
}

FunctionFacts& SharedFacts::of(const ptx::Module& module, const ptx::Function& function) {
  if (!facts_ || !current_) {
    facts_.emplace(module, function);
    current_ = true;
  } else if (check_) {
    const std::string outdated = facts_->outdated();
    if (!outdated.empty()) throw std::logic_error("a pass left outdated facts: " + outdated);
  }
  return *facts_;
}

}  // namespace ptxgen::inline v0::optimize
