// src/analysis/affine_paths.cpp - affine forms at phis and in loops
#include <algorithm>

#include "analysis/affine_solver.hpp"
#include "analysis/uniformity_sources.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

AffineSolver::AffineSolver(Affine& result, const UniformityOptions& options)
    : r_(result),
      module_(*result.module_),
      function_(*result.function_),
      cfg_(*result.cfg_),
      versions_(*result.versions_),
      uniformity_(*result.uniformity_),
      options_(options) {}

void AffineSolver::solve() {
  const LoopForest& forest = cfg_.loops();
  phi_symbols_.assign(versions_.size(), kNone);
  value_symbols_.assign(versions_.size(), kNone);
  meeting_known_.assign(cfg_.blocks().size(), 0);
  meeting_.assign(cfg_.blocks().size(), Agreement::None);
  r_.versions_forms_.resize(versions_.size());
  r_.unknown_ = symbol({.kind = Kind::Value, .restless = true});
  find_leaving();
  for (std::uint32_t loop = 0; loop < forest.loops().size(); ++loop) {
    AffineSymbol s;
    s.kind = Kind::Iteration;
    s.id = loop;
    s.agreement = Agreement::Warp;  // lanes in a loop together are in the same iteration
    s.loop = loop;
    r_.iteration_.push_back(symbol(s));
    s.kind = Kind::FinalIteration;
    s.agreement = leaving_[loop];
    s.loop = forest.loops()[loop].parent;
    r_.final_iteration_.push_back(symbol(s));
  }
  for (std::uint32_t v = 0; v < versions_.size(); ++v) {
    if (versions_[v].kind == Version::Kind::Phi)
      start_phi(v);
    else
      r_.versions_forms_[v] = value_symbol(v);
  }
  std::vector<std::uint32_t> open;  // loops that the walk is in
  const auto leave = [&](std::uint32_t block) {
    while (!open.empty() && (block == cfg_.exit() || !forest.contains(open.back(), block))) {
      finish_loop(open.back());
      open.pop_back();
    }
  };
  for (const std::uint32_t block : cfg_.order()) {
    if (!cfg_.reachable(block)) continue;
    leave(block);
    const std::uint32_t loop = forest.innermost(block);
    if (loop != kNoNode && forest.loops()[loop].header == block) open.push_back(loop);
    const bool header = loop != kNoNode && forest.loops()[loop].header == block;
    if (!header) {
      for (const std::uint32_t phi : versions_.phis(block)) merge_inputs(phi);
    }
    const Block& code = cfg_.blocks()[block];
    for (std::uint32_t i = code.first; i < code.end; ++i) {
      for_each_access(function_, function_.body[i], [&](const RegisterAccess& a) {
        if (!a.write) return;
        const std::uint32_t reg = r_.index_->find(a.reg);
        const std::uint32_t version = reg == kNone ? kNone : versions_.written(i, reg);
        if (version != kNone) r_.versions_forms_[version] = written(version);
      });
    }
  }
  leave(cfg_.exit());
}

// The form of the inputs if all of them have the same.
void AffineSolver::merge_inputs(std::uint32_t phi) {
  const auto inputs = versions_.inputs(phi);
  const AffineForm* first = nullptr;
  bool equal = true;
  for (const std::uint32_t input : inputs) {
    if (input == kNone) continue;
    const AffineForm& form = r_.versions_forms_[input];
    if (first == nullptr) first = &form;
    equal = equal && same_terms(*first, form);
  }
  if (first == nullptr || !equal) {
    find_rest(phi, kNoNode);
    return;
  }
  AffineForm form = *first;
  for (const std::uint32_t input : inputs) {
    if (input != kNone) assume(form, r_.versions_forms_[input]);
  }
  if (!too_big(form)) r_.versions_forms_[phi] = form;
}

void AffineSolver::find_leaving() {
  const LoopForest& forest = cfg_.loops();
  leaving_.assign(forest.loops().size(), Agreement::Grid);
  for (std::uint32_t block = 0; block < cfg_.blocks().size(); ++block) {
    for (const std::uint32_t next : cfg_.successors(block)) {
      // Threads that leave the function do not reach the read.
      if (next == cfg_.exit()) continue;
      for (std::uint32_t loop = forest.innermost(block);
           loop != kNoNode && !forest.contains(loop, next); loop = forest.loops()[loop].parent)
        leaving_[loop] = weaker(leaving_[loop], uniformity_.of_branch(block));
    }
  }
  left_apart_.assign(forest.loops().size(), false);
  for (std::uint32_t loop = 0; loop < forest.loops().size(); ++loop) {
    if (forest.loops()[loop].irreducible) leaving_[loop] = Agreement::None;
    for (std::uint32_t l = loop; l != kNoNode; l = forest.loops()[l].parent)
      left_apart_[loop] = left_apart_[loop] || leaving_[l] < Agreement::Grid;
  }
}

void AffineSolver::start_phi(std::uint32_t version) {
  AffineForm form = value_symbol(version);
  AffineSymbol s = r_.symbols_[form.terms[0].symbols[0]];
  s.kind = Kind::Phi;
  // As its writes take it.
  for (const std::uint32_t input : versions_.inputs(version)) {
    if (input == kNone || versions_[input].kind != Version::Kind::Write) continue;
    const Instruction& writer = function_.body[versions_[input].statement];
    s.is_signed = s.is_signed || (writer.kind == StatementKind::Instruction &&
                                  kind(writer.type()) == TypeKind::Signed);
  }
  phi_symbols_[version] = new_symbol(s);
  r_.versions_forms_[version] = symbol_form(phi_symbols_[version], s.bits);
}

void AffineSolver::expand_to(std::uint32_t symbol, AffineForm form) {
  if (too_big(form)) return;
  const bool is_signed = r_.symbols_[symbol].is_signed;
  if (!is_number(form, is_signed)) r_.expansion_assumes_[symbol] = assumption(form, is_signed);
  // Numbered forms have no assumptions: this one keeps its own.
  r_.expansions_[symbol] = static_cast<std::uint32_t>(r_.forms_.size());
  r_.forms_.push_back(std::move(form));
}

// --- loops --------------------------------------------------------------------------------------

void AffineSolver::finish_loop(std::uint32_t loop) {
  const Loop& l = cfg_.loops().loops()[loop];
  if (l.irreducible) return;
  for (const std::uint32_t phi : versions_.phis(l.header)) {
    find_induction(phi, loop);
    if (r_.expansions_[phi_symbols_[phi]] == kNone) find_rest(phi, loop);
  }
}

bool AffineSolver::varies(std::uint32_t number, std::uint32_t loop) const {
  const AffineSymbol& s = r_.symbols_[number];
  if (s.restless) return true;
  // Whether it changes in an inner loop: loops are intervals of the order.
  if (s.loop == kNoNode) return false;
  const Loop& outer = cfg_.loops().loops()[loop];
  const Loop& inner = cfg_.loops().loops()[s.loop];
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

bool AffineSolver::varies(const AffineForm& form, std::uint32_t loop) const {
  for (const AffineTerm& term : form.terms) {
    for (const std::uint32_t factor : term.symbols) {
      if (factor != kNone && varies(factor, loop)) return true;
    }
  }
  return false;
}

void AffineSolver::find_induction(std::uint32_t version, std::uint32_t loop) {
  const std::uint32_t own = phi_symbols_[version];
  const unsigned bits = r_.symbols_[own].bits;
  if (bits == 1) return;
  const auto inputs = versions_.inputs(version);
  const auto from = cfg_.predecessors(versions_[version].block);
  std::optional<AffineForm> start, step;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNone) continue;
    const AffineForm& raw = r_.versions_forms_[inputs[i]];
    if (!cfg_.loops().contains(loop, from[i])) {
      const AffineForm form = r_.of_version(inputs[i], from[i]);
      if (start && !same_terms(*start, form)) return;
      if (start)
        assume(*start, form);
      else
        start = form;
    } else {
      const AffineForm grown = sum(raw, symbol_form(own, bits), -1);
      if (varies(grown, loop)) return;
      if (step && !same_terms(*step, grown)) return;
      if (step)
        assume(*step, grown);
      else
        step = r_.expand(grown, versions_[version].block);
    }
  }
  if (!start || !step) return;
  const auto risen = product(*step, symbol_form(r_.iteration_[loop], bits));
  if (risen) expand_to(own, sum(*start, *risen));
}

// What all paths bring along stays in words; the rest is one symbol, on which lanes agree if they
// agree about the way they came and about everything in it.
void AffineSolver::find_rest(std::uint32_t version, std::uint32_t loop) {
  const std::uint32_t own = phi_symbols_[version];
  const unsigned bits = r_.symbols_[own].bits;
  const std::uint32_t block = versions_[version].block;
  const auto inputs = versions_.inputs(version);
  const auto from = cfg_.predecessors(block);
  std::vector<AffineForm> ways;  // what comes, less the phi itself if that comes round
  std::optional<std::vector<AffineTerm>> common;
  AffineForm assumed;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNone) continue;
    AffineForm way = r_.of_version(inputs[i], from[i]);
    assume(assumed, way);
    const AffineForm grown = sum(way, symbol_form(own, bits), -1);
    const bool itself = loop != kNoNode && grown.terms.size() < way.terms.size();
    if (itself) {
      ways.push_back(grown);
      continue;
    }
    if (!common) common = way.terms;
    std::erase_if(*common, [&](const AffineTerm& term) {
      return std::ranges::find(way.terms, term) == way.terms.end();
    });
    ways.push_back(std::move(way));
  }
  if (!common) return;
  AffineForm shared = constant_form(0, bits);
  for (const AffineTerm& term : *common) {
    AffineForm alone = constant_form(0, bits);
    alone.terms.push_back(term);
    if (loop == kNoNode || !varies(alone, loop)) shared.terms.push_back(term);
  }
  Agreement agreement = of_meeting(block);
  for (const AffineForm& way : ways) {
    for (const AffineTerm& term : way.terms) {
      if (std::ranges::find(shared.terms, term) != shared.terms.end()) continue;
      agreement = weaker(agreement, agreement_of(term));
    }
  }
  AffineSymbol& phi = r_.symbols_[own];
  Agreement both = phi.agreement;
  for (const AffineTerm& term : shared.terms) both = weaker(both, agreement_of(term));
  agreement = std::max(agreement, both);
  if (shared.terms.empty()) {
    phi.agreement = agreement;
    // No form has the assumptions of a phi without an expansion.
    if (loop == kNoNode && !assumed.may_wrap()) add_ways(own, shared, ways);
    return;
  }
  AffineSymbol rest = phi;
  rest.kind = Kind::Rest;
  rest.is_signed = false;
  rest.agreement = agreement;
  const std::uint32_t number = symbol(rest);
  if (loop == kNoNode) add_ways(number, shared, ways);
  AffineForm form = sum(shared, symbol_form(number, bits));
  assume(form, assumed);
  expand_to(own, std::move(form));
}

// What each path brings besides `shared`.
void AffineSolver::add_ways(std::uint32_t symbol, const AffineForm& shared,
                            std::span<const AffineForm> ways) {
  std::vector<std::uint32_t> numbers;
  for (const AffineForm& way : ways) numbers.push_back(form_number(sum(way, shared, -1)));
  // What a thread has when it leaves a loop, too.
  r_.ways_.resize(r_.symbols_.size());
  if (r_.left_[symbol] != kNone) r_.ways_[r_.left_[symbol]] = numbers;
  r_.ways_[symbol] = std::move(numbers);
}

Agreement AffineSolver::agreement_of(const AffineTerm& term) const {
  Agreement found = Agreement::Grid;
  for (const std::uint32_t factor : term.symbols)
    if (factor != kNone) found = weaker(found, r_.symbols_[factor].agreement);
  return found;
}

// The least agreement of the branches between a block and where all its predecessors came through.
Agreement AffineSolver::of_meeting(std::uint32_t block) {
  if (meeting_known_[block] != 0) return meeting_[block];
  meeting_known_[block] = 1;
  constexpr std::size_t kMaxBlocks = 128;
  const std::uint32_t top = cfg_.dominators().immediate(block);
  Agreement found = Agreement::Grid;
  std::vector<std::uint32_t> open, seen;
  const auto reach = [&](std::uint32_t node) {
    if (!cfg_.reachable(node) || std::ranges::find(seen, node) != seen.end()) return;
    seen.push_back(node);
    if (node != top) open.push_back(node);
    // Threads that exit do not read it.
    std::size_t ways = 0;
    for (const std::uint32_t next : cfg_.successors(node)) ways += next != cfg_.exit() ? 1 : 0;
    if (ways > 1) found = weaker(found, uniformity_.of_branch(node));
  };
  for (const std::uint32_t node : cfg_.predecessors(block)) reach(node);
  while (!open.empty() && seen.size() <= kMaxBlocks) {
    const std::uint32_t node = open.back();
    open.pop_back();
    for (const std::uint32_t next : cfg_.predecessors(node)) reach(next);
  }
  if (seen.size() > kMaxBlocks || top == kNoNode || uniformity_.gave_up()) found = Agreement::None;
  return meeting_[block] = found;
}

}  // namespace ptxgen::inline v0::analysis
