// src/optimize/loop_split/copy.cpp - whether a loop can be duplicated
#include <algorithm>

#include "optimize/loop_split/loop_split.hpp"

namespace ptxgen::inline v0::optimize {

using analysis::LoopTest;
using ptx::Function;
using ptx::Instruction;
using ptx::Op;
using ptx::StatementKind;

std::vector<std::uint32_t> blocks_in_order(const analysis::Cfg& cfg, std::uint32_t loop) {
  const auto nodes = cfg.loops().nodes(loop);
  std::vector<std::uint32_t> blocks(nodes.begin(), nodes.end());
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

SplitRefusal cannot_copy(analysis::Facts& facts, const Scopes& scopes, std::uint32_t loop,
                         std::uint32_t test) {
  const Function& function = facts.function();
  const analysis::Cfg& cfg = facts.cfg();
  const std::vector<std::uint32_t> blocks = blocks_in_order(cfg, loop);
  const std::uint32_t header = cfg.loops().loops()[loop].header;
  const bool together = blocks.back() - blocks.front() + 1 == blocks.size();
  std::int64_t depth = 0;
  bool nested = false, uneven = false;
  const std::uint32_t scope = scopes.of(cfg.blocks()[header].first);
  for (const std::uint32_t block : blocks) {
    for (std::uint32_t i = cfg.blocks()[block].first; i < cfg.blocks()[block].end; ++i) {
      const Instruction& s = function.body[i];
      if (s.kind == StatementKind::Variable &&
          function.variables[s.variable].space != ptx::Space::Param) {
        return {"declares-memory",
                "the loop declares a variable in memory, of which there would be two: declare it "
                "before the loop"};
      }
      if (s.kind == StatementKind::ScopeBegin) {
        nested = true;
        ++depth;
      }
      if (s.kind == StatementKind::ScopeEnd && --depth < 0) uneven = true;
      if (s.kind == StatementKind::Instruction && s.op == Op::brx_idx) {
        const auto next = cfg.successors(block);
        if (std::find(next.begin(), next.end(), header) != next.end()) {
          return {"indirect-branch",
                  "a brx.idx leads back to the loop's start through a table of labels"};
        }
      }
      if (!nested && scopes.of(i) != scope && s.kind != StatementKind::ScopeEnd) uneven = true;
    }
  }
  if (nested && (!together || header != blocks.front() || depth != 0)) uneven = true;
  // Branches lead from the first loop to these blocks of the second one.
  const LoopTest& t = facts.inductions().tests(loop)[test];
  if (scopes.of(cfg.blocks()[t.stays].first) != scope || scopes.of(t.branch) != scope)
    uneven = true;
  for (const std::uint32_t phi : facts.versions().phis(header)) {
    const ptx::Register reg = facts.index()[facts.versions()[phi].reg];
    if (cfg.blocks()[header].first < function.body.size() &&
        !scopes.visible(reg, cfg.blocks()[header].first)) {
      uneven = true;
    }
  }
  if (uneven) {
    return {"scopes",
            "braces around a part of the loop only, or in pieces of it, keep registers from being "
            "named in a second copy: open and close braces within one iteration"};
  }
  return {};
}

}  // namespace ptxgen::inline v0::optimize
